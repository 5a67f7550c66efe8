package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// cluster is one whose channels are where the test says. Servers tell who has joined them.
type cluster struct {
	mu     sync.Mutex
	at     map[string]string // channel -> server; "": out of reach
	ears   map[string]*fakeEar
	did    []string
	opened int
}

func (c *cluster) Sharded() bool { return true }

func (c *cluster) Ear(_ context.Context, channel string) (transport.Ear, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at[channel] == "" {
		c.did = append(c.did, "no "+channel)
		return nil, errors.New("out of reach")
	}
	return &fakeEar{cluster: c, server: c.at[channel], events: make(chan transport.Event, 10), cut: make(chan struct{})}, nil
}

// done returns what was done since the last time.
func (c *cluster) done() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.did)
	did := strings.Join(c.did, ", ")
	c.did = nil
	return did
}

func (c *cluster) move(channel, server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[channel] = server
}

func (c *cluster) ear(server string) *fakeEar {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ears[server]
}

type fakeEar struct {
	*cluster
	server string
	events chan transport.Event
	cut    chan struct{}
}

func (e *fakeEar) Server() string { return e.server }

func (e *fakeEar) Join(_ context.Context, channel string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ears[e.server] == nil {
		e.ears[e.server] = e
		e.opened++
	}
	e.did = append(e.did, "join "+channel+" at "+e.server)
	e.events <- transport.Event{Channel: channel, Subscribed: true}
	return nil
}

func (e *fakeEar) Leave(_ context.Context, channel string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.did = append(e.did, "leave "+channel)
	return nil
}

func (e *fakeEar) Hear(ctx context.Context, hear func(transport.Event)) error {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.ears, e.server)
	}()
	for {
		select {
		case event := <-e.events:
			hear(event)
		case <-e.cut:
			return errors.New("cut")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{at: map[string]string{"a": "1", "b": "1", "c": "2"}, ears: map[string]*fakeEar{}}
		var mu sync.Mutex
		var heard []string
		s := transport.NewShards(c, func(e transport.Event) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprint(e.Channel, e.Payload, e.Subscribed))
		})
		wantHeard := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(heard)
			if diff := cmp.Diff(want, heard); diff != "" {
				t.Error("heard:\n" + diff)
			}
			heard = nil
		}
		wantDone := func(want string) {
			t.Helper()
			if got := c.done(); got != want {
				t.Errorf("did %q, want %q", got, want)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx, func(failures int) time.Duration { return time.Duration(failures) * time.Second })
		}()

		for _, channel := range []string{"a", "b", "c", "a"} {
			s.Want(channel)
		}
		wantDone("join a at 1, join b at 1, join c at 2")
		wantHeard("atrue", "btrue", "ctrue")
		c.ear("1").events <- transport.Event{Channel: "b", Payload: "hello"}
		wantHeard("bhellofalse")

		s.Drop("a") // wanted once more
		s.Drop("b")
		time.Sleep(3 * time.Second)
		s.Want("b") // soon enough
		s.Drop("c")
		time.Sleep(time.Minute)
		wantDone("leave c")

		c.move("a", "3") // the old server says so
		c.ear("1").events <- transport.Event{Channel: "a", Gone: true}
		wantDone("")
		time.Sleep(time.Second)
		wantDone("join a at 3")
		wantHeard("atrue")

		c.move("b", "") // the server is gone, and it takes a while until there is another
		close(c.ear("1").cut)
		time.Sleep(time.Second)
		wantDone("no b")
		s.Want("c")
		time.Sleep(2 * time.Second)
		wantDone("join c at 2, no b")
		c.move("b", "3")
		time.Sleep(10 * time.Second)
		wantDone("join b at 3")
		wantHeard("btrue", "ctrue")

		stop()
		<-ended
	})
}
