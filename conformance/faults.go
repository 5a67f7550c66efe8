package conformance

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// fault is what a test puts between a Box and its transport.
type fault interface {
	transport.Transport
	over(inner transport.Transport)
}

// faults counts commands, loses requests and loses replies. Messages of pub/sub pass through it.
type faults struct {
	transport.Transport
	sent         atomic.Int64
	done         atomic.Int64 // so many were executed, and answered without an error
	loseRequests atomic.Int64 // so many of the next never reach the server
	loseReplies  atomic.Int64 // so many of the next are executed, and nobody hears of it
	delay        atomic.Pointer[chan struct{}]
}

func (f *faults) over(inner transport.Transport) { f.Transport = inner }

// Do is part of transport.Transport.
func (f *faults) Do(ctx context.Context, command transport.Command) (any, error) {
	f.sent.Add(1)
	if gate := f.delay.Load(); gate != nil {
		return f.late(ctx, *gate, command)
	}
	if f.loseRequests.Add(-1) >= 0 {
		return nil, io.ErrUnexpectedEOF
	}
	value, err := f.Transport.Do(ctx, command)
	if err == nil {
		f.done.Add(1)
	}
	if command.Key != 0 && f.loseReplies.Add(-1) >= 0 { // not of INFO, which a Box sends when it meets a server
		return nil, io.ErrUnexpectedEOF
	}
	return value, err
}

// late has a request reach the server once the gate is open, whether its client still waits for the answer or not.
func (f *faults) late(ctx context.Context, gate <-chan struct{}, command transport.Command) (any, error) {
	answered := make(chan transport.Reply, 1)
	go func() {
		<-gate
		value, err := f.Transport.Do(context.WithoutCancel(ctx), command)
		answered <- transport.Reply{Value: value, Err: err}
	}()
	select {
	case reply := <-answered:
		return reply.Value, reply.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Pipeline is part of transport.Transport.
func (f *faults) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	return f.several(ctx, commands, f.Transport.Pipeline)
}

// Together is part of transport.Transport.
func (f *faults) Together(ctx context.Context, commands []transport.Command) []transport.Reply {
	return f.several(ctx, commands, f.Transport.Together)
}

func (f *faults) several(
	ctx context.Context, commands []transport.Command, send func(context.Context, []transport.Command) []transport.Reply,
) []transport.Reply {
	f.sent.Add(int64(len(commands)))
	if gate := f.delay.Load(); gate != nil {
		<-*gate
		return send(context.WithoutCancel(ctx), commands)
	}
	if f.loseRequests.Add(-1) >= 0 {
		return transport.Failed(len(commands), io.ErrUnexpectedEOF)
	}
	replies := send(ctx, commands)
	for i := range replies {
		if replies[i].Err == nil {
			f.done.Add(1)
		}
	}
	if f.loseReplies.Add(-1) >= 0 {
		return transport.Failed(len(commands), io.ErrUnexpectedEOF)
	}
	return replies
}
