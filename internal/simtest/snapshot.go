package simtest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// The server's view. It is read with a script that changes nothing: an inspect by the ledger would reap and grant, and so do
// in time what the boxes might forget to do.

var probe = redis.NewScript(ledger.Probe)

// forever lists keys that never expire, but for states with an operator's limit.
var forever = redis.NewScript(`
local found = {}
for _, key in ipairs(redis.call('KEYS', 'signalbox:*')) do
  if redis.call('PTTL', key) == -1 and not
      (redis.call('TYPE', key).ok == 'hash' and redis.call('HEXISTS', key, 'operator') == 1) then
    found[#found + 1] = key
  end
end
return found`)

type snapshot struct {
	at                            time.Time
	operator, held, count, leases int
	token                         int64
	holders, queue                []standing // holders whose lease has not expired; all waiters in their order
	whole                         bool       // the four keys agree
}

// standing is one holder or waiter.
type standing struct {
	id, since, terms, owner string
	weight, limit           int
	until                   time.Time // lease expires; must be heard from
}

// place names a stay in the queue: who left and came back has another one.
func (s standing) place() string { return s.id + "@" + s.since }

func (s standing) label() string {
	_, label, _ := strings.Cut(s.owner, "\t")
	return label
}

func takeSnapshot(ctx context.Context, client *redis.Client, keys []string) (*snapshot, error) {
	stored, err := readStored(ctx, client, keys)
	if err != nil {
		return nil, err
	}
	return newSnapshot(&stored[0]), nil
}

// readStored reads the keys of some resources in one step.
func readStored(ctx context.Context, client *redis.Client, keys []string) ([]ledger.Stored, error) {
	reply, err := probe.Run(ctx, client, keys, "read").Result()
	if err != nil {
		return nil, err
	}
	return ledger.ReadStored(reply)
}

func newSnapshot(stored *ledger.Stored) *snapshot {
	s := &snapshot{
		at: time.Now(), operator: stored.Operator, held: stored.Held, count: stored.Count, leases: len(stored.Leases),
		token: stored.Token,
	}
	sum, records := 0, 0
	for _, lease := range stored.Leases {
		e, ok := readStanding(&lease)
		sum += e.weight
		records += count(ok)
		if e.until.After(s.at) {
			s.holders = append(s.holders, e)
		}
	}
	for _, waiter := range stored.Queue {
		e, ok := readStanding(&waiter)
		records += count(ok)
		s.queue = append(s.queue, e)
	}
	entries := s.leases + len(s.queue)
	s.whole = records == entries && stored.Records == entries && sum == s.held && s.count == s.leases
	return s
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// readStanding reads "L weight token sinceMs ttlMs terms owner" or "W weight limit sinceMs ttlMs claimMs terms owner",
// where the label stands behind a tab in owner.
func readStanding(entry *ledger.StoredEntry) (standing, bool) {
	e := standing{id: entry.ID, until: time.UnixMilli(entry.UntilMs)}
	fields := 7
	if strings.HasPrefix(entry.Record, "W ") {
		fields = 8
	}
	part := strings.SplitN(entry.Record, " ", fields)
	if len(part) < fields {
		return e, false
	}
	e.weight, e.since, e.terms, e.owner = int(integer(part[1])), part[3], part[fields-2], part[fields-1]
	if fields == 8 {
		e.limit = int(integer(part[2]))
	}
	return e, true
}

func integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// look takes a snapshot of each resource and checks what must hold of it.
func (n *nemesis) look(thorough bool) {
	ctx := context.Background()
	if n.watch != nil {
		n.watch()
	}
	for i := range n.world.plan.Limits {
		if n.world.plan.Workload != "" {
			break // those resources are not used
		}
		r := n.world.resource(resourceName(i))
		alive := n.world.check.alive(r.Name)
		s, err := takeSnapshot(ctx, n.world.direct, r.Keys())
		if err != nil {
			n.world.check.must("read the keys", err)
			continue
		}
		n.world.check.looked(r.Name, s, alive)
	}
	if thorough {
		keys, err := forever.Run(ctx, n.world.direct, nil).StringSlice()
		n.world.check.must("look for keys that never expire", err)
		if len(keys) > 0 {
			n.world.check.broken("L6: these keys never expire: %q", keys)
		}
	}
}

// alive returns the leases that their holders believe in, and notes until when.
func (c *checker) alive(name string) (list []*acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.resources[name].held {
		if a.lease.Err() == nil {
			a.believed = a.lease.Deadline()
			list = append(list, a)
		}
	}
	return list
}

func (c *checker) looked(name string, s *snapshot, alive []*acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.resources[name]
	before := r.snapshot
	r.snapshot = s
	if r.torn {
		r.torn, r.lastTorn = !s.whole, s.at
	}
	c.checkRemains(s)
	c.checkEnded(r, alive)
	if r.torn {
		r.fits = fits{}
		return
	}
	if !s.whole {
		c.violated("L8: the keys of %s disagree: %+v", name, *s)
	}
	c.checkHolders(r, s, alive)
	if before != nil && before.at.After(r.lastTorn) {
		c.checkOrder(before, s)
		if s.token < before.token && s.count > 0 {
			c.violated("L2: the last token of %s went from %d to %d", name, before.token, s.token)
		}
	}
	c.checkProgress(r, s)
}

// checkHolders is L1 from both sides: who believes to hold is known to the server as a holder, and for longer than he
// believes, by what is taken off for clocks that run at different rates.
func (c *checker) checkHolders(r *resource, s *snapshot, alive []*acquisition) {
	for _, a := range alive {
		if a.lease.Err() != nil || !c.counts(r, a) {
			continue
		}
		at := slices.IndexFunc(s.holders, func(e standing) bool { return e.id == a.lease.ID() })
		if at < 0 {
			c.violated("L1: %s believes to hold until %v, and the server knows nothing of it", a.label,
				a.lease.Deadline().Sub(c.trace.origin))
			continue
		}
		care := max(min(a.ttl, c.plan.Claim)/20, 2*time.Millisecond) - time.Millisecond // the server counts in ms
		if left := s.holders[at].until.Sub(a.believed); left < care {
			c.violated("H1: %s believes to hold until %v before the server ends it, want %v", a.label, left, care)
		}
	}
}

// checkEnded: a lease that the server forgot in a restart, or that was forced, ends within its ttl.
func (c *checker) checkEnded(r *resource, alive []*acquisition) {
	for _, a := range alive {
		over := time.Time{}
		if forced, ok := r.forced[a.lease.ID()]; ok {
			over = forced
		} else if c.orphaned(a) {
			over = c.restarted[len(c.restarted)-1]
		}
		if !over.IsZero() && time.Since(over) > max(a.ttl, c.plan.Claim) && a.lease.Err() == nil {
			c.violated("L4: %s goes on %v after the server ended it", a.label, time.Since(over))
		}
	}
}

// checkOrder is L3. Who stood in the queue at both moments stood there all the time.
func (c *checker) checkOrder(before, s *snapshot) {
	place := make(map[string]int, len(before.queue))
	for i, e := range before.queue {
		place[e.place()] = i
	}
	first, last := len(before.queue), -1 // of those who still wait
	newcomer := false
	for _, e := range s.queue {
		at, stays := place[e.place()]
		if !stays {
			newcomer = true
			continue
		}
		if at < last || newcomer {
			c.violated("L3: %s lost its place: before %v, now %v", e.label(), order(before.queue), order(s.queue))
		}
		first, last = min(first, at), max(last, at)
	}
	for _, e := range s.holders {
		if slices.ContainsFunc(before.holders, func(old standing) bool { return old.id == e.id }) {
			continue
		}
		at := len(before.queue) // who was not there yet came after all who were
		for i, old := range before.queue {
			if old.id == e.id {
				at = i
			}
		}
		if first < at {
			c.violated("L3: %s was granted before %s, which waits in front: before %v, now %v", e.label(),
				before.queue[first].label(), order(before.queue), order(s.queue))
		}
	}
}

func order(queue []standing) (list []string) {
	for _, e := range queue {
		list = append(list, e.label())
	}
	return list
}

// checkRemains is L7: what ended with an error or a release leaves nothing behind.
func (c *checker) checkRemains(s *snapshot) {
	for _, e := range slices.Concat(s.holders, s.queue) {
		a := c.byLabel[e.label()]
		switch {
		case a == nil && e.owner != "": // an evicted record has none
			c.violated("L7: %s of %q stands there, and nobody has asked for it", e.id, e.owner)
		case a == nil || !e.until.After(s.at):
		case !a.failed.IsZero() && s.at.After(a.failed.Add(c.graceOf(a))):
			c.violated("L7: %s failed %v ago and is still there, until %v from now", a.label, s.at.Sub(a.failed),
				e.until.Sub(s.at))
		case !a.released.IsZero() && s.at.After(a.released) && !c.plan.Ancient:
			c.violated("L7: %s was released %v ago and is still there", a.label, s.at.Sub(a.released))
		}
	}
}

// graceOf is how long a failed acquisition may still be seen: no longer than a moment if its host could speak, and as
// long as messages and leases live if it could not.
func (c *checker) graceOf(a *acquisition) time.Duration {
	well, cuts := a.host.wellSince(a.called.Add(-c.plan.Claim))
	span := max(a.ttl, c.plan.Claim)
	switch {
	case well && cuts == 0 && !c.newServer(a.called):
		return 200 * time.Millisecond
	case well && cuts < 3 && !c.newServer(a.called):
		return c.plan.Claim
	case c.plan.Ancient:
		return time.Hour // nobody can bar an id for as long as such a network keeps a request
	}
	return 2*c.plan.Claim + span
}

// fits is since when permits are free for the head of the queue.
type fits struct {
	head  string
	since time.Time
}

// checkProgress is L5: when the head of the queue fits, somebody who waits notices in time.
func (c *checker) checkProgress(r *resource, s *snapshot) {
	if len(s.queue) == 0 {
		r.fits = fits{}
		return
	}
	head, held := s.queue[0], 0
	for _, e := range s.holders {
		held += e.weight
	}
	limit := head.limit
	if s.operator > 0 {
		limit = s.operator
	}
	if s.held+head.weight <= limit {
		// Nothing has to expire first: the transition that freed the permits had to grant them.
		c.violated("L5: %s fits and was not granted: %d of %d held, queue %v", head.label(), s.held, limit, order(s.queue))
	}
	if held+head.weight > limit {
		r.fits = fits{}
		return
	}
	if r.fits.head != head.place() {
		r.fits = fits{head.place(), s.at}
	}
	if bound := c.patienceOf(s, r.fits.since); bound > 0 && s.at.Sub(r.fits.since) > bound {
		c.violated("L5: permits are free for %s since %v, and it waits: holders %v, queue %v", head.label(),
			s.at.Sub(r.fits.since), order(s.holders), order(s.queue))
	}
}

// patienceOf is how long the head may wait although it fits: until the next heartbeat of any waiter that can speak,
// and for the claim time more if the head cannot. It is 0 if nobody can.
func (c *checker) patienceOf(s *snapshot, since time.Time) time.Duration {
	const moment = 300 * time.Millisecond
	for i, e := range s.queue {
		a := c.byLabel[e.label()]
		if a == nil || !a.failed.IsZero() || a.lease != nil {
			continue
		}
		well, cuts := a.host.wellSince(since.Add(-c.plan.Claim))
		if !well {
			continue
		}
		bound := c.plan.Claim/3 + moment + time.Duration(cuts)*c.plan.Claim/2
		if i > 0 {
			bound += c.plan.Claim
		}
		return bound
	}
	return 0
}
