package simtest

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// nemesis is the one goroutine that breaks things and that looks at the server's keys in between.
type nemesis struct {
	world   *world
	random  *rand.Rand
	acts    []func()
	evicted map[string]bool
	watch   func() // looks at the keys of a workload; may be nil
}

func newNemesis(w *world, watch func()) *nemesis {
	n := &nemesis{world: w, random: w.plan.random("nemesis"), evicted: make(map[string]bool), watch: watch}
	for _, turn := range []struct {
		on  bool
		act func()
	}{
		{w.plan.Partitions, n.partition},
		{w.plan.Partitions, n.partition},
		{w.plan.Crashes, n.crash},
		{w.plan.Restarts, n.restart},
		{w.plan.Evictions, n.evict},
		{w.plan.Kills, n.kill},
		{w.plan.Forces, n.force},
		{w.plan.Resizes, n.resize},
		{!w.plan.Ancient && w.plan.Workload == "", n.forge}, // a message from the past could make a forged id real
	} {
		if turn.on {
			n.acts = append(n.acts, turn.act)
		}
	}
	return n
}

// run looks at the keys every few milliseconds, and acts now and then until the calm begins.
func (n *nemesis) run(stop <-chan struct{}) {
	plan := n.world.plan
	calm := n.world.trace.origin.Add(plan.Length)
	next := time.Now().Add(n.gap())
	for look := 0; ; look++ {
		pause := time.NewTimer(time.Duration(5+n.random.IntN(40)) * time.Millisecond)
		select {
		case <-stop:
			pause.Stop()
			return
		case <-pause.C:
		}
		n.look(look%25 == 0)
		if now := time.Now(); len(n.acts) > 0 && now.After(next) && now.Before(calm) {
			n.acts[n.random.IntN(len(n.acts))]()
			next = time.Now().Add(n.gap())
		}
	}
}

func (n *nemesis) gap() time.Duration {
	return time.Duration(n.random.ExpFloat64() * float64(n.world.plan.Gap))
}

func (n *nemesis) anyBox() *box { return n.world.boxes[n.random.IntN(len(n.world.boxes))] }

func (n *nemesis) anyResource() *ledger.Resource {
	return n.world.resource(resourceName(n.random.IntN(len(n.world.plan.Limits))))
}

// partition shuts one box off, in one or both directions, from shorter than a claim to longer than any lease.
func (n *nemesis) partition() {
	plan := n.world.plan
	b := n.anyBox()
	d := time.Duration(n.random.Int64N(int64(2*max(plan.longestTTL(), plan.Claim)))) + 10*time.Millisecond
	if n.random.IntN(2) == 0 {
		d /= 8
	}
	// What is under way when the calm begins arrives before that.
	if left := time.Until(n.world.trace.origin.Add(plan.Length)); left < d {
		return
	}
	side := n.random.IntN(3)
	n.world.trace.note("%s partitioned for %v: %s", b.host.name, d,
		[]string{"both ways", "requests", "replies"}[side])
	b.host.partition(side != 2, side != 1, d)
}

// crash ends a box; one always stays.
func (n *nemesis) crash() {
	alive := 0
	for _, b := range n.world.boxes {
		if !b.host.isDead() {
			alive++
		}
	}
	if b := n.anyBox(); alive > 1 && !b.host.isDead() {
		n.world.trace.note("%s crashes", b.host.name)
		b.host.crash()
	}
}

// restart replaces the engine by an empty one, or ends it and starts it again with what it has kept: then nothing
// is excused.
func (n *nemesis) restart() {
	if n.world.plan.Dir != "" {
		n.restartKept()
		return
	}
	n.world.trace.note("the server restarts with empty data")
	e, err := n.world.plan.open()
	if err != nil {
		n.world.check.must("restart", err)
		return
	}
	n.world.check.restarts()
	before := n.world.network.replace(e)
	n.world.check.must("close the engine", before.Close())
	for _, b := range n.world.boxes {
		b.host.resetAll()
	}
	n.world.check.hasRestarted()
}

func (n *nemesis) restartKept() {
	n.world.trace.note("the server restarts with its data")
	n.world.check.must("close the engine", n.world.network.server().Close())
	e, err := n.world.plan.open()
	if err != nil {
		n.world.check.must("restart", err)
		return
	}
	n.world.network.replace(e)
	for _, b := range n.world.boxes {
		b.host.resetAll()
	}
}

// evict deletes one key of a resource, once in a run: two at once may leave nothing to mend from, and so does the only
// one of the compact form.
func (n *nemesis) evict() {
	r := n.anyResource()
	if n.evicted[r.Name] {
		return
	}
	if line := n.world.direct.HGet(context.Background(), r.Key(), "clock").Val(); strings.HasPrefix(line, "3c") {
		return
	}
	n.evicted[r.Name] = true
	key := r.Keys()[n.random.IntN(4)]
	n.world.trace.note("key %s is evicted", key)
	n.world.check.tears(r.Name)
	n.world.check.must("evict", n.world.direct.Del(context.Background(), key).Err())
}

// kill disconnects clients, or makes the server forget its scripts.
func (n *nemesis) kill() {
	command := [][]any{
		{"SCRIPT", "FLUSH"}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CLIENT", "KILL", "TYPE", "pubsub"},
	}[n.random.IntN(3)]
	n.world.trace.note("%v", command)
	n.world.check.must("kill", n.world.direct.Do(context.Background(), command...).Err())
}

// force ends a lease or sends a waiter away.
func (n *nemesis) force() {
	r := n.anyResource()
	ids := n.world.check.known(r.Name)
	if len(ids) == 0 {
		return
	}
	id := ids[n.random.IntN(len(ids))]
	n.world.trace.note("%s is forced", id)
	n.world.check.forces(r.Name, id)
	ended, err := n.world.ledger.Force(context.Background(), r, id, n.world.plan.Claim)
	n.world.check.must("force", err)
	if ended == 0 {
		n.world.check.spares(r.Name, id)
	}
}

// resize sets or clears the operator's limit.
func (n *nemesis) resize() {
	at := n.random.IntN(len(n.world.plan.Limits))
	limit := n.random.IntN(2 * n.world.plan.Limits[at])
	r := n.world.resource(resourceName(at))
	n.world.trace.note("%s is resized to %d", r.Name, limit)
	// A larger limit may be used before the call returns, a smaller one need not be used before.
	n.world.check.resizes(r.Name, limit, true)
	_, err := n.world.ledger.Resize(context.Background(), r, limit)
	n.world.check.must("resize", err)
	n.world.check.resizes(r.Name, limit, false)
}

// forge is L4: it renews and releases what is not held by the id it uses: an old lease, a waiter, or nothing.
func (n *nemesis) forge() {
	ctx := context.Background()
	r := n.anyResource()
	id := n.world.check.notHeld(r.Name)
	n.world.trace.note("somebody renews and releases %s without holding it", id)
	renewed := n.world.ledger.RenewAll(ctx, []ledger.RenewRequest{
		{Resource: r, Leases: []ledger.Renewal{{ID: id, TTL: time.Hour}}},
	})[0]
	n.world.check.must("renew", renewed.Err)
	if renewed.Err == nil && renewed.Holds[0] == ledger.Held {
		n.world.check.broken("L4: %s was renewed without being held", id)
	}
	hold, err := n.world.ledger.Release(ctx, r, id)
	n.world.check.must("release", err)
	if hold == ledger.Held {
		n.world.check.broken("L4: %s was released without being held", id)
	}
}
