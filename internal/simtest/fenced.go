package simtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
)

// Writers that may be paused beyond their lease write with their tokens. The writes that were let through are those of a
// register with tokens: none after one with a newer token, and the value is the newest writer's.
type register struct {
	world   *world
	roll    *roll
	written []write
}

type write struct {
	called, done time.Time
	token        int64
	sure         bool // it was let through, or a newer one was seen
}

func fenced(w *world) workload {
	r := &register{world: w, roll: w.newRoll("writers", 1)}
	return workload{turn: r.turn}
}

func (r *register) turn(a *actor) {
	s := a.stay(1)
	ctx, cancel := a.context()
	defer cancel()
	lease, err := a.box.Mutex(r.roll.name).Acquire(ctx, signalbox.TTL(s.ttl), signalbox.Label(s.label))
	if !r.roll.enter(ctx, s, lease, err) {
		return
	}
	fence := a.box.Fence("guarded", signalbox.FenceKeep(2*time.Minute))
	for range 1 + a.random.IntN(3) {
		a.work(lease.Done(), s.ttl)
		r.write(a, fence, lease.Token())
	}
	r.roll.giveBack(s)
}

func (r *register) write(a *actor, fence *signalbox.Fence, token int64) {
	if a.box.host.isDead() {
		return
	}
	called := time.Now()
	_, err := fence.Do(context.Background(), token, "set", fmt.Sprint(token), "ex", 100)
	var read any
	if err == nil {
		read, _ = fence.Do(context.Background(), token, "get")
	}
	r.world.trace.note("%s writes with token %d: %v", a.label(), token, err)
	var stale *signalbox.StaleError
	c := r.world.check
	if err != nil && !errors.As(err, &stale) {
		a.reasonable(context.Background(), called, true, err)
		r.record(write{called: called, token: token})
		return
	}
	c.mu.Lock()
	newest := r.newest(called)
	if err == nil && newest > token {
		c.violated("fence: token %d was let through after %d", token, newest)
	}
	if err == nil && read != nil && read != fmt.Sprint(token) {
		c.violated("fence: %d reads what %v has written, which has no newer token", token, read)
	}
	if stale != nil && (stale.Newest <= token || !r.known(stale.Newest)) {
		c.violated("fence: token %d was refused for %d, which nobody came with", token, stale.Newest)
	}
	c.mu.Unlock()
	if stale != nil {
		token = stale.Newest
	}
	r.record(write{called, time.Now(), token, true})
}

func (r *register) record(w write) {
	c := r.world.check
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants += count(w.sure)
	r.written = append(r.written, w)
}

// newest is the newest token that the server had surely seen before t, and has not forgotten since. Called with mu held.
func (r *register) newest(t time.Time) (newest int64) {
	for _, w := range r.written {
		if w.sure && w.done.Before(t) && !r.world.check.newServer(w.called.Add(r.world.plan.Claim)) {
			newest = max(newest, w.token)
		}
	}
	return newest
}

// known reports whether anybody has held with a token. Called with mu held.
func (r *register) known(token int64) bool {
	for _, seen := range r.roll.tokens {
		if seen.token == token {
			return true
		}
	}
	return len(r.roll.tokens) >= 100 // the oldest are forgotten
}
