package signalbox_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
	"github.com/signalbox-io/signalbox/internal/transport/over"
)

// busyServer takes its time for every command, one after the other, in virtual time. Who does not wait for the answer any
// longer is told so, and the server goes on with it all the same.
type busyServer struct {
	transport.Transport
	each     time.Duration
	perWord  time.Duration
	turn     chan struct{}
	commands atomic.Int64
}

func (s *busyServer) Do(ctx context.Context, command transport.Command) (any, error) {
	reply := s.Pipeline(ctx, []transport.Command{command})[0]
	return reply.Value, reply.Err
}

func (s *busyServer) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	answered := make(chan []transport.Reply, 1)
	go func() {
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		for _, command := range commands {
			time.Sleep(s.each + time.Duration(len(command.Words))*s.perWord)
		}
		s.commands.Add(int64(len(commands)))
		answered <- s.Transport.Pipeline(context.WithoutCancel(ctx), commands)
	}()
	late := make(<-chan time.Time)
	if until, limited := ctx.Deadline(); limited {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case replies := <-answered:
		return replies
	case <-late:
		return transport.Failed(len(commands), os.ErrDeadlineExceeded)
	case <-ctx.Done():
		return transport.Failed(len(commands), ctx.Err())
	}
}

// A process that asks for far more than the server can take at once is slow, and nothing worse: everybody has his turn,
// nobody is told that the server is away, and a lease beside them is kept.
func TestOverloadIsNoFailure(t *testing.T) {
	for _, test := range []struct{ goroutines, names, turns int }{
		{4000, 400, 2}, // heartbeats alone would be most of what the server can do
		{4000, 40, 1},
	} {
		t.Run(fmt.Sprintf("%d on %d names", test.goroutines, test.names), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { overload(t, scaled(test.goroutines), scaled(test.names), test.turns) })
		})
	}
}

func overload(t *testing.T, goroutines, names, turns int) {
	box, server := busyBox(t)
	beside, err := box.Mutex("beside").Acquire(t.Context(), signalbox.TTL(5*time.Second))
	must(t, err)
	server.each, server.perWord = 2*time.Millisecond, 50*time.Microsecond
	var failed, lost atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for i := range goroutines {
		all.Go(func() {
			for range turns {
				lease, err := box.Mutex(strconv.Itoa(i % names)).Acquire(t.Context())
				if err != nil {
					if failed.Add(1) == 1 {
						t.Error(err)
					}
					continue
				}
				if err := lease.Release(t.Context()); err != nil && lost.Add(1) == 1 {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	took, done, commands := time.Since(begin), int64(goroutines*turns), server.commands.Load()
	t.Logf("%d turns in %v, %d commands", done, took, commands)
	if failed.Load()+lost.Load() > 0 {
		t.Errorf("%d of %d were refused, %d lost their lease", failed.Load(), done, lost.Load())
	}
	if most := 6 * done; commands > most {
		t.Errorf("%d commands for %d turns, want %d at most", commands, done, most)
	}
	if beside.Err() != nil {
		t.Errorf("the lease beside them: %v", beside.Err())
	}
	begin = time.Now()
	must(t, box.Mutex("after").Do(t.Context(), func(context.Context) error { return nil }))
	if took := time.Since(begin); took > time.Second {
		t.Errorf("when it is over a mutex takes %v", took)
	}
	must(t, beside.Release(t.Context()))
	forgotten(t, box)
}

// busyBox is a Box on an engine of its own, which is as quick as can be until told otherwise.
func busyBox(t *testing.T) (*signalbox.Box, *busyServer) {
	t.Helper()
	kept, err := engine.Open(engine.Options{})
	must(t, err)
	client := redis.NewClient(&redis.Options{
		Dialer:     func(context.Context, string, string) (net.Conn, error) { return kept.Dial() },
		MaxRetries: -1, DisableIdentity: true, Addr: "engine", PoolSize: 6000,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	server := &busyServer{Transport: goredis.New(client), turn: make(chan struct{}, 1)}
	box := over.New(server)
	t.Cleanup(func() {
		must(t, box.Close())
		must(t, client.Close())
		must(t, kept.Close())
	})
	return box, server
}
