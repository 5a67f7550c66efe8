package simtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/signalbox-io/signalbox"
)

// A run does either what client.go does, with permits of plain semaphores, or one of the workloads: one primitive that is
// built on them, used by every client of every box, with a checker of its own that knows what the users of the primitive
// rely on. Workloads share the network, the nemesis and the roll of holders (roll.go).
//
// To add one: a file with its turn and its checker, a line in workloads.

// workload is what a run does. All but turn may be nil.
type workload struct {
	turn  func(*actor)                  // uses the primitive once
	aside func(stopped <-chan struct{}) // goes on beside
	look  func()                        // reads the server's keys, every few milliseconds
}

var workloads = map[string]func(*world) workload{
	"rwmutex":  readersAndWriters,
	"election": candidates,
	"group":    groups,
	"handoff":  handoffs,
	"pace":     paced,
	"delay":    delayed,
	"hold":     heldAtLeast,
	"barrier":  rounds,
	"latch":    gates,
	"limiter":  rates,
	"fence":    fenced,
}

// DrawWorkload returns the plan of a seed for a workload. The nemesis leaves out what only the ledger's checker knows how
// to excuse.
func DrawWorkload(name string, seed uint64) Plan {
	p := Draw(seed)
	p.Workload = name
	p.Evictions, p.Resizes, p.Forces = false, false, false
	p.Clients = 1 + p.Clients/2
	p.Length = p.Length * 2 / 3
	return p
}

// actor is one goroutine of a box that takes turns.
type actor struct {
	*world
	box    *box
	name   string
	random *rand.Rand
	turns  int
}

func newActor(w *world, b *box, number int) *actor {
	name := fmt.Sprintf("%s/%d", b.host.name, number)
	return &actor{world: w, box: b, name: name, random: w.plan.random("actor " + name)}
}

func (a *actor) run(turn func(*actor)) {
	for time.Now().Before(a.ends) && !a.box.host.isDead() {
		time.Sleep(a.upTo(a.plan.HoldMost))
		a.turns++
		turn(a)
	}
}

func (a *actor) upTo(most time.Duration) time.Duration {
	return time.Duration(a.random.Int64N(int64(most) + 1))
}

// oneIn is true once in n times.
func (a *actor) oneIn(n int) bool { return a.random.IntN(n) == 0 }

func (a *actor) label() string { return fmt.Sprintf("%s#%d", a.name, a.turns) }

func (a *actor) ttl() time.Duration { return a.plan.TTLs[a.random.IntN(len(a.plan.TTLs))] }

// context is one that ends by itself in half of all turns: by a deadline or by a cancel.
func (a *actor) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	switch a.random.IntN(4) {
	case 0:
		timed, done := context.WithTimeout(ctx, a.upTo(4*a.plan.HoldMost))
		return timed, func() { done(); cancel() }
	case 1:
		stop := time.AfterFunc(a.upTo(2*a.plan.HoldMost), cancel)
		return ctx, func() { stop.Stop(); cancel() }
	}
	return ctx, cancel
}

// patient is a context that ends after a while: who waits for others may wait for ever.
func (a *actor) patient(most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), most)
}

// work holds for a while, mostly shorter than the ttl and sometimes longer. One in eight sleeps on when its lease has ended,
// as a process does that is paused.
func (a *actor) work(ended <-chan struct{}, ttl time.Duration) {
	d := a.upTo(a.plan.HoldMost)
	if a.oneIn(8) {
		d += 2 * ttl
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	if a.oneIn(8) {
		<-timer.C
		return
	}
	select {
	case <-timer.C:
	case <-ended:
	}
}

// reasonable checks that an error has a reason: the caller's context, or what the network or the server did since the
// call. One request that is not repeated may fail with the first cut; whoever tries again bears with two.
func (a *actor) reasonable(ctx context.Context, called time.Time, once bool, err error) {
	deadline, timed := ctx.Deadline()
	c := a.check
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
	case timed && !time.Now().Before(deadline) && errors.Is(err, context.DeadlineExceeded):
	case (errors.Is(err, signalbox.ErrUnavailable) || errors.Is(err, signalbox.ErrLeaseLost)) && c.troubled(a.box.host, called, once):
	default:
		c.violated("an error without a reason: %s: %v", a.label(), err)
	}
}

// troubled reports whether a host had a reason to fail since t. Called with mu held.
func (c *checker) troubled(h *host, t time.Time, once bool) bool {
	well, cuts := h.wellSince(t.Add(-c.plan.Claim))
	if once { // a connection that was cut long ago is found dead when it is used
		_, cuts = h.wellSince(c.trace.origin)
		return !well || cuts > 0 || len(c.restarted) > 0
	}
	return !well || cuts > 2 || c.newServer(t)
}
