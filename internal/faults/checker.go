package faults

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
)

// The checker hears of what every worker sees, and judges by that alone. Whether a lease is held at a moment its holder
// knows by two things: its context has not ended, and its deadline has not come. Timers may be late on a busy machine,
// so the deadline counts too; what a holder does between the two is the machine's fault and not checked here.

// checker holds what is seen against L1 and L2.
type checker struct {
	noFailure bool

	mu       sync.Mutex
	first    string                    // violation
	held     map[string][]*acquisition // by resource
	seen     map[string][]tokenAt      // the last of each resource
	grants   int
	extended int
	blind    bool      // writes are being lost just now
	lossy    time.Time // when that was over the last time
}

type acquisition struct {
	resource      string
	limit, weight int
	try, hasty    bool
	called        time.Time
	lease         *signalbox.Lease
}

type tokenAt struct {
	at    time.Time
	token int64
}

// tokensKept is how many tokens of a resource the next is compared with: more than there are workers.
const tokensKept = 100

func newChecker(t *testing.T, noFailure bool) *checker {
	c := &checker{noFailure: noFailure, held: make(map[string][]*acquisition), seen: make(map[string][]tokenAt)}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		c.report(t)
	})
	return c
}

// violated notes a violation; the first one counts. Called with mu held.
func (c *checker) violated(format string, args ...any) {
	if c.first == "" {
		c.first = fmt.Sprintf(format, args...)
	}
}

// report fails the test if a promise was broken.
func (c *checker) report(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	first := c.first
	c.mu.Unlock()
	if first != "" {
		t.Fatal(first)
	}
}

func (c *checker) losing(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blind, c.lossy = now, time.Now()
}

// counts reports whether the servers must know of a lease: it was granted after writes were lost the last time. A
// token is not older than its grant.
func (c *checker) counts(a *acquisition) bool {
	return !c.blind && a.lease.Token() > c.lossy.UnixMicro()
}

func (c *checker) granted(a *acquisition, lease *signalbox.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.lease = lease
	c.grants++
	now := time.Now()
	c.checkToken(a, now)
	c.held[a.resource] = append(c.held[a.resource], a)
	sum, text := 0, ""
	for _, other := range c.held[a.resource] {
		// A context only ever ends, and a deadline moves only while the server has the lease: what is alive now was so
		// at `now`.
		if other.lease.Err() == nil && now.Before(other.lease.Deadline()) && c.counts(other) {
			sum += other.weight
			text += fmt.Sprintf(" %s (weight %d, token %d)", other.lease.ID(), other.weight, other.lease.Token())
		}
	}
	if sum > a.limit {
		c.violated("L1: %d of %d permits of %q are held:%s", sum, a.limit, a.resource, text)
	}
}

// checkToken: a token is larger than every one that had been seen when its acquisition was called. On a mutex it is
// larger than every one seen at all, unless it is over on arrival.
func (c *checker) checkToken(a *acquisition, now time.Time) {
	token, since := a.lease.Token(), a.called
	if a.limit == 1 && now.Before(a.lease.Deadline()) && c.counts(a) {
		since = now
	}
	seen := c.seen[a.resource]
	for _, other := range seen {
		if other.token == token || (other.token > token && !other.at.After(since)) {
			c.violated("L2: %q was granted with token %d after %d was seen", a.resource, token, other.token)
		}
	}
	seen = append(seen, tokenAt{now, token})
	c.seen[a.resource] = seen[max(0, len(seen)-tokensKept):]
}

// releases is told before a lease is released: from here on it does not count.
func (c *checker) releases(a *acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[a.resource] = slices.DeleteFunc(c.held[a.resource], func(other *acquisition) bool { return other == a })
}

// lost is told of a lease whose context ended while it was held.
func (c *checker) lost(a *acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	early := time.Now().Before(a.lease.Deadline())
	if c.counts(a) && (early || c.noFailure) {
		c.violated("a lease of %q ended with %v to go: %v", a.resource, time.Until(a.lease.Deadline()), a.lease.Err())
	}
}

// released is told how a release went. What was alive before, and is within its deadline after, was the server's to
// take back.
func (c *checker) released(a *acquisition, alive bool, deadline time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	within := alive && time.Now().Before(deadline)
	switch {
	case err == nil && !alive:
		c.violated("L4: a lease of %q was released after it was lost", a.resource)
	case err == nil, !c.counts(a):
	case c.noFailure && errors.Is(err, signalbox.ErrUnavailable):
		c.violated("a release failed: %v", err)
	case errors.Is(err, signalbox.ErrLeaseLost) && !within:
	case errors.Is(err, signalbox.ErrUnavailable):
	default:
		c.violated("a lease that had %v to go could not be released: %v", time.Until(deadline), err)
	}
}

// refused is told of an acquisition that failed for another reason than those a caller asks for.
func (c *checker) refused(a *acquisition, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !errors.Is(err, signalbox.ErrUnavailable) || c.noFailure {
		c.violated("an acquisition of %q that began %v ago failed: %v", a.resource, time.Since(a.called), err)
	}
}

func (c *checker) renewed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extended++
}

func (c *checker) renewals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.extended
}

func (c *checker) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.grants
}
