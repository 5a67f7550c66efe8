package simtest

import (
	"context"
	"time"

	"github.com/signalbox-io/signalbox"
)

// roll is who holds one resource, in the eyes of the holders: L1 by sums of weights, of which a read/write lock, an
// election and a group are no more than cases, and L2 by tokens.
type roll struct {
	world  *world
	name   string
	limit  int
	stays  []*stay // granted, perhaps ended since
	tokens []tokenAt
	also   func(s *stay) // more to check when a lease has been granted; mu is held
}

// stay is one acquisition from its call to the end of its lease.
type stay struct {
	actor    *actor
	label    string
	called   time.Time
	lease    *signalbox.Lease
	weight   int
	token    int64
	ttl      time.Duration
	gaveBack bool      // Release has been called,
	until    time.Time // and the lease would have been held so long; zero if it was over
}

func (w *world) newRoll(name string, limit int) *roll {
	return &roll{world: w, name: name, limit: limit}
}

func (a *actor) stay(weight int) *stay {
	return &stay{actor: a, label: a.label(), called: time.Now(), weight: weight, ttl: a.ttl()}
}

// enter takes the outcome of an acquisition and reports whether it is held.
func (r *roll) enter(ctx context.Context, s *stay, lease *signalbox.Lease, err error) bool {
	if err != nil {
		r.world.trace.note("%s refused: %v", s.label, err)
		s.actor.reasonable(ctx, s.called, false, err)
		return false
	}
	c := r.world.check
	c.mu.Lock()
	defer c.mu.Unlock()
	r.entered(s, lease)
	return true
}

// entered is enter for a lease. Called with mu held.
func (r *roll) entered(s *stay, lease *signalbox.Lease) {
	s.lease = lease
	r.world.trace.note("%s has %d of %s, token %d, id %s", s.label, s.weight, r.name, lease.Token(), lease.ID())
	r.world.check.grants++
	r.stays = append(r.stays, s)
	r.stamp(s, time.Now())
	r.sum(s)
	if r.also != nil {
		r.also(s)
	}
}

// sum is L1. Contexts only ever end: those found alive one after the other were all alive when the first was looked at.
// What a server has forgotten in a restart does not count. Called with mu held.
func (r *roll) sum(last *stay) {
	c := r.world.check
	sum, alive, text := 0, r.stays[:0], ""
	for _, s := range r.stays {
		if s.lease.Err() != nil {
			continue
		}
		alive = append(alive, s)
		if !c.forgotten(s.token) {
			sum += s.weight
			text += " " + s.label
		}
	}
	clear(r.stays[len(alive):])
	r.stays = alive
	if sum > r.limit {
		c.violated("L1: %d of %d permits of %s are held when %s enters:%s", sum, r.limit, r.name, last.label, text)
	}
}

// forgotten: granted by a server whose data is gone. Called with mu held.
func (c *checker) forgotten(token int64) bool {
	n := len(c.restarted)
	return n > 0 && token <= c.restarted[n-1].UnixMicro()
}

// stamp is L2: a token is larger than every one that had been seen when its acquisition was called; than every one seen
// at all if nobody else can hold. Called with mu held.
func (r *roll) stamp(s *stay, now time.Time) {
	token, since := s.lease.Token(), s.called
	if r.world.check.forgotten(token) {
		return // a lease that the server forgot may be passed on by LocalHandoff until it is to be renewed
	}
	// A grant may be answered so late that the lease is over on arrival; others were granted since.
	if s.weight == r.limit && now.Before(s.lease.Deadline()) {
		since = now
	}
	for _, other := range r.tokens {
		if other.token == token && token != s.token || (other.token > token && !other.at.After(since)) {
			r.world.check.violated("L2: %s has token %d of %s after %d was seen", s.label, token, r.name, other.token)
		}
	}
	s.token = token
	r.tokens = append(r.tokens, tokenAt{now, token})
	if len(r.tokens) > 200 {
		r.tokens = r.tokens[100:]
	}
}

// weigh notes that a stay has another weight now: before it may have less, after it has more.
func (r *roll) weigh(s *stay, weight int) {
	c := r.world.check
	c.mu.Lock()
	defer c.mu.Unlock()
	r.world.trace.note("%s weighs %d", s.label, weight)
	s.weight = weight
	if s.lease.Err() == nil {
		r.stamp(s, time.Now())
		r.sum(s)
	}
}

// giveBack releases, unless the host has crashed. That a lease is lost has a reason.
func (r *roll) giveBack(s *stay) {
	if s.actor.box.host.isDead() {
		return
	}
	c := r.world.check
	c.mu.Lock()
	s.gaveBack = true
	if s.lease.Err() == nil {
		s.until = s.lease.Deadline()
	}
	c.mu.Unlock()
	r.world.trace.note("%s releases %s", s.label, r.name)
	if err := s.lease.Release(context.Background()); err != nil {
		r.world.trace.note("%s released: %v", s.label, err)
		s.actor.reasonable(context.Background(), s.called, false, err)
	}
}
