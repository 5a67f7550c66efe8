package embedded

import (
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// ledgerLab is a ledger on an engine in the same process: the transitions, and no library around them.
type ledgerLab struct {
	tb       testing.TB
	ledger   *ledger.Ledger
	resource *ledger.Resource
}

func newLedgerLab(tb testing.TB) ledgerLab {
	tb.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	resource, err := ledger.NewResource("r")
	if err != nil {
		tb.Fatal(err)
	}
	return ledgerLab{tb, ledger.New(direct{engine: e}), resource}
}

func (l ledgerLab) acquire(id string, wait time.Duration, want ledger.Outcome) {
	l.tb.Helper()
	answer, err := l.ledger.Acquire(l.tb.Context(), &ledger.AcquireRequest{
		Resource: l.resource, ID: id, Weight: 1, Limit: 2, TTL: 30 * time.Second, Wait: wait, Claim: 3 * time.Second, Owner: "host pid",
	})
	if err != nil || answer.Outcome != want {
		l.tb.Fatalf("acquire: %v, %v; want %v", answer, err, want)
	}
}

func (l ledgerLab) release(id string) {
	l.tb.Helper()
	if hold, err := l.ledger.Release(l.tb.Context(), l.resource, id); err != nil || hold != ledger.Held {
		l.tb.Fatalf("release: %v, %v", hold, err)
	}
}

// ledgerCycles are what is measured, each made ready by its first function, and how many allocations one may take.
var ledgerCycles = []struct {
	name   string
	budget float64
	ready  func(ledgerLab)
	cycle  func(ledgerLab)
}{
	{"alone", 95, func(ledgerLab) {}, func(l ledgerLab) {
		l.acquire("a:1", 0, ledger.Granted)
		l.release("a:1")
	}},
	{"beside another holder", 350, func(l ledgerLab) { l.acquire("b:1", 0, ledger.Granted) }, func(l ledgerLab) {
		l.acquire("a:1", 0, ledger.Granted)
		l.release("a:1")
	}},
	{"acquire again", 190, func(ledgerLab) {}, func(l ledgerLab) { l.acquire("a:1", 0, ledger.Granted) }},
	{"handed on", 860, func(l ledgerLab) {
		l.acquire("a:1", 0, ledger.Granted)
		l.acquire("b:1", 0, ledger.Granted)
	}, func(l ledgerLab) {
		l.acquire("c:1", time.Minute, ledger.Waiting)
		l.release("a:1")
		l.acquire("a:1", time.Minute, ledger.Waiting)
		l.release("c:1")
	}},
}

// TestTransitionsAllocateLittle holds the interpreter, and the scripts themselves, to their budgets.
func TestTransitionsAllocateLittle(t *testing.T) {
	for _, c := range ledgerCycles {
		t.Run(c.name, func(t *testing.T) {
			l := newLedgerLab(t)
			c.ready(l)
			c.cycle(l)
			if n := testing.AllocsPerRun(100, func() { c.cycle(l) }); n > c.budget {
				t.Errorf("%v allocations, at most %v are allowed", n, c.budget)
			}
		})
	}
}

func BenchmarkLedger(b *testing.B) {
	for _, c := range ledgerCycles {
		b.Run(c.name, func(b *testing.B) {
			l := newLedgerLab(b)
			c.ready(l)
			b.ReportAllocs()
			for b.Loop() {
				c.cycle(l)
			}
		})
	}
}
