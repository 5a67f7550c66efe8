package ledger

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/signalbox-io/signalbox/internal/transport"
)

var (
	//go:embed read.lua
	read string
	//go:embed prelude.lua
	prelude string
	//go:embed functions.lua
	functions string

	// Initialised before the scripts, which depend on it.
	includes = strings.NewReplacer(
		"--@include read.lua\n", read, "--@include prelude.lua\n", prelude, includeFunctions, "return (function()\n"+functions)

	//go:embed acquire.lua
	acquireText string
	//go:embed release.lua
	releaseText string
	//go:embed renew.lua
	renewText string
	//go:embed cancel.lua
	cancelText string
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
	resizeScript       = newScript(resizeText)
	inspectScript      = newScript(inspectText)
	forceScript        = newScript(forceText)
	acquireGroupScript = newScript(acquireGroupText)
	reweighScript      = newScript(reweighText)
	raiseScript        = newScript(raiseText)
	watchScript        = newScript(watchText)
	limitScript        = newScript(limitText)
	refundScript       = newScript(refundText)
	latchScript        = newScript(latchText)
	barrierScript      = newScript(barrierText)
	fenceScript        = newScript(fenceText)
)

// script is one transition: its text with what it includes, and the digest the server knows it by. Both are words of
// commands, put into their interface once.
type script struct {
	text, digest any
}

// includeFunctions begins a function that holds functions.lua and the rest of the transition.
const includeFunctions = "--@include functions.lua\n"

func newScript(transition string) *script {
	text := includes.Replace(includes.Replace(transition)) // prelude.lua includes read.lua
	if strings.Contains(transition, includeFunctions) {
		text += "end)()\n"
	}
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{text, hex.EncodeToString(sum[:])}
}

// call is one transition with its arguments.
type call struct {
	script *script
	keys   []any
	args   []any
}

// byDigest is the command for a server that knows the script, byText for one that does not.
func (c call) byDigest() transport.Command { return c.command("evalsha", c.script.digest) }
func (c call) byText() transport.Command   { return c.command("eval", c.script.text) }

func (c call) command(name, script any) transport.Command {
	words := make([]any, 0, 3+len(c.keys)+len(c.args))
	words = append(words, name, script, len(c.keys))
	words = append(words, c.keys...)
	return transport.Command{Words: append(words, c.args...), Key: 3}
}

// run makes one call: by digest, and with the whole text if the server does not know it (yet, or not any more).
func (l *Ledger) run(ctx context.Context, c call) (any, error) {
	value, err := l.transport.Do(ctx, c.byDigest())
	if isUnknownScript(err) {
		return l.transport.Do(ctx, c.byText())
	}
	return value, err
}

// runAll makes the calls in one pipeline, and those that met NOSCRIPT in a second one with the whole text.
func (l *Ledger) runAll(ctx context.Context, calls []call) []transport.Reply {
	commands := make([]transport.Command, len(calls))
	for i, c := range calls {
		commands[i] = c.byDigest()
	}
	replies := l.transport.Pipeline(ctx, commands)
	var unknown []int
	commands = commands[:0]
	for i, reply := range replies {
		if isUnknownScript(reply.Err) {
			unknown, commands = append(unknown, i), append(commands, calls[i].byText())
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
