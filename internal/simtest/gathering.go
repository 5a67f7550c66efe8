package simtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
)

// Parties that wait for each other. What counts is who was in a call at the moment when it opened: the round of a barrier
// is that moment by the server's clock, in us.

// arrival is one call of Barrier.Wait or Latch.CountDown.
type arrival struct {
	host           *host
	called, ended  time.Time // ended is zero while it lasts
	passed, failed bool
	round          int64
}

type gathering struct {
	world    *world
	parties  int
	arrivals []*arrival       // of the last while; guarded by the checker's mu
	through  map[int64]int    // how many passed in a round
	last     map[string]int64 // round of each actor
}

// rounds: whoever passes does so while at least all parties wait, no more of them than there are parties pass in a round,
// and rounds increase.
func rounds(w *world) workload {
	g := &gathering{
		world: w, parties: min(4, w.plan.Boxes*w.plan.Clients), through: make(map[int64]int), last: make(map[string]int64),
	}
	return workload{turn: g.meet}
}

func (g *gathering) arrive(h *host) *arrival {
	g.world.check.mu.Lock()
	defer g.world.check.mu.Unlock()
	one := &arrival{host: h, called: time.Now()}
	g.arrivals = append(g.arrivals, one)
	if len(g.arrivals) > 400 {
		g.arrivals = append([]*arrival(nil), g.arrivals[200:]...)
	}
	return one
}

func (g *gathering) meet(a *actor) {
	ctx, cancel := a.patient(a.upTo(6 * a.plan.HoldMost))
	defer cancel()
	own := g.arrive(a.box.host)
	g.world.trace.note("%s arrives", a.label())
	round, err := a.box.Barrier("barrier", g.parties).Wait(ctx)
	g.world.trace.note("%s: round %d, %v", a.label(), round, err)
	if err != nil {
		a.reasonable(ctx, own.called, false, err)
	}
	c := g.world.check
	c.mu.Lock()
	defer c.mu.Unlock()
	own.ended, own.failed = time.Now(), err != nil
	if err != nil {
		return
	}
	c.grants++
	own.passed, own.round = true, round
	if g.through[round]++; g.through[round] > g.parties {
		c.violated("barrier: %d passed in round %d, and there are %d parties", g.through[round], round, g.parties)
	}
	if round <= g.last[a.name] {
		c.violated("barrier: %s passes round %d after %d", a.name, round, g.last[a.name])
	}
	g.last[a.name] = round
	moment := time.UnixMicro(round + 1)
	if moment.Before(own.called) || time.UnixMicro(round).After(own.ended) {
		c.violated("barrier: %s passed at %v with a round of %v", a.name, own.ended, moment)
	}
	if n := g.waitingAt(moment); n < g.parties {
		c.violated("barrier: round %d opened when %d of %d waited", round, n, g.parties)
	}
}

// waitingAt is how many calls the server may have counted at a moment. Who gave up, or died, and could not say so counts
// until the claim time after its last request is over, and a request may be late for half of it. Called with mu held.
func (g *gathering) waitingAt(moment time.Time) (n int) {
	ghost := 2 * g.world.plan.Claim
	if g.world.plan.Ancient {
		ghost = time.Hour
	}
	for _, a := range g.arrivals {
		until := a.ended
		switch died := a.host.deathAt(); {
		case !died.IsZero() && !a.passed:
			until = died.Add(ghost)
		case a.ended.IsZero():
			until = moment
		case a.failed:
			until = until.Add(ghost)
		}
		n += count(a.called.Before(moment) && !until.Before(moment))
	}
	return n
}

// gates: a latch never opens before all parties have counted down, says how many are missing, and is open for all when they
// have.
func gates(w *world) workload {
	g := &gate{world: w, counted: make(map[string]map[string]*arrival)}
	return workload{turn: g.turn}
}

type gate struct {
	world   *world
	counted map[string]map[string]*arrival // by latch and party: the first call, or the first that was answered
}

const gateParties = 4

func (g *gate) turn(a *actor) {
	latch := fmt.Sprintf("latch%d", a.random.IntN(8))
	l := a.box.Latch(latch, gateParties, signalbox.LatchKeep(2*time.Minute))
	if a.oneIn(3) {
		g.await(a, l, latch)
		return
	}
	g.count(a, l, latch, fmt.Sprint("party ", a.random.IntN(gateParties)))
}

func (g *gate) count(a *actor, l *signalbox.Latch, latch, party string) {
	c := g.world.check
	called := time.Now()
	c.mu.Lock()
	if g.counted[latch] == nil {
		g.counted[latch] = make(map[string]*arrival)
	}
	own := g.counted[latch][party]
	if own == nil {
		own = &arrival{called: called}
		g.counted[latch][party] = own
	}
	_, surely := g.known(latch)
	c.mu.Unlock()
	missing, err := l.CountDown(context.Background(), party)
	g.world.trace.note("%s counts %s of %s: missing %d, %v", a.label(), party, latch, missing, err)
	if err != nil {
		a.reasonable(context.Background(), called, true, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants++
	if own.ended.IsZero() || c.newServer(own.ended) {
		own.ended = time.Now()
	}
	perhaps, _ := g.known(latch)
	if missing < gateParties-perhaps {
		c.violated("latch: %s misses %d when %d of %d parties have ever called", latch, missing, perhaps, gateParties)
	}
	if missing > gateParties-surely && len(c.restarted) == 0 {
		c.violated("latch: %s misses %d when %d of %d parties had counted", latch, missing, surely, gateParties)
	}
}

// known is how many parties may have counted, and how many surely have. Called with mu held.
func (g *gate) known(latch string) (perhaps, surely int) {
	for _, party := range g.counted[latch] {
		perhaps++
		surely += count(!party.ended.IsZero())
	}
	return perhaps, surely
}

func (g *gate) await(a *actor, l *signalbox.Latch, latch string) {
	c := g.world.check
	called := time.Now()
	c.mu.Lock()
	_, surely := g.known(latch)
	c.mu.Unlock()
	most := a.upTo(4 * a.plan.HoldMost)
	ctx, cancel := a.patient(most)
	defer cancel()
	err := l.Await(ctx)
	g.world.trace.note("%s awaited %s: %v", a.label(), latch, err)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		a.reasonable(ctx, called, false, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	perhaps, _ := g.known(latch)
	switch {
	case err == nil && perhaps < gateParties:
		c.violated("latch: %s opened when %d of %d parties had called", latch, perhaps, gateParties)
	case err != nil && surely == gateParties && most > g.world.plan.Claim && len(c.restarted) == 0 &&
		!c.troubled(a.box.host, called, true):
		c.violated("latch: %s is open, and %s awaited it for %v", latch, a.label(), most)
	}
}
