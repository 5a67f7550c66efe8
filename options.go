package signalbox

import (
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// The bounds of a lease's time to live, and the one that is used if none is given.
const (
	MinTTL     = 10 * time.Millisecond
	MaxTTL     = 365 * 24 * time.Hour
	DefaultTTL = 30 * time.Second
)

// DefaultClaim is the claim time of a Box that was given none.
const DefaultClaim = 3 * time.Second

// Option changes a Box.
type Option func(*Box)

// Claim sets for how long the server believes in a waiter that is silent: a waiter not heard from for d leaves the
// queue, a grant not confirmed within d passes on. Waiters are heard from every d/3. 50 ms is the least.
func Claim(d time.Duration) Option {
	return func(b *Box) { b.claim = max(d.Truncate(time.Millisecond), 50*time.Millisecond) }
}

// Owner sets how this process is shown to people. The default is host:pid.
func Owner(owner string) Option {
	return func(b *Box) { b.owner = owner }
}

// AcquireOption changes one acquisition.
type AcquireOption func(*terms)

// Weight asks for n permits at once; the default is 1.
func Weight(n int) AcquireOption {
	return func(t *terms) { t.weight = n }
}

// TTL sets for how long the lease outlives a holder that fell silent. It is renewed every third of it.
func TTL(d time.Duration) AcquireOption {
	return func(t *terms) { t.ttl = d }
}

// Label is shown to people behind the owner.
func Label(label string) AcquireOption {
	return func(t *terms) { t.label = label }
}

// OnWait has fn called when the acquisition has to wait, and when its place in the queue has changed: one call at a
// time, in a goroutine of their own. The acquisition waits for each, and returns only then; but for one during which the
// Box closes, so fn may close it.
func OnWait(fn func(Waiting)) AcquireOption {
	return func(t *terms) { t.onWait = fn }
}

// Waiting is the place of an acquisition that waits.
type Waiting struct {
	Resource string
	Ahead    int           // waiters in front
	Next     time.Duration // until the earliest lease can expire, if its holder fell silent
}

// terms are what one acquisition asks for.
type terms struct {
	weight int
	ttl    time.Duration
	label  string
	onWait func(Waiting)
}

func newTerms(options []AcquireOption) terms {
	t := terms{weight: 1, ttl: DefaultTTL}
	for _, option := range options {
		option(&t)
	}
	t.ttl = t.ttl.Truncate(time.Millisecond) // the server's grain
	return t
}

// check refuses what no server needs to be asked about.
func (t *terms) check(name string, limit int) error {
	switch {
	case limit < 1 || limit > ledger.MaxLimit:
		return fmt.Errorf("acquire %q: %w: limit %d, must be 1 to %d", name, ErrInvalid, limit, ledger.MaxLimit)
	case t.weight < 1:
		return fmt.Errorf("acquire %q: %w: weight %d, must be at least 1", name, ErrInvalid, t.weight)
	case t.weight > limit:
		return fmt.Errorf("acquire %q: %w: weight %d of limit %d", name, ErrTooHeavy, t.weight, limit)
	case t.ttl < MinTTL || t.ttl > MaxTTL:
		return fmt.Errorf("acquire %q: %w: ttl %v, must be %v to %v", name, ErrInvalid, t.ttl, MinTTL, MaxTTL)
	}
	return nil
}
