package simtest

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-io/signalbox"
)

// One term at a time, terms increase, and whoever observes never sees an older one after a newer.
func candidates(w *world) workload {
	r := w.newRoll("election", 1)
	return workload{turn: r.campaign, aside: r.observe}
}

func (r *roll) campaign(a *actor) {
	s := a.stay(1)
	ctx, cancel := a.context()
	defer cancel()
	term, err := a.box.Election(r.name).Campaign(ctx, signalbox.TTL(s.ttl), signalbox.Label(s.label))
	var lease *signalbox.Lease
	if err == nil {
		lease = term.Lease
	}
	if r.enter(ctx, s, lease, err) {
		a.work(lease.Done(), s.ttl)
		r.giveBack(s)
	}
}

// observe follows the leaders, now and then too slowly for the events, and begins again whenever the server could not be
// reached for longer than Observe bears. It does so without a network: a client that closes a subscription while that is
// being made again waits on a mutex, for which a bubble's time stands still.
func (r *roll) observe(stopped <-chan struct{}) {
	b, random := r.world.newNearBox("observer"), r.world.plan.random("observer")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		newest := int64(0)
		for leader, err := range b.Election(r.name).Observe(ctx) {
			if err != nil {
				r.observed(ctx, err)
				break
			}
			r.world.trace.note("term %d of %s is observed", leader.Term, leader.Label)
			if leader.Exists() && leader.Term < newest {
				r.world.check.broken("Election: term %d is observed after %d", leader.Term, newest)
			}
			newest = max(newest, leader.Term)
			if random.IntN(4) == 0 {
				time.Sleep(time.Duration(random.Int64N(int64(4 * r.world.plan.HoldMost))))
			}
		}
		time.Sleep(r.world.plan.Claim)
	}
}

func (r *roll) observed(ctx context.Context, err error) {
	c := r.world.check
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
	case errors.Is(err, signalbox.ErrUnavailable) && (len(c.restarted) > 0 || c.plan.Kills):
	default:
		c.violated("an error without a reason: the observer: %v", err)
	}
}
