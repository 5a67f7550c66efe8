package ledger

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	_ "embed"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed prelude.lua
	prelude string
	//go:embed functions.lua
	functions string

	// Initialised before the scripts, which depend on it.
	includes = strings.NewReplacer("--@include prelude.lua\n", prelude, "--@include functions.lua\n", functions)

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

	acquireScript = newScript(acquireText)
	releaseScript = newScript(releaseText)
	renewScript   = newScript(renewText)
	cancelScript  = newScript(cancelText)
	resizeScript  = newScript(resizeText)
	inspectScript = newScript(inspectText)
	forceScript   = newScript(forceText)
)

// script is one transition: its text with what it includes, and the digest the server knows it by.
type script struct {
	text, digest string
}

func newScript(transition string) *script {
	text := includes.Replace(transition)
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
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

// once is a command that its client must not send again by itself, as those of Clusters like to do and as others may be
// told to. A call that was run and whose reply got lost would be run twice, and the second answer be taken for the first:
// a release that found nothing, an acquire that nobody knows to be still under way.
type once struct{ *redis.Cmd }

// NoRetry is part of redis.Cmder.
func (once) NoRetry() bool { return true }

// command calls the script by what `verb` knows it by.
func (c call) command(ctx context.Context, verb, script string) once {
	words := make([]any, 0, 3+len(c.resource.keys)+len(c.args))
	words = append(words, verb, script, len(c.resource.keys))
	for _, key := range c.resource.keys {
		words = append(words, key)
	}
	cmd := redis.NewCmd(ctx, append(words, c.args...)...)
	cmd.SetFirstKeyPos(3)
	return once{cmd}
}

func (c call) byDigest(ctx context.Context) once { return c.command(ctx, "evalsha", c.script.digest) }
func (c call) byText(ctx context.Context) once   { return c.command(ctx, "eval", c.script.text) }

// run makes one call: by digest, and with the whole text if the server does not know it (yet, or not any more).
func (l *Ledger) run(ctx context.Context, c call) (any, error) {
	cmd := c.byDigest(ctx)
	// The error is the command's own, too.
	_ = l.client.Process(ctx, cmd)
	if isUnknownScript(cmd.Err()) {
		cmd = c.byText(ctx)
		_ = l.client.Process(ctx, cmd)
	}
	l.lookAround(ctx, cmd.Err())
	return cmd.Result()
}

// runAll makes the calls in one pipeline, and those that met NOSCRIPT in a second one with the whole text.
func (l *Ledger) runAll(ctx context.Context, calls []call) []reply {
	replies := make([]reply, len(calls))
	all := make([]int, len(calls))
	for i := range all {
		all[i] = i
	}
	l.pipeline(ctx, calls, replies, all, call.byDigest)
	var unknown []int
	for i := range replies {
		if isUnknownScript(replies[i].err) {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > 0 {
		l.pipeline(ctx, calls, replies, unknown, call.byText)
	}
	return replies
}

// pipeline sends the calls with the given indexes by `how` and puts their replies in place.
func (l *Ledger) pipeline(
	ctx context.Context, calls []call, replies []reply, indexes []int, how func(call, context.Context) once,
) {
	p := l.client.Pipeline()
	sent := make([]once, len(indexes))
	for i, index := range indexes {
		sent[i] = how(calls[index], ctx)
		// A pipeline only takes note of it.
		_ = p.Process(ctx, sent[i])
	}
	// Exec returns the first error of any command; each command keeps its own.
	_, err := p.Exec(ctx)
	l.lookAround(ctx, err)
	for i, index := range indexes {
		replies[index].value, replies[index].err = sent[i].Result()
		if replies[index].err == nil && sent[i].Val() == nil {
			replies[index].err = err
		}
	}
}

// lookAround has the client of a Cluster ask who serves which slots now, after a server did not answer: it may have been
// replaced, and the client would notice that by itself after ten seconds only.
func (l *Ledger) lookAround(ctx context.Context, err error) {
	var answer redis.Error
	if err == nil || errors.As(err, &answer) || errors.Is(err, context.Canceled) {
		return
	}
	if cluster, ok := l.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

func isUnknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
