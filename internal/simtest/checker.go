package simtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox"
)

// The checker hears of every call before it is made and after it has returned. Here is what the callers can see; what
// the server's keys show is in snapshot.go.

type checker struct {
	plan  *Plan
	trace *trace
	hosts map[string]*host // by name; fixed before the run starts

	mu        sync.Mutex
	first     string // violation, with the trace of that moment
	grants    int
	byLabel   map[string]*acquisition
	resources map[string]*resource
	restarted []time.Time
}

// acquisition is one call of Acquire or TryAcquire and what came of it.
type acquisition struct {
	label, resource string
	host            *host
	weight          int
	ttl             time.Duration
	try             bool
	called          time.Time

	lease     *signalbox.Lease // once granted
	seen      time.Time        // when the caller had it
	failed    time.Time        // when the call returned an error instead
	releasing bool
	released  time.Time // when Release said that it had
	believed  time.Time // until when its holder believed in it before the last look at the server
}

// resource is what the checker knows of one.
type resource struct {
	limits   []limitChange
	held     []*acquisition       // granted, perhaps ended since
	finished []tokenAt            // tokens by the time they were seen
	forced   map[string]time.Time // ids
	torn     bool                 // a key was evicted, and the ledger has not been seen whole since
	lastTorn time.Time            // when it was
	snapshot *snapshot
	fits     fits
}

type limitChange struct {
	at    time.Time
	limit int
}

type tokenAt struct {
	at    time.Time
	token int64
}

func newChecker(plan *Plan, t *trace) *checker {
	c := &checker{
		plan: plan, trace: t, hosts: make(map[string]*host),
		byLabel: make(map[string]*acquisition), resources: make(map[string]*resource),
	}
	for i, limit := range plan.Limits {
		c.resources[resourceName(i)] = &resource{
			limits: []limitChange{{t.origin, limit}}, forced: make(map[string]time.Time),
		}
	}
	return c
}

// broken reports a violation. The first one counts: what follows may follow from it.
func (c *checker) broken(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violated(format, args...)
}

// violated is broken with mu held.
func (c *checker) violated(format string, args ...any) {
	if c.first == "" {
		text := fmt.Sprintf(format, args...)
		c.trace.note("VIOLATION %s", text)
		c.first = text + "\n" + c.trace.String()
	}
}

func (c *checker) violation() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}

func (c *checker) must(doing string, err error) {
	if err != nil {
		c.broken("%s: %v", doing, err)
	}
}

func (c *checker) calls(a *acquisition) {
	verb := "acquires"
	if a.try {
		verb = "tries"
	}
	c.trace.note("%s %s %d of %s, ttl %v", a.label, verb, a.weight, a.resource, a.ttl)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byLabel[a.label] = a
}

// granted checks L1 and L2 in the eyes of the holders.
func (c *checker) granted(a *acquisition, lease *signalbox.Lease) {
	c.trace.note("%s granted: token %d, id %s", a.label, lease.Token(), lease.ID())
	c.mu.Lock()
	defer c.mu.Unlock()
	a.lease, a.seen = lease, time.Now()
	c.grants++
	r := c.resources[a.resource]
	c.checkToken(r, a)
	r.held = append(r.held, a)
	// Contexts only ever end: those found alive one after the other were all alive when the first was looked at.
	sum, alive := 0, r.held[:0]
	for _, other := range r.held {
		if other.lease.Err() == nil {
			alive = append(alive, other)
			if c.counts(r, other) {
				sum += other.weight
			}
		}
	}
	clear(r.held[len(alive):])
	r.held = alive
	if limit := r.limitSince(a.called); sum > limit {
		c.violated("L1: %d permits of %s are held, and the limit is %d: %s", sum, a.resource, limit, labels(alive))
	}
}

// counts reports whether a lease is one that the server must know of: neither forced nor forgotten in a restart.
func (c *checker) counts(r *resource, a *acquisition) bool {
	return !r.wasForced(a) && !c.orphaned(a)
}

// orphaned: granted by a server whose data is gone. Tokens tell, since they are not older than their grant.
func (c *checker) orphaned(a *acquisition) bool {
	n := len(c.restarted)
	return n > 0 && a.lease.Token() <= c.restarted[n-1].UnixMicro()
}

// checkToken: a token is higher than every one that had been seen when its acquisition was called; on a mutex, higher
// than every one seen at all.
func (c *checker) checkToken(r *resource, a *acquisition) {
	token := a.lease.Token()
	since := a.called
	// A grant may be answered so late that the lease is over on arrival; others were granted since.
	if c.plan.limit(a.resource) == 1 && a.seen.Before(a.lease.Deadline()) {
		since = a.seen
	}
	for _, other := range r.finished {
		if other.token == token || (other.token > token && !other.at.After(since)) {
			c.violated("L2: %s has token %d after %d was seen", a.label, token, other.token)
		}
	}
	r.finished = append(r.finished, tokenAt{a.seen, token})
	if len(r.finished) > 200 {
		r.finished = r.finished[100:]
	}
}

func (r *resource) wasForced(a *acquisition) bool {
	_, forced := r.forced[a.lease.ID()]
	return forced
}

// limitSince is the highest limit that was in force at any moment since t.
func (r *resource) limitSince(t time.Time) int {
	most := 0
	for i, change := range r.limits {
		if last := i == len(r.limits)-1; last || !r.limits[i+1].at.Before(t) {
			most = max(most, change.limit)
		}
	}
	return most
}

func labels(list []*acquisition) string {
	text := ""
	for _, a := range list {
		text += fmt.Sprintf("%s(weight %d, token %d) ", a.label, a.weight, a.lease.Token())
	}
	return text
}

// refused checks that an error has a reason.
func (c *checker) refused(a *acquisition, ctx context.Context, err error) {
	c.trace.note("%s refused: %v", a.label, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	a.failed = time.Now()
	r := c.resources[a.resource]
	well, _ := a.host.wellSince(a.called.Add(-c.plan.Claim))
	_, cutsEver := a.host.wellSince(c.trace.origin)
	deadline, timed := ctx.Deadline()
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
	case timed && !time.Now().Before(deadline) && errors.Is(err, context.DeadlineExceeded): // its timer is about to
	case a.try && errors.Is(err, signalbox.ErrBusy):
	case errors.Is(err, signalbox.ErrForced) && c.plan.Forces:
	case errors.Is(err, signalbox.ErrTooHeavy) && len(r.limits) > 1:
	case errors.Is(err, signalbox.ErrUnavailable) && (!well || (a.try && cutsEver > 0) || c.newServer(a.called)):
	default:
		c.violated("an error without a reason: %s: %v", a.label, err)
	}
}

// newServer reports whether the server restarted at t or since, or a little before.
func (c *checker) newServer(t time.Time) bool {
	n := len(c.restarted)
	return n > 0 && c.restarted[n-1].After(t.Add(-c.plan.Claim))
}

func (c *checker) releases(a *acquisition) {
	c.trace.note("%s releases", a.label)
	c.mu.Lock()
	defer c.mu.Unlock()
	a.releasing = true
}

// released checks L4 and that a lease is lost only for a reason.
func (c *checker) released(a *acquisition, wasAlive bool, err error) {
	c.trace.note("%s released: %v", a.label, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		a.released = time.Now()
		if !wasAlive {
			c.violated("L4: %s released what it had lost", a.label)
		}
		return
	}
	r := c.resources[a.resource]
	well, cuts := a.host.wellSince(a.called.Add(-c.plan.Claim))
	excused := !well || cuts > 2 || c.newServer(a.called)
	switch {
	case errors.Is(err, signalbox.ErrForced) && r.wasForced(a):
	case errors.Is(err, signalbox.ErrLeaseLost) && (excused || r.wasForced(a)):
	case errors.Is(err, signalbox.ErrUnavailable) && excused:
	default:
		c.violated("a lease lost without a reason: %s: %v", a.label, err)
	}
}
