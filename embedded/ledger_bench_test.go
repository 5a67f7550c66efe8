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

// ledgerCycles are what is measured, each made ready by its first function.
var ledgerCycles = []struct {
	name  string
	ready func(ledgerLab)
	cycle func(ledgerLab)
}{
	{"alone", func(ledgerLab) {}, func(l ledgerLab) {
		l.acquire("a:1", 0, ledger.Granted)
		l.release("a:1")
	}},
	{"beside another holder", func(l ledgerLab) { l.acquire("b:1", 0, ledger.Granted) }, func(l ledgerLab) {
		l.acquire("a:1", 0, ledger.Granted)
		l.release("a:1")
	}},
	{"acquire again", func(ledgerLab) {}, func(l ledgerLab) { l.acquire("a:1", 0, ledger.Granted) }},
	{"handed on", func(l ledgerLab) {
		l.acquire("a:1", 0, ledger.Granted)
		l.acquire("b:1", 0, ledger.Granted)
	}, func(l ledgerLab) {
		l.acquire("c:1", time.Minute, ledger.Waiting)
		l.release("a:1")
		l.acquire("a:1", time.Minute, ledger.Waiting)
		l.release("c:1")
	}},
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
