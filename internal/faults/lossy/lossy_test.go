package lossy_test

import (
	"errors"
	"testing"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// TestLastWritesLost: no library can keep two holders apart when the server forgot the first. What it can do, and does:
// the later token is larger, so a store that checks tokens refuses the first holder from then on; and that one is told.
func TestLastWritesLost(t *testing.T) {
	faults.Begin(t)
	p := startPair(t, inTime)
	first, second := p.box(), p.box()
	must(t, acquire(t, first, "m").Release(t.Context()))
	p.caughtUp()
	p.holdBack()
	lost := acquire(t, first, "m")
	p.promote()
	next := acquire(t, second, "m")
	if lost.Err() != nil || next.Err() != nil {
		t.Errorf("two were to hold at once: %v, %v", lost.Err(), next.Err())
	}
	larger(t, lost, next)
	faults.Awaited(t, "the end of the lease", lost.Done()) // its renewal finds nothing
	if !errors.Is(lost.Err(), signalbox.ErrLeaseLost) || next.Err() != nil {
		t.Errorf("the first was to be told: %v, %v", lost.Err(), next.Err())
	}
	must(t, next.Release(t.Context()))
}

func larger(t *testing.T, first, next *signalbox.Lease) {
	t.Helper()
	if next.Token() <= first.Token() {
		t.Errorf("L2: token %d after %d", next.Token(), first.Token())
	}
}
