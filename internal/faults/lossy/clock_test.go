//go:build linux

package lossy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// The clocks of primary and replica differ.

// off returns how to start a server whose clock is off.
func off(by time.Duration) func(t *testing.T, extra ...string) *difftest.Server {
	return func(t *testing.T, extra ...string) *difftest.Server {
		t.Helper()
		return difftest.ClockedRedis(t, []string{fmt.Sprintf("FAKETIME=%+f", by.Seconds())}, extra...)
	}
}

// TestClockBehind: tokens are the server's clock where that is ahead of the last token, so they increase without memory
// if the clock of the new primary has passed the time of the last grant.
func TestClockBehind(t *testing.T) {
	faults.Begin(t)
	const behind = 400 * time.Millisecond
	p := startPair(t, off(-behind))
	first, second := p.box(), p.box()
	p.holdBack()
	lost := acquire(t, first, "m")
	faults.Await(t, "clocks that differ", func() bool { return p.ahead() > behind/2 })
	p.promote()
	// The failover takes longer than the clocks differ.
	faults.Await(t, "the replica's clock to pass the grant", func() bool {
		return p.toReplica.Time(t.Context()).Val().UnixMicro() > lost.Token()
	})
	next := acquire(t, second, "m")
	larger(t, lost, next)
	must(t, next.Release(t.Context()))
}

// TestClockFarBehind: a replica that knows the last token goes on from there, whatever its clock says.
func TestClockFarBehind(t *testing.T) {
	faults.Begin(t)
	p := startPair(t, off(-time.Hour))
	first, second := p.box(), p.box()
	last := acquire(t, first, "m")
	must(t, last.Release(t.Context()))
	p.caughtUp()
	if ahead := p.ahead(); ahead < 59*time.Minute {
		t.Fatalf("the clocks differ by %v only", ahead)
	}
	p.promote()
	next := acquire(t, second, "m")
	larger(t, last, next)
	must(t, next.Release(t.Context()))
}

// TestClockAhead: leases expire by the server's clock, so a new primary that is ahead ends them early, by more than the
// margin by which holders stop early themselves.
func TestClockAhead(t *testing.T) {
	faults.Begin(t)
	p := startPair(t, off(time.Hour))
	first, second := p.box(), p.box()
	early := acquire(t, first, "m")
	p.caughtUp()
	p.promote()
	next := acquire(t, second, "m")
	larger(t, early, next)
	faults.Awaited(t, "the end of the lease", early.Done()) // its renewal finds nothing
	if !errors.Is(early.Err(), signalbox.ErrLeaseLost) || next.Err() != nil {
		t.Errorf("the first was to be told: %v, %v", early.Err(), next.Err())
	}
	must(t, next.Release(t.Context()))
}

// ahead is how much the primary's clock is ahead of the replica's, or a little less.
func (p *pair) ahead() time.Duration {
	p.t.Helper()
	primary, err := p.toPrimary.Time(p.t.Context()).Result()
	must(p.t, err)
	replica, err := p.toReplica.Time(p.t.Context()).Result()
	must(p.t, err)
	return primary.Sub(replica)
}
