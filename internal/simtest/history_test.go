package simtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// recorder is one client whose calls become history.
type recorder struct {
	*history
	number  int
	box     *signalbox.Box
	limit   int
	waits   bool
	random  *rand.Rand
	cancels int // how many acquires it may still give up: each doubles what porcupine has to try
}

func (r *recorder) run(calls int) error {
	for i := range calls {
		o := operation{
			resource: fmt.Sprintf("limit %d number %d", r.limit, r.random.IntN(2)),
			label:    fmt.Sprintf("client%d#%d", r.number, i), weight: 1 + r.random.IntN(r.limit),
		}
		lease, err := r.acquire(o)
		if err == nil && lease != nil {
			err = r.release(o, lease)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) acquire(o operation) (*signalbox.Lease, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	semaphore := r.box.Semaphore(o.resource, r.limit)
	acquire := semaphore.TryAcquire
	if r.waits && r.random.IntN(4) > 0 {
		acquire = semaphore.Acquire
	}
	if r.cancels > 0 && r.random.IntN(4) == 0 {
		r.cancels--
		stop := time.AfterFunc(time.Duration(r.random.IntN(int(time.Millisecond))), cancel)
		defer stop.Stop()
	}
	called := r.now()
	lease, err := acquire(ctx, signalbox.Weight(o.weight))
	switch {
	case err == nil:
		o.verb, o.token = acquires, lease.Token()
		r.add(r.number, called, r.now(), o)
	case errors.Is(err, signalbox.ErrBusy):
		o.verb = tries
		r.add(r.number, called, r.now(), o)
	case ctx.Err() != nil:
		for _, o.verb = range []verb{mayTake, mayGive} {
			r.add(r.number, called, never, o)
		}
	default:
		return nil, err
	}
	return lease, nil
}

// release holds for as long as one look at the resource takes, sometimes.
func (r *recorder) release(o operation, lease *signalbox.Lease) error {
	ctx := context.Background()
	if r.random.IntN(2) == 0 {
		if _, err := r.box.Inspect(ctx, o.resource); err != nil {
			return err
		}
	}
	called := r.now()
	if err := lease.Release(ctx); err != nil {
		return err
	}
	o.verb = releases
	r.add(r.number, called, r.now(), o)
	return nil
}

func record(t *testing.T, address string, limit int, waits bool) []porcupine.Operation {
	t.Helper()
	const boxes, clients, calls = 3, 2, 40
	h := &history{begun: time.Now()}
	var work sync.WaitGroup
	for i := range boxes {
		box, err := signalbox.Open(t.Context(), "redis://"+address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		}()
		for j := range clients {
			number := i*clients + j
			r := &recorder{
				history: h, number: number, box: box, limit: limit, waits: waits, cancels: 2,
				random: rand.New(rand.NewPCG(uint64(limit), uint64(number))), //nolint:gosec // repeatable, not secret
			}
			work.Go(func() {
				if err := r.run(calls); err != nil {
					t.Error(err)
				}
			})
		}
	}
	work.Wait()
	return h.operations
}

// What real clients saw over TCP could have been seen of a ledger that does one thing at a time.
func TestHistoriesAreLinearizable(t *testing.T) {
	servers := map[string]func(*testing.T) string{"engine": serveEngine}
	if !testing.Short() {
		servers["redis"] = func(t *testing.T) string { return difftest.Redis(t).Addr }
	}
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			address := serve(t)
			for _, limit := range []int{1, 3} {
				for _, waits := range []bool{false, true} {
					operations := record(t, address, limit, waits)
					result, _ := porcupine.CheckOperationsVerbose(model(limit, !waits), operations, time.Minute)
					if result != porcupine.Ok {
						t.Errorf("limit %d, waits %v: %d operations are %v", limit, waits, len(operations), result)
					}
				}
			}
		})
	}
}

func serveEngine(t *testing.T) string {
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// The model refuses what must not happen: without that, every history would pass.
func TestTheModelRefusesWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	a := operation{resource: "r", verb: acquires, label: "a", weight: 1, token: 5}
	b := operation{resource: "r", verb: acquires, label: "b", weight: 1, token: 6}
	old := operation{resource: "r", verb: acquires, label: "b", weight: 1, token: 5}
	freeA, lostB := operation{resource: "r", verb: releases, label: "a", weight: 1}, operation{
		resource: "r", verb: mayTake, label: "b", weight: 1,
	}
	busy := operation{resource: "r", verb: tries, label: "c", weight: 1}
	for _, test := range []struct {
		name  string
		calls []operation
		want  bool
	}{
		{"one after the other", []operation{a, freeA, b}, true},
		{"two at once", []operation{a, b}, false},
		{"a token twice", []operation{a, freeA, old}, false},
		{"busy without a holder", []operation{a, freeA, busy}, false},
		{"busy behind an unknown acquire", []operation{a, freeA, lostB, busy}, true},
		{"a release without a lease", []operation{freeA}, false},
	} {
		h := &history{}
		for i, o := range test.calls {
			h.add(0, int64(2*i), int64(2*i+1), o)
		}
		if got := porcupine.CheckOperations(model(1, true), h.operations); got != test.want {
			t.Errorf("%s: linearizable %v, want %v", test.name, got, test.want)
		}
	}
}
