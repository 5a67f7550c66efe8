package simtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// witness is one client whose calls become the history of an object.
type witness struct {
	*history
	number int
	box    *signalbox.Box
	random *rand.Rand
}

// note records a call that was made before now.
func (w *witness) note(called int64, input any) { w.add(w.number, called, w.now(), input) }

// kinds are the objects: what a client does with one, and the model of it.
var kinds = map[string]struct {
	calls int
	use   func(*witness) error
	model porcupine.Model
}{
	"rwmutex":  {12, (*witness).readOrWrite, model(signalbox.MaxReaders, true)},
	"election": {12, (*witness).campaign, model(1, false)},
	"limiter":  {8, (*witness).allow, limiterModel(20)},
	"latch":    {6, (*witness).countOrLook, latchModel(5)},
	"barrier":  {12, (*witness).cross, barrierModel(clientsOfObject)},
	"fence":    {12, (*witness).guard, fenceModel()},
}

const clientsOfObject = 4

// TestObjectsAreLinearizable: what real clients saw over TCP could have been seen of an object that does one thing at a
// time.
func TestObjectsAreLinearizable(t *testing.T) {
	t.Parallel()
	servers := map[string]string{"engine": serveEngine(t)}
	if !testing.Short() {
		servers["redis"] = difftest.Redis(t).Addr
	}
	for server, address := range servers {
		for name, kind := range kinds {
			t.Run(server+" "+name, func(t *testing.T) {
				h := &history{begun: time.Now()}
				var work sync.WaitGroup
				for i := range clientsOfObject {
					box, err := signalbox.Open(t.Context(), "redis://"+address)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := box.Close(); err != nil {
							t.Error(err)
						}
					})
					w := &witness{h, i, box, rand.New(rand.NewPCG(7, uint64(i)))} //nolint:gosec // repeatable, not secret
					work.Go(func() {
						for range kind.calls {
							if err := kind.use(w); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				work.Wait()
				if result, _ := porcupine.CheckOperationsVerbose(kind.model, h.operations, time.Minute); result != porcupine.Ok {
					t.Errorf("%d operations are %v", len(h.operations), result)
				}
			})
		}
	}
}

// readOrWrite tries, so that a refusal has to have a reason: who waits may refuse others by that.
func (w *witness) readOrWrite() error {
	lock := w.box.RWMutex("object")
	side, o := lock.Read(), operation{verb: acquires, label: w.label(), weight: 1}
	if w.random.IntN(3) == 0 {
		side, o.weight = lock.Write(), signalbox.MaxReaders
	}
	ctx, called := context.Background(), w.now()
	lease, err := side.TryAcquire(ctx)
	if errors.Is(err, signalbox.ErrBusy) {
		o.verb = tries
		w.note(called, o)
		return nil
	}
	if err != nil {
		return err
	}
	o.token = lease.Token()
	w.note(called, o)
	for range w.random.IntN(3) {
		if o.weight, err = w.change(lock, lease, o); err != nil {
			return err
		}
	}
	called = w.now()
	o.verb = releases
	err = lease.Release(ctx)
	w.note(called, o)
	return err
}

// change upgrades or downgrades, and returns the weight after that.
func (w *witness) change(lock *signalbox.RWMutex, lease *signalbox.Lease, o operation) (weight int, err error) {
	o.verb, o.to = reweighs, 1
	change := lock.Downgrade
	if o.weight == 1 {
		o.to, change = signalbox.MaxReaders, lock.Upgrade
	}
	called := w.now()
	err = change(context.Background(), lease)
	if errors.Is(err, signalbox.ErrBusy) {
		o.verb = keeps
		w.note(called, o)
		return o.weight, nil
	}
	o.token = lease.Token()
	w.note(called, o)
	return o.to, err
}

func (w *witness) label() string { return fmt.Sprintf("client%d#%d", w.number, w.now()) }

func (w *witness) campaign() error {
	ctx, election := context.Background(), w.box.Election("object e")
	called := w.now()
	if w.random.IntN(2) == 0 {
		leader, err := election.Leader(ctx)
		w.note(called, operation{verb: looks, token: leader.Term})
		return err
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		return err
	}
	o := operation{verb: acquires, label: w.label(), weight: 1, token: term.Token()}
	w.note(called, o)
	called = w.now()
	o.verb = releases
	err = term.Resign(ctx)
	w.note(called, o)
	return err
}

func (w *witness) allow() error {
	const every = 10 * 24 * time.Hour
	ctx, cost, called := context.Background(), 1+w.random.IntN(3), w.now()
	limiter := w.box.Limiter("object", signalbox.Every(every), signalbox.Burst(20))
	var late *signalbox.RateError
	err := limiter.Allow(ctx, cost)
	switch {
	case err == nil:
		w.note(called, allowance{cost: cost})
	case errors.As(err, &late):
		w.note(called, allowance{cost, int((late.RetryAfter + every - 1) / every)})
	default:
		return err
	}
	return nil
}

func (w *witness) countOrLook() error {
	ctx, latch := context.Background(), w.box.Latch("object", 5)
	called := w.now()
	party := fmt.Sprint("party", w.random.IntN(5))
	switch w.random.IntN(3) {
	case 0:
		missing, err := latch.Missing(ctx)
		w.note(called, tally{"", missing})
		return err
	case 1:
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := latch.Await(ctx); err == nil {
			w.note(called, tally{"", 0})
		}
		return nil
	}
	missing, err := latch.CountDown(ctx, party)
	w.note(called, tally{party, missing})
	return err
}

func (w *witness) cross() error {
	called := w.now()
	round, err := w.box.Barrier("object", clientsOfObject).Wait(context.Background())
	w.note(called, crossing{false, round})
	w.note(called, crossing{true, round})
	return err
}

// guard writes and reads with tokens that come in no order.
func (w *witness) guard() error {
	fence := w.box.Fence("guarded object")
	g := guarded{token: 1 + w.now()/1000 + int64(w.random.IntN(500)), writes: w.random.IntN(2) == 0}
	called := w.now()
	var err error
	if g.writes {
		g.value = w.label()
		_, err = fence.Do(context.Background(), g.token, "set", g.value)
	} else {
		var read any
		read, err = fence.Do(context.Background(), g.token, "get")
		g.value, _ = read.(string) // nil before the first write
	}
	var stale *signalbox.StaleError
	if errors.As(err, &stale) {
		g.newest, err = stale.Newest, nil
	}
	w.note(called, g)
	return err
}

// The models refuse what must not happen: without that, every history would pass.
func TestObjectsRefuseWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	reader, other := operation{verb: acquires, label: "a", weight: 1, token: 1}, operation{verb: acquires, label: "b", weight: 1, token: 2}
	writer := operation{verb: acquires, label: "w", weight: signalbox.MaxReaders, token: 3}
	upgrade := operation{verb: reweighs, label: "a", weight: 1, to: signalbox.MaxReaders, token: 4}
	kept := operation{verb: keeps, label: "a", weight: 1, to: signalbox.MaxReaders}
	for _, test := range []struct {
		name  string
		kind  string
		calls []any
		want  bool
	}{
		{"readers together", "rwmutex", []any{reader, other, kept}, true},
		{"reader with writer", "rwmutex", []any{reader, writer}, false},
		{"upgrade beside a reader", "rwmutex", []any{reader, other, upgrade}, false},
		{"upgrade alone", "rwmutex", []any{reader, upgrade}, true},
		{"upgrade refused alone", "rwmutex", []any{reader, kept}, false},
		{"leader", "election", []any{reader, operation{verb: looks, token: 1}}, true},
		{"leader of the term before", "election", []any{operation{verb: looks, token: 1}}, false},
		{"within the burst", "limiter", []any{allowance{20, 0}, allowance{2, 2}}, true},
		{"beyond the burst", "limiter", []any{allowance{20, 0}, allowance{1, 0}}, false},
		{"promised too early", "limiter", []any{allowance{20, 0}, allowance{3, 2}}, false},
		{"counted twice", "latch", []any{tally{"a", 4}, tally{"a", 4}, tally{"", 4}}, true},
		{"open too early", "latch", []any{tally{"a", 4}, tally{"", 0}}, false},
		{"through with one missing", "barrier", []any{crossing{false, 1}, crossing{false, 1}, crossing{false, 1}, crossing{true, 1}}, false},
		{"through together", "barrier", []any{crossing{false, 1}, crossing{false, 1}, crossing{false, 1}, crossing{false, 1}, crossing{true, 1}}, true},
		{"two rounds at once", "barrier", []any{crossing{false, 1}, crossing{false, 2}}, false},
		{"newest writes", "fence", []any{guarded{5, true, "x", 0}, guarded{5, false, "x", 0}}, true},
		{"stale write", "fence", []any{guarded{5, true, "x", 0}, guarded{4, true, "y", 0}}, false},
		{"stale read", "fence", []any{guarded{5, true, "x", 0}, guarded{6, false, "", 0}}, false},
		{"refused without reason", "fence", []any{guarded{5, true, "x", 0}, guarded{6, true, "y", 5}}, false},
	} {
		h := &history{}
		for i, input := range test.calls {
			h.add(0, int64(2*i), int64(2*i+1), input)
		}
		if got := porcupine.CheckOperations(kinds[test.kind].model, h.operations); got != test.want {
			t.Errorf("%s: linearizable %v, want %v", test.name, got, test.want)
		}
	}
}
