package signalbox

// An option says itself in which acquisitions it holds (AcquireOption.holds). Every acquisition says where it is
// (terms.place), and check refuses what does not hold there: an option that declares no place is refused everywhere, so none
// can be ignored by being forgotten. To add one: a constructor here that names its places, a field of terms, and a row in the
// table of docs/guide/options.md, which a test holds against both.

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// MaxHandoffs is the most that LocalHandoff allows.
const MaxHandoffs = 10000

// Option changes a Box.
type Option func(*Box)

// Claim sets for how long the server believes in a waiter that is silent: a waiter not heard from for d leaves the
// queue, a grant not confirmed within d passes on. Waiters are heard from every d/3. 50 ms is the least.
func Claim(d time.Duration) Option {
	return func(b *Box) { b.claim = max(d.Truncate(time.Millisecond), 50*time.Millisecond) }
}

// MaxLabelBytes is the most that Label and Owner take. Both are UTF-8 without control characters, because they are shown on
// terminals.
const MaxLabelBytes = 256

// Owner sets how this process is shown to people. The default is host:pid. A bad owner is reported by the first call: see
// MaxLabelBytes.
func Owner(owner string) Option {
	return func(b *Box) {
		b.owner, b.err = owner, nil
		if why := unshowable(owner); why != "" {
			b.err = fmt.Errorf("%w: owner %.40q %s", ErrInvalid, owner, why)
		}
	}
}

// unshowable says why a label or an owner is refused, "" if it is not.
func unshowable(text string) string {
	switch {
	case len(text) > MaxLabelBytes:
		return fmt.Sprintf("has %d bytes, may have %d", len(text), MaxLabelBytes)
	case !utf8.ValidString(text):
		return "is not UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "has control characters; it is shown on terminals"
	}
	return ""
}

// AcquireOption changes one acquisition. Where one has no meaning it is refused with ErrInvalid.
type AcquireOption struct {
	name  string
	holds place
	apply func(*terms)
}

// place is a kind of acquisition; several, as a set.
type place uint8

const (
	inLock   place = 1 << iota // Mutex, Semaphore, Within, Election
	inSide                     // of an RWMutex
	inGroup                    // AcquireAll
	inQuorum                   // QuorumMutex
	inAll    = inLock | inSide | inGroup | inQuorum
)

var placeNames = [...]string{"a Mutex or Semaphore", "a side of an RWMutex", "AcquireAll", "a quorum"}

func (p place) String() string {
	var names []string
	for i, name := range placeNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// stray is an option where it has no meaning.
type stray struct {
	name  string
	holds place
	found bool
}

// Weight asks for n permits at once: 1 to the limit; the default is 1. More is refused with ErrTooHeavy. Where the weight is
// given otherwise, by a Request or the side of an RWMutex, it is refused with ErrInvalid.
func Weight(n int) AcquireOption {
	return AcquireOption{"Weight", inLock, func(t *terms) { t.weight = n }}
}

// TTL sets for how long the lease outlives a holder that fell silent: MinTTL to MaxTTL, in whole milliseconds; the default
// is DefaultTTL. It is renewed every third of it, for as long as the work takes.
func TTL(d time.Duration) AcquireOption {
	return AcquireOption{"TTL", inAll, func(t *terms) { t.ttl = d }}
}

// side makes an acquisition that of a side of an RWMutex.
func side(weight int) AcquireOption {
	return AcquireOption{"side", inSide, func(t *terms) { t.place, t.weight = inSide, weight }}
}

// Label is shown to people behind the owner. A bad one is refused with ErrInvalid: see MaxLabelBytes.
func Label(label string) AcquireOption {
	return AcquireOption{"Label", inAll, func(t *terms) { t.label = label }}
}

// OnWait has fn called when the acquisition has to wait, and when its place in the queue has changed: one call at a
// time, in a goroutine of their own. The acquisition waits for each, and returns only then; but for one during which the
// Box closes, so fn may close it.
func OnWait(fn func(Waiting)) AcquireOption {
	return AcquireOption{"OnWait", inLock | inSide, func(t *terms) { t.onWait = fn }}
}

// Waiting is the place of an acquisition that waits.
type Waiting struct {
	Resource string
	Ahead    int           // waiters in front
	Next     time.Duration // until the earliest lease can expire, if its holder fell silent
	Estimate time.Duration // until its turn, at the pace of the queue so far; 0 while that is not known
}

// LockDelay keeps the permits back for d after the lease has expired, as long as a holder that was cut off may need to
// notice; up to MaxTTL. It does not delay after a release. Box.ForceAll ends it.
func LockDelay(d time.Duration) AcquireOption {
	return AcquireOption{"LockDelay", inLock | inSide | inQuorum, func(t *terms) { t.agreed.Cool = d.Truncate(time.Millisecond) }}
}

// HoldAtLeast keeps the permits back until d after the grant, however early the lease is released: so a job that is
// over in a moment does not run once on every machine. Up to MaxTTL. Box.ForceAll ends it.
func HoldAtLeast(d time.Duration) AcquireOption {
	return AcquireOption{"HoldAtLeast", inLock | inSide | inQuorum, func(t *terms) { t.agreed.Hold = d.Truncate(time.Millisecond) }}
}

// Pace lets grants come only as fast as a rate allows, after a burst: concurrency and rate in one, as a polite crawler
// needs for each host. The burst is at least 1. Acquisitions of one resource should state the same pace.
func Pace(rate Rate, burst int) AcquireOption {
	return AcquireOption{"Pace", inLock | inSide, func(t *terms) { t.pace, t.agreed.Burst = &rate, burst }}
}

// NoticeWaiters has Lease.Wanted closed as soon as somebody waits, at the cost of a message.
func NoticeWaiters() AcquireOption {
	return AcquireOption{"NoticeWaiters", inLock | inSide | inQuorum, func(t *terms) { t.agreed.Notice = true }}
}

// Reentrant makes the acquisition find the lease that its ctx carries already, if that was acquired with Reentrant too:
// it returns the same lease, with the same token, at once and without the server. Each acquisition must be released.
// The ctx to pass on is Lease.Context, or the one that Do calls its function with. A weight above the lease's is refused
// with ErrInvalid.
func Reentrant() AcquireOption {
	return AcquireOption{"Reentrant", inLock | inSide, func(t *terms) { t.reentrant = true }}
}

// LocalHandoff lets up to n acquisitions of this process follow one another on one lease, without the server, each with
// a fencing token of its own, before others have their turn. It makes thousands of goroutines on one name cheap, and the
// queue fair by process rather than by acquisition. Only acquisitions with the same name, limit, weight, ttl, n, LockDelay
// and NoticeWaiters follow one another; the server shows the label of the first. 1 to MaxHandoffs; not with Pace or
// HoldAtLeast.
func LocalHandoff(n int) AcquireOption {
	return AcquireOption{"LocalHandoff", inLock | inSide, func(t *terms) { t.handoffs = &n }}
}

// WithReplicas has Acquire wait until n replicas have the grant, at most for the timeout, at the cost of a round trip.
// Lease.Replicas tells how many have; fewer than n is no error. A grant that every replica has survives a failover to
// any of them, unless the replica loses it itself. A lease handed on by LocalHandoff is not waited for again.
func WithReplicas(n int, timeout time.Duration) AcquireOption {
	return AcquireOption{"WithReplicas", inLock | inSide, func(t *terms) { t.replicas, t.replicaTimeout = &n, timeout }}
}

// terms are what one acquisition asks for.
type terms struct {
	place          place
	strays         [len(placeNames)]stray // by place; not the options: they would not stay on the caller's stack
	weight         int
	ttl            time.Duration
	label          string
	onWait         func(Waiting)
	reentrant      bool
	pace           *Rate
	handoffs       *int
	replicas       *int
	replicaTimeout time.Duration
	agreed         ledger.Terms
}

func newTerms(options []AcquireOption) terms {
	t := terms{place: inLock, weight: 1, ttl: DefaultTTL}
	for _, option := range options {
		for i := range t.strays {
			if option.holds&(1<<i) == 0 && !t.strays[i].found {
				t.strays[i] = stray{option.name, option.holds, true}
			}
		}
		if option.apply != nil {
			option.apply(&t)
		}
	}
	t.ttl = t.ttl.Truncate(time.Millisecond) // the server's grain
	if t.pace != nil {
		t.agreed.Pace = t.pace.interval
	}
	if t.handoffs != nil {
		t.agreed.Block = *t.handoffs
	}
	return t
}

// weighing returns the terms with another weight.
func (t *terms) weighing(weight int) *terms {
	other := *t
	other.weight = weight
	return &other
}

// check refuses what no server needs to be asked about.
func (t *terms) check(name string, limit int) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("acquire %q: %w: %s", name, ErrInvalid, fmt.Sprintf(format, args...))
	}
	stray := t.strays[bits.TrailingZeros8(uint8(t.place))]
	notLabel := unshowable(t.label)
	switch {
	case stray.found && stray.name == "":
		return invalid("an empty AcquireOption; make them by TTL, Weight and the others")
	case stray.found:
		return invalid("option %s has no meaning in %v; it has in %v", stray.name, t.place, stray.holds)
	case notLabel != "":
		return invalid("label %.40q %s", t.label, notLabel)
	case limit < 1 || limit > ledger.MaxLimit:
		return invalid("limit %d, must be 1 to %d", limit, ledger.MaxLimit)
	case t.weight < 1:
		return invalid("weight %d, must be at least 1", t.weight)
	case t.weight > limit:
		return fmt.Errorf("acquire %q: %w: weight %d of limit %d", name, ErrTooHeavy, t.weight, limit)
	case t.ttl < MinTTL || t.ttl > MaxTTL:
		return invalid("ttl %v, must be %v to %v", t.ttl, MinTTL, MaxTTL)
	case t.agreed.Cool < 0 || t.agreed.Cool > MaxTTL:
		return invalid("lock delay %v, must be 0 to %v", t.agreed.Cool, MaxTTL)
	case t.agreed.Hold < 0 || t.agreed.Hold > MaxTTL:
		return invalid("hold at least %v, must be 0 to %v", t.agreed.Hold, MaxTTL)
	case t.pace != nil && !t.pace.valid():
		return invalid("pace %v, must be a unit every %v to %v", t.pace.interval, MinInterval, MaxTTL)
	case t.pace != nil && (t.agreed.Burst < 1 || t.agreed.Burst > MaxBurst):
		return invalid("burst %d, must be 1 to %d", t.agreed.Burst, MaxBurst)
	case t.pace != nil && !t.pace.gives(t.agreed.Burst):
		return invalid("a burst of %d, a unit every %v, must be earned within %v", t.agreed.Burst, t.pace.interval, maxSpan)
	case t.handoffs != nil && (*t.handoffs < 1 || *t.handoffs > MaxHandoffs):
		return invalid("local handoff %d, must be 1 to %d", *t.handoffs, MaxHandoffs)
	case t.handoffs != nil && (t.pace != nil || t.agreed.Hold > 0):
		return invalid("LocalHandoff with Pace or HoldAtLeast: a lease that is passed on inside the process heeds neither")
	case t.replicas != nil && (*t.replicas < 1 || t.replicaTimeout < time.Millisecond):
		return invalid("%d replicas within %v, must be at least 1 within 1ms", *t.replicas, t.replicaTimeout)
	}
	return nil
}
