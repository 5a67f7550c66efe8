package ledger

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/transport"
)

var (
	//go:embed adopt.lua
	adopt string
	//go:embed read.lua
	read string
	//go:embed prelude.lua
	prelude string
	//go:embed functions.lua
	functions string
	//go:embed tell.lua
	tell string

	// Initialised before the scripts, which depend on it.
	includes = strings.NewReplacer(
		"--@include adopt.lua\n", adopt, "--@include read.lua\n", read, "--@include prelude.lua\n", prelude, "--@include tell.lua\n", tell,
		includeFunctions, "return (function()\n"+functions)

	//go:embed acquire.lua
	acquireText string
	//go:embed release.lua
	releaseText string
	//go:embed renew.lua
	renewText string
	//go:embed cancel.lua
	cancelText string
	//go:embed heartbeat.lua
	heartbeatText string
	//go:embed still.lua
	stillText string
	//go:embed resize.lua
	resizeText string
	//go:embed inspect.lua
	inspectText string
	//go:embed force.lua
	forceText string
	//go:embed acquire_group.lua
	acquireGroupText string
	//go:embed reweigh.lua
	reweighText string
	//go:embed raise.lua
	raiseText string
	//go:embed watch.lua
	watchText string
	//go:embed limit.lua
	limitText string
	//go:embed refund.lua
	refundText string
	//go:embed latch.lua
	latchText string
	//go:embed barrier.lua
	barrierText string
	//go:embed fence.lua
	fenceText string

	acquireScript      = newScript(acquireText)
	releaseScript      = newScript(releaseText)
	renewScript        = newScript(renewText)
	cancelScript       = newScript(cancelText)
	heartbeatScript    = newScript(heartbeatText).after(transport.Second)
	stillScript        = newScript(stillText).after(transport.Second)
	resizeScript       = newScript(resizeText)
	inspectScript      = newScript(inspectText)
	forceScript        = newScript(forceText)
	acquireGroupScript = newScript(acquireGroupText)
	reweighScript      = newScript(reweighText)
	raiseScript        = newScript(raiseText)
	watchScript        = newScript(watchText)
	limitScript        = newScript(limitText).after(transport.Last)
	refundScript       = newScript(refundText)
	latchScript        = newScript(latchText)
	barrierScript      = newScript(barrierText)
	fenceScript        = newScript(fenceText)
)

// script is one transition: its text with what it includes, and the digest the server knows it by. Both are words of
// commands, put into their interface once.
type script struct {
	text, digest any
	precedence   transport.Precedence
}

// after gives a transition a place behind others where the server cannot take all.
func (s *script) after(p transport.Precedence) *script {
	s.precedence = p
	return s
}

// includeFunctions begins a function that holds functions.lua and the rest of the transition.
const includeFunctions = "--@include functions.lua\n"

func newScript(transition string) *script {
	text := includes.Replace(includes.Replace(includes.Replace(transition))) // prelude.lua includes read.lua, and that adopt.lua; functions.lua tell.lua
	if strings.Contains(transition, includeFunctions) {
		text += "end)()\n"
	}
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{text: text, digest: hex.EncodeToString(sum[:])}
}

// call is one transition with its keys and arguments, as a command for a server that knows the script.
type call struct {
	script     *script
	words      []any
	precedence transport.Precedence
	waited     *time.Duration // see transport.Command
}

func newCall(s *script, keys []any, args ...any) call {
	words := make([]any, 3, 3+len(keys)+len(args))
	words[0], words[1], words[2] = "evalsha", s.digest, len(keys)
	return call{script: s, words: append(append(words, keys...), args...), precedence: s.precedence}
}

// byDigest is the command for a server that knows the script, byText for one that does not.
func (l *Ledger) byDigest(c call) transport.Command {
	return transport.Command{Words: c.words, Key: 3, Within: l.within, Precedence: c.precedence, Waited: c.waited}
}

// byText goes before others: they would not be known either.

func (l *Ledger) byText(c call) transport.Command {
	words := slices.Clone(c.words)
	words[0], words[1] = "eval", c.script.text
	return transport.Command{Words: words, Key: 3, Within: l.within, Precedence: transport.First}
}

// run makes one call: by digest, and with the whole text if the server does not know it (yet, or not any more).
func (l *Ledger) run(ctx context.Context, c call) (any, error) {
	value, err := l.transport.Do(ctx, l.byDigest(c))
	if isUnknownScript(err) {
		return l.transport.Do(ctx, l.byText(c))
	}
	return value, err
}

// runAll makes the calls in one pipeline, and those that met NOSCRIPT in a second one with the whole text.
func (l *Ledger) runAll(ctx context.Context, calls []call) []transport.Reply {
	commands := make([]transport.Command, len(calls))
	for i, c := range calls {
		commands[i] = l.byDigest(c)
	}
	replies := l.transport.Pipeline(ctx, commands)
	var unknown []int
	commands = commands[:0]
	for i, reply := range replies {
		if isUnknownScript(reply.Err) {
			unknown, commands = append(unknown, i), append(commands, l.byText(calls[i]))
		}
	}
	if len(unknown) > 0 {
		for i, reply := range l.transport.Pipeline(ctx, commands) {
			replies[unknown[i]] = reply
		}
	}
	return replies
}

func isUnknownScript(err error) bool {
	return err != nil && transport.HasPrefix(err, "NOSCRIPT")
}
