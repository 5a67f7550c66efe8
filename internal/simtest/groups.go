package simtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Several resources at once, all or nothing. What the holders see is L1 and L2 for each resource. What the server's keys
// show is looked at in one step: whoever waits holds nothing, and of two groups that want the same resources one is in
// front everywhere, so that no circle of waiting can be.

const groupSize = 3 // resources

type ensemble struct {
	world   *world
	rolls   [groupSize]*roll
	running map[string]context.Context // acquisitions that wait, by label; guarded by the checker's mu
}

func groups(w *world) workload {
	e := &ensemble{world: w, running: make(map[string]context.Context)}
	for i, name := range []string{"g0", "g1", "g2"} {
		e.rolls[i] = w.newRoll(name, 1+i) // a mutex among semaphores
	}
	return workload{turn: e.turn, look: e.look}
}

func (e *ensemble) turn(a *actor) {
	if a.oneIn(3) {
		r := e.rolls[a.random.IntN(groupSize)]
		r.once(a, r.limit)
		return
	}
	chosen := a.random.Perm(groupSize)[:2+a.random.IntN(groupSize-1)]
	ttl := a.ttl()
	var requests []signalbox.Request
	var stays []*stay
	for _, i := range chosen {
		s := a.stay(1 + a.random.IntN(e.rolls[i].limit))
		s.ttl = ttl
		stays = append(stays, s)
		requests = append(requests, a.box.Semaphore(e.rolls[i].name, e.rolls[i].limit).Request(s.weight))
	}
	ctx, cancel := a.context()
	defer cancel()
	label := stays[0].label
	acquire := a.box.AcquireAll
	if a.oneIn(5) {
		acquire = a.box.TryAcquireAll
	}
	e.begins(label, ctx)
	all, err := acquire(ctx, requests, signalbox.TTL(ttl), signalbox.Label(label))
	e.ends(label)
	if errors.Is(err, signalbox.ErrBusy) || (err != nil && e.world.check.cutEver(a.box.host, err)) {
		return
	}
	for i, s := range stays {
		var lease *signalbox.Lease
		if err == nil {
			lease = all.All()[i]
		}
		if !e.rolls[chosen[i]].enter(ctx, s, lease, err) {
			return
		}
	}
	a.work(all.Done(), ttl)
	for i, s := range stays {
		e.rolls[chosen[i]].giveBack(s)
	}
	// Each has been given back; this one only looks at the same outcomes.
	_ = all.Release(context.Background())
}

func (e *ensemble) begins(label string, ctx context.Context) {
	e.world.check.mu.Lock()
	defer e.world.check.mu.Unlock()
	e.running[label] = ctx
}

func (e *ensemble) ends(label string) {
	e.world.check.mu.Lock()
	defer e.world.check.mu.Unlock()
	delete(e.running, label)
}

// look reads and judges.
func (e *ensemble) look() {
	var keys []string
	for _, r := range e.rolls {
		keys = append(keys, e.world.resource(r.name).Keys()...)
	}
	all, err := readStored(context.Background(), e.world.direct, keys)
	if err != nil {
		e.world.check.must("read the keys", err)
		return
	}
	living := func(entries []ledger.StoredEntry) (list []standing) {
		for _, entry := range entries {
			if s, ok := readStanding(&entry); ok && s.until.After(time.Now()) {
				list = append(list, s)
			}
		}
		return list
	}
	var holders, queues [][]standing
	for _, stored := range all {
		holders, queues = append(holders, living(stored.Leases)), append(queues, living(stored.Queue))
	}
	c := e.world.check
	c.mu.Lock()
	defer c.mu.Unlock()
	e.whole(holders, queues)
	e.inOrder(queues)
}

// whole: a group that waits holds nothing; for a moment it may hold all without knowing. Called with mu held.
func (e *ensemble) whole(holders, queues [][]standing) {
	for label, ctx := range e.running {
		holds := slices.ContainsFunc(holders, func(list []standing) bool { return has(list, label) })
		waits := slices.ContainsFunc(queues, func(list []standing) bool { return has(list, label) })
		if !holds || !waits || ctx.Err() != nil {
			continue
		}
		e.world.check.violated("group: %s holds a part and waits for the rest: holders %v, queues %v", label, names(holders), names(queues))
	}
}

// inOrder: two groups stand in the same order wherever they meet. Called with mu held.
func (e *ensemble) inOrder(queues [][]standing) {
	behind := make(map[[2]string]bool)
	for _, queue := range queues {
		for i, first := range queue {
			for _, second := range queue[i+1:] {
				one, two := first.label(), second.label()
				if first.terms != "g" || second.terms != "g" {
					continue
				}
				if behind[[2]string{two, one}] {
					e.world.check.violated("group: %s and %s stand in front of each other: %v", one, two, names(queues))
				}
				behind[[2]string{one, two}] = true
			}
		}
	}
}

func has(list []standing, label string) bool {
	return slices.ContainsFunc(list, func(s standing) bool { return s.label() == label })
}

func names(lists [][]standing) (all [][]string) {
	for _, list := range lists {
		all = append(all, order(list))
	}
	return all
}
