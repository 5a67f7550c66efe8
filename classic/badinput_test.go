package classic_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

// Every argument that no call could succeed with is refused before anything is
// sent, by an error that says what is allowed.
func TestBadArgumentsAreRefusedBeforeSending(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for name, call := range badCalls(t.Context(), a.Client) {
			err := call()
			if !errors.Is(err, classic.ErrInvalid) {
				t.Errorf("%s: got %v, want ErrInvalid", name, err)
			} else if !strings.HasPrefix(err.Error(), "classic: ") {
				t.Errorf("%s: %q does not say whose error it is", name, err)
			}
		}
		wantRequests(t, a)
		s.wantNoKeys(t)
	})
}

func badCalls(ctx context.Context, c classic.Client) map[string]func() error {
	lock := func(l classic.Lock, patience time.Duration) func() error {
		return func() error { _, err := l.Acquire(ctx, patience); return err }
	}
	fairly := func(s classic.FairSemaphore) func() error {
		return func() error {
			_, err := s.Acquire(ctx)
			_, again := classic.LuaSemaphore(s).Acquire(ctx)
			_, and := classic.Semaphore(s).Acquire(ctx)
			_, under := classic.LockedSemaphore{FairSemaphore: s}.Acquire(ctx)
			for _, other := range []error{again, and, under} {
				if !errors.Is(other, classic.ErrInvalid) {
					return other
				}
			}
			return err
		}
	}
	permits := classic.ListSemaphore{Client: c, Name: "s", Limit: 2}
	trade := classic.Market{Client: c}
	q := classic.Queue{Client: c, Name: "q"}
	return map[string]func() error{
		"no server":            lock(classic.Lock{Name: "l"}, time.Second),
		"no lock's name":       lock(classic.Lock{Client: c}, time.Second),
		"negative timeout":     lock(classic.Lock{Client: c, Name: "l", Timeout: -1}, time.Second),
		"no patience":          lock(classic.Lock{Client: c, Name: "l"}, 0),
		"no timeout":           func() error { _, err := classic.LuaLock{Client: c, Name: "l"}.Acquire(ctx, 1); return err },
		"binary lock, no name": func() error { _, err := classic.BinaryLock{Client: c}.Acquire(ctx, 1); return err },
		"binary lock, no wait": func() error { _, err := classic.BinaryLock{Client: c, Name: "l"}.Acquire(ctx, 0); return err },
		"no semaphore's name":  fairly(classic.FairSemaphore{Client: c, Limit: 1, Timeout: 1}),
		"limit 0":              fairly(classic.FairSemaphore{Client: c, Name: "s", Timeout: 1}),
		"permit without end":   fairly(classic.FairSemaphore{Client: c, Name: "s", Limit: 1}),
		"refresh of no id": func() error {
			return classic.FairSemaphore{Client: c, Name: "s", Limit: 1, Timeout: 1}.Refresh(ctx, "")
		},
		"too many permits":      func() error { _, err := classic.ListSemaphore{Client: c, Name: "s", Limit: 1e9}.Init(ctx); return err },
		"no such permit":        func() error { return permits.Release(ctx, "3") },
		"no number":             func() error { _, err := permits.ReleaseCount(ctx, "01"); return err },
		"holding what is not":   func() error { _, err := permits.Restore(ctx, "0"); return err },
		"no wait for a permit":  func() error { _, err := permits.Acquire(ctx, 0); return err },
		"no task's name":        func() error { return q.Push(ctx, "") },
		"arguments that cannot": func() error { return q.Push(ctx, "send", make(chan int)) },
		"no queue's name":       func() error { _, err := classic.Queue{Client: c}.PushLater(ctx, 1, "send"); return err },
		"no queue":              func() error { _, err := classic.Worker{Client: c}.RunOne(ctx); return err },
		"one queue without":     func() error { _, err := classic.Worker{Client: c, Queues: []string{"q", ""}}.RunOne(ctx); return err },
		"negative wait": func() error {
			_, err := classic.Worker{Client: c, Queues: []string{"q"}, Wait: -1}.RunOne(ctx)
			return err
		},
		"no server to move on": func() error { _, err := classic.Mover{}.MoveOne(ctx); return err },
		"price 0":              func() error { return trade.List(ctx, "ring", "ann", 0) },
		"price too large":      func() error { return trade.Purchase(ctx, "bob", "ring", "ann", 1<<53+1) },
		"item with a dot":      func() error { return trade.PurchaseLocked(ctx, "bob", "r.ing", "ann") },
		"no buyer":             func() error { return trade.PurchaseScript(ctx, "", "ring", "ann") },
		"no user":              func() error { return classic.Logins{Client: c}.UpdateToken(ctx, "t", "", "") },
		"no token":             func() error { return classic.Logins{Client: c}.UpdateTokenPipelined(ctx, "", "ann", "") },
		"no recipient's name": func() error {
			_, err := classic.Chat{Client: c}.Create(ctx, "ann", "hello", "bob", "")
			return err
		},
		"no sender":           func() error { return classic.Chat{Client: c}.Send(ctx, "1", "", "hello") },
		"no chat":             func() error { return classic.Chat{Client: c}.Join(ctx, "", "ann") },
		"chat of that name":   func() error { return classic.Chat{Client: c}.Leave(ctx, "chat", "ann") },
		"nobody to fetch for": func() error { _, err := classic.Chat{Client: c}.Fetch(ctx, ""); return err },
		"no files":            func() error { return classic.Progress{Client: c}.Process(ctx, nil, nil) },
		"no replica":          func() error { return classic.WaitForSync(ctx, c, nil) },
	}
}

func TestEndedContextIsHeard(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		ctx, cancel := context.WithCancel(t.Context())
		held := classic.Lock{Client: s.actor(t, "b").Client, Name: "l"}
		get(held.Acquire(ctx, brief))(t)
		cancel()
		a := s.actor(t, "a")
		_, err := classic.Lock{Client: a.Client, Name: "l"}.Acquire(ctx, time.Hour)
		wantErr(t, err, context.Canceled)
		_, err = fair(a, 1).Acquire(ctx)
		wantErr(t, err, context.Canceled)
		wantErr(t, classic.Mover{Client: a.Client}.Run(ctx), context.Canceled)
		s.wantNoKeys(t, "lock:l")
	})
}

// A key of another type is an error of the server, and changes nothing.
func TestKeysOfAnotherTypeAreErrors(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for _, key := range []string{"lock:l", "binary:l", "permits:lines", "queue:q", "delayed:", "market:"} {
			must(t, s.admin.HSet(t.Context(), key, "f", "v").Err())
		}
		must(t, s.admin.SAdd(t.Context(), "inventory:ann", "ring").Err())
		for name, call := range map[string]func() error{
			"release":     func() error { return classic.Lock{Client: a.Client, Name: "l"}.Release(t.Context(), "x") },
			"lua release": func() error { return classic.LuaLock{Client: a.Client, Name: "l"}.Release(t.Context(), "x") },
			"binary lock": func() error { return classic.BinaryLock{Client: a.Client, Name: "l"}.Release(t.Context(), "x") },
			"permit":      func() error { _, err := list(a).Acquire(t.Context(), shortWait); return err },
			"push":        func() error { return queue(a, "q").Push(t.Context(), "send") },
			"move":        func() error { _, err := classic.Mover{Client: a.Client}.MoveOne(t.Context()); return err },
			"list":        func() error { return market(a).Purchase(t.Context(), "bob", "ring", "ann", 1) },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s: got %v, want WRONGTYPE", name, err)
			}
		}
	})
}
