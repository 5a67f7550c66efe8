package simtest

import (
	"slices"
	"time"
)

// What the nemesis tells the checker: before it acts, so that nothing is blamed on anybody else.

// tears: a key of the resource is about to vanish.
func (c *checker) tears(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.resources[name]
	r.torn, r.lastTorn = true, time.Now()
	r.loosen(c.plan.limit(name)) // the operator's limit may be what vanishes
}

// loosen notes that from now on a limit may be in force, if it is higher than the one that surely is.
func (r *resource) loosen(limit int) {
	if limit > r.limits[len(r.limits)-1].limit {
		r.limits = append(r.limits, limitChange{time.Now(), limit})
	}
}

// restarts: the server is about to be replaced by an empty one.
func (c *checker) restarts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarted = append(c.restarted, time.Now())
	for name, r := range c.resources {
		r.loosen(c.plan.limit(name))
	}
}

// hasRestarted: the old server is gone.
func (c *checker) hasRestarted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, r := range c.resources {
		r.snapshot, r.torn = nil, false
		r.limits = append(r.limits, limitChange{time.Now(), c.plan.limit(name)})
	}
	c.restarted = append(c.restarted, time.Now())
}

func (p *Plan) limit(name string) int {
	for i, limit := range p.Limits {
		if resourceName(i) == name {
			return limit
		}
	}
	return 0
}

// resizes is told of the operator's limit before it is set, and after. A higher limit counts from before, a lower one
// from after.
func (c *checker) resizes(name string, operator int, before bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.resources[name]
	limit := operator
	if operator == 0 {
		limit = c.plan.limit(name)
	}
	if before {
		r.loosen(limit)
	} else {
		r.limits = append(r.limits, limitChange{time.Now(), limit})
	}
}

// known returns the ids of the holders and waiters that were seen last.
func (c *checker) known(name string) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.resources[name].snapshot; s != nil {
		for _, e := range slices.Concat(s.holders, s.queue) {
			ids = append(ids, e.id)
		}
	}
	return ids
}

func (c *checker) forces(name, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources[name].forced[id] = time.Now()
}

// spares: the server knew nothing of the id that was to be forced; it may come yet, and go on.
func (c *checker) spares(name, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.resources[name].forced, id)
}

// notHeld returns an id that surely holds nothing: that of a lease which ended long ago, if there is one.
func (c *checker) notHeld(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	longAgo := time.Now().Add(-2*c.plan.longestTTL() - 2*c.plan.Claim)
	for _, a := range c.byLabel {
		if a.resource == name && a.lease != nil && a.lease.Err() != nil && a.lease.Deadline().Before(longAgo) {
			return a.lease.ID()
		}
	}
	return "nobody:1"
}
