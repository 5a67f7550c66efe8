package ledger

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
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
		"--@include read.lua\n", read, "--@include prelude.lua\n", prelude, "--@include functions.lua\n", functions)

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

	acquireScript    = newScript(acquireText)
	releaseScript    = newScript(releaseText)
	renewScript      = newScript(renewText)
	cancelScript     = newScript(cancelText)
	resizeScript     = newScript(resizeText)
	inspectScript    = newScript(inspectText)
	forceScript      = newScript(forceText)
	acquireGroupScript = newScript(acquireGroupText)
	reweighScript    = newScript(reweighText)
	raiseScript      = newScript(raiseText)
	watchScript      = newScript(watchText)
	limitScript      = newScript(limitText)
	refundScript     = newScript(refundText)
	latchScript      = newScript(latchText)
	barrierScript    = newScript(barrierText)
)

// script is one transition: its text with what it includes, and the digest the server knows it by.
type script struct {
	text, digest string
}

func newScript(transition string) *script {
	text := includes.Replace(includes.Replace(transition)) // prelude.lua includes read.lua
	sum := sha1.Sum([]byte(text))                          //nolint:gosec // as above
	return &script{text, hex.EncodeToString(sum[:])}
}

// call is one transition with its arguments.
type call struct {
	script   *script
	resource *Resource
	args     []any
}

// reply is what the server answered to a call.
type reply struct {
	value any
	err   error
}

// run makes one call: by digest, and with the whole text if the server does not know it (yet, or not any more).
func (l *Ledger) run(ctx context.Context, c call) (any, error) {
	value, err := l.client.EvalSha(ctx, c.script.digest, c.resource.keys, c.args...).Result()
	if isUnknownScript(err) {
		return l.client.Eval(ctx, c.script.text, c.resource.keys, c.args...).Result()
	}
	return value, err
}

// runAll makes the calls in one pipeline, and those that met NOSCRIPT in a second one with the whole text.
func (l *Ledger) runAll(ctx context.Context, calls []call) []reply {
	replies := make([]reply, len(calls))
	all := make([]int, len(calls))
	for i := range all {
		all[i] = i
	}
	l.pipeline(ctx, calls, replies, all, func(p redis.Pipeliner, c call) *redis.Cmd {
		return p.EvalSha(ctx, c.script.digest, c.resource.keys, c.args...)
	})
	var unknown []int
	for i := range replies {
		if isUnknownScript(replies[i].err) {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > 0 {
		l.pipeline(ctx, calls, replies, unknown, func(p redis.Pipeliner, c call) *redis.Cmd {
			return p.Eval(ctx, c.script.text, c.resource.keys, c.args...)
		})
	}
	return replies
}

// pipeline sends the calls with the given indexes by `send` and puts their replies in place.
func (l *Ledger) pipeline(
	ctx context.Context, calls []call, replies []reply, indexes []int, send func(redis.Pipeliner, call) *redis.Cmd,
) {
	p := l.client.Pipeline()
	sent := make([]*redis.Cmd, len(indexes))
	for i, index := range indexes {
		sent[i] = send(p, calls[index])
	}
	// Exec returns the first error of any command; each command keeps its own.
	_, err := p.Exec(ctx)
	for i, index := range indexes {
		replies[index].value, replies[index].err = sent[i].Result()
		if replies[index].err == nil && sent[i].Val() == nil {
			replies[index].err = err
		}
	}
}

func isUnknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
