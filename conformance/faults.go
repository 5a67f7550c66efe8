package conformance

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// faults stands between a client and its connections: it counts commands, loses requests and loses replies. Messages
// of pub/sub do not pass through it.
type faults struct {
	sent         atomic.Int64
	loseRequests atomic.Int64 // so many of the next never reach the server
	loseReplies  atomic.Int64 // so many of the next are executed, and nobody hears of it
	delay        atomic.Pointer[chan struct{}]
}

// DialHook is part of redis.Hook.
func (f *faults) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (f *faults) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isSetup(cmd) {
			return next(ctx, cmd)
		}
		if gate := f.delay.Load(); gate != nil {
			return f.late(ctx, *gate, cmd, next)
		}
		err := f.pass(1, func() error { return next(ctx, cmd) })
		cmd.SetErr(err)
		return err
	}
}

// late has a request reach the server once the gate is open, whether its client still waits for the answer or not.
func (f *faults) late(ctx context.Context, gate <-chan struct{}, cmd redis.Cmder, next redis.ProcessHook) error {
	f.sent.Add(1)
	onItsWay := redis.NewCmd(context.WithoutCancel(ctx), cmd.Args()...)
	answered := make(chan error, 1)
	go func() {
		<-gate
		answered <- next(context.WithoutCancel(ctx), onItsWay)
	}()
	var err error
	select {
	case err = <-answered:
		cmd.(interface{ SetVal(any) }).SetVal(onItsWay.Val())
	case <-ctx.Done():
		err = ctx.Err()
	}
	cmd.SetErr(err)
	return err
}

// ProcessPipelineHook is part of redis.Hook.
func (f *faults) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if isSetup(cmds[0]) {
			return next(ctx, cmds)
		}
		if gate := f.delay.Load(); gate != nil {
			f.sent.Add(int64(len(cmds)))
			<-*gate
			return next(context.WithoutCancel(ctx), cmds)
		}
		var answer error
		err := f.pass(len(cmds), func() error {
			answer = next(ctx, cmds)
			return answer
		})
		if !errors.Is(err, answer) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// isSetup tells what the client sends by itself: on a new connection, and to get to know a Cluster.
func isSetup(cmd redis.Cmder) bool {
	switch cmd.Name() {
	case "hello", "client", "cluster", "command":
		return true
	}
	return false
}

func (f *faults) pass(n int, next func() error) error {
	f.sent.Add(int64(n))
	if f.loseRequests.Add(-1) >= 0 {
		return io.ErrUnexpectedEOF
	}
	err := next()
	if f.loseReplies.Add(-1) >= 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
