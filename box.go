package signalbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/leaseclock"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// Box is the door to all primitives over one client. It may be used by any number of goroutines. A process needs one.
//
// Inside it is a shell around lives (life.go): what happens to an acquisition is decided by the machine in package
// acquisition, one for each, stepped with mu held. mu is the only lock of the Box and of all that belongs to it: leases,
// relays, the alarms. Nothing is called with it held that could wait, or that is not of this package; what a step wants done
// outside is put into an outbox and done when mu is free. Under it lie only the locks of the transport.
type Box struct {
	transport   transport.Transport
	closeClient func() error // nil if the client is the caller's
	lanes       [2]*transport.Lanes
	ledger      *ledger.Ledger    // for callers: as long as their contexts and the client allow
	asking      *ledger.Ledger    // for acquisitions: for no longer than the claim time, or leastPatience
	background  *ledger.Ledger    // what nobody waits for, in lanes with the callers', for no longer than the claim time
	renewals    *ledger.Ledger    // with lanes of their own
	process     string            // names the inbox and begins every id
	shards      *transport.Shards // the inbox in a Cluster, nil elsewhere
	owner       string
	err         error // what is wrong with the options: every call reports it
	claim       time.Duration
	clock       *leaseclock.Clock
	observers   []func(Observation)

	acquisitions atomic.Uint64
	supported    atomic.Bool
	misfits      atomic.Int64 // events that came in states where they cannot be

	closing  chan struct{} // closed by Close: acquisitions give up
	stopping context.Context
	stop     context.CancelFunc // ends loop and inbox
	servants sync.WaitGroup     // loop and inbox
	tasks    sync.WaitGroup     // acquisitions, and what they and the loop started
	ring     chan struct{}      // the loop is to look again

	mu        mutex
	lives     map[string]*life // by the ids that messages come for
	scratch   acquisition.Scratch
	alarms    alarms
	alarm     acquisition.Instant       // when the loop will look again by itself; 0 = never
	running   bool                      // the loop
	handed    []sending                 // to the loop
	listening bool                      // the inbox
	hearers   map[string]map[*life]bool // in a Cluster, by channel
	relays    map[relayKey]*relay
	probe     *probe        // nil while nobody asks for the server's version
	closed    chan struct{} // made by the first Close, closed when it is done
	ended     chan struct{} // made by Close, closed when no life is left, and nil then
	finished  bool          // nothing is started any more
	unsent    unsent
	told      int   // lives that ended since, of whose end the server knows
	closeErr  error // of the first Close
}

// mutex is a Box's. Goroutines of the Box's own lock first and no more: what they do keeps leases, and must not stand behind
// a hundred thousand callers. These have a line for themselves, from whose head one at a time comes here.
type mutex struct{ line, first sync.Mutex }

// Lock is for callers.
func (m *mutex) Lock() {
	m.line.Lock()
	m.first.Lock()
}

// Unlock is for callers.
func (m *mutex) Unlock() {
	m.first.Unlock()
	m.line.Unlock()
}

// leastPatience is for how long an acquisition waits for an answer at least, however short the claim time is: a server that
// is slow for a moment refuses nobody.
const leastPatience = time.Second

// New returns a Box over a client that stays the caller's: Close leaves it open. A client with MaxRetries -1 is best:
// retries it does by itself are unknown to the Box, which sends its own.
func New(client redis.UniversalClient, options ...Option) *Box {
	return newOver(goredis.New(client), options...)
}

// Package internal/transport/over hands it to those who may know transports.
func init() { transport.NewBox = newOver }

func newOver(t transport.Transport, options ...Option) *Box {
	stopping, stop := context.WithCancel(context.Background())
	b := &Box{
		transport: t, process: rand.Text()[:16], owner: thisProcess(), claim: DefaultClaim, clock: leaseclock.New(),
		closing: make(chan struct{}), stopping: stopping, stop: stop,
		ring: make(chan struct{}, 1), lives: make(map[string]*life), relays: make(map[relayKey]*relay),
	}
	if clustered, ok := t.(transport.Clustered); ok && clustered.Sharded() {
		b.process = ledger.Sharded + b.process
		b.shards, b.hearers = transport.NewShards(clustered, b.receive), make(map[string]map[*life]bool)
	}
	for _, option := range options {
		option(b)
	}
	b.lanes = [2]*transport.Lanes{transport.NewLanes(t), transport.NewLanes(t)}
	b.ledger = ledger.New(b.lanes[0])
	b.background = b.ledger.Within(b.claim)
	b.asking = b.ledger.Within(max(b.claim, leastPatience))
	b.renewals = ledger.New(b.lanes[1]).Within(b.claim)
	return b
}

func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}

// Close ends every acquisition and every lease with ErrClosed, releases what is held, and returns when no goroutine is
// left. That takes as long as the server goes on taking what it is told. One that does not answer is tried for the claim time,
// and for as long again what was on its way. If it could not be told of something, the error wraps ErrUnavailable and says of
// how much and what; the server ends that by itself, when its ttl is over. Calling it again returns the same.
func (b *Box) Close() error {
	b.mu.Lock()
	if b.closed != nil {
		b.mu.Unlock()
		<-b.closed
		return b.closeErr
	}
	ended := make(chan struct{})
	b.closed, b.ended = make(chan struct{}), ended
	defer close(b.closed)
	close(b.closing)
	var out outbox
	now := b.clock.Now()
	for _, l := range b.lives {
		b.step(l, now, acquisition.Event{What: acquisition.Close}, &out)
	}
	if len(b.lives) == 0 && b.ended != nil {
		close(ended)
		b.ended = nil
	}
	b.mu.Unlock()
	b.perform(&out)

	b.awaitEnds(ended)
	b.stop() // what is still under way fails
	b.servants.Wait()
	b.mu.Lock()
	for _, l := range b.lives {
		b.forget(l, &acquisition.Action{Why: acquisition.Failure, Err: errHurry})
	}
	b.finished = true
	b.mu.Unlock()
	for _, lanes := range b.lanes {
		lanes.Close() // those who wait in them do so no longer
	}
	b.tasks.Wait()
	b.closeErr = b.unsent.err()
	if b.closeClient != nil {
		b.closeErr = errors.Join(b.closeErr, b.closeClient())
	}
	return b.closeErr
}

// awaitEnds returns when no life is left, or the server has been told of no end for as long as one is tried.
func (b *Box) awaitEnds(ended <-chan struct{}) {
	patience := time.NewTicker(2 * b.claim)
	defer patience.Stop()
	for before := 0; ; {
		select {
		case <-ended:
			return
		case <-patience.C:
		}
		b.mu.Lock()
		told := b.told
		b.mu.Unlock()
		if told == before {
			return
		}
		before = told
	}
}

// unsent is what the server could not be told while the box closed.
type unsent struct {
	count int
	names []string // some of them
	last  error
}

// unsentNames is how many names an error lists.
const unsentNames = 5

// errHurry is what Close says of requests that it did not wait for any longer.
var errHurry = errors.New("no answer for as long as Close waits")

func (u *unsent) add(name string, err error) {
	if errors.Is(err, context.Canceled) {
		err = errHurry
	}
	u.count, u.last = u.count+1, err
	if len(u.names) < unsentNames && !slices.Contains(u.names, name) {
		u.names = append(u.names, name)
	}
}

func (u *unsent) err() error {
	if u.count == 0 {
		return nil
	}
	return fmt.Errorf("close: %w: the server could not be told of the end of %d leases and acquisitions, of %q and others; "+
		"it ends them when their ttl is over: %w", ErrUnavailable, u.count, u.names, u.last)
}

// enter counts one more task, unless the box is closed. The caller ends it with tasks.Done.
func (b *Box) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		return ErrClosed
	}
	b.tasks.Add(1)
	return nil
}

func (b *Box) newID() string {
	return b.process + ":" + strconv.FormatUint(b.acquisitions.Add(1), 10)
}

// probe is one question for the server's version, whose answer is everybody's who wants to know it meanwhile.
type probe struct {
	done chan struct{}
	err  error
}

// checkServer asks the server for its version until it has been answered once.
func (b *Box) checkServer(ctx context.Context) error {
	for !b.supported.Load() {
		b.mu.Lock()
		p, first := b.probe, b.probe == nil
		if first {
			p = &probe{done: make(chan struct{})}
			b.probe = p
		}
		b.mu.Unlock()
		if first {
			p.err = b.askVersion(ctx)
			b.mu.Lock()
			b.probe = nil
			b.mu.Unlock()
			close(p.done)
			return p.err
		}
		select {
		case <-p.done:
			if p.err != nil && !errors.Is(p.err, context.Canceled) && !errors.Is(p.err, context.DeadlineExceeded) {
				return p.err
			} // else it was only that the one who asked gave up
		case <-ctx.Done():
			return ctx.Err()
		case <-b.closing:
			return ErrClosed
		}
	}
	return nil
}

func (b *Box) askVersion(ctx context.Context) error {
	if b.err != nil {
		return b.err
	}
	eviction, err := b.asking.CheckServer(ctx)
	b.supported.Store(err == nil)
	if err == nil && eviction != "" {
		b.observe(Observation{What: Warned, At: time.Now(), Context: ctx, Err: fmt.Errorf(
			"open: %w: its maxmemory-policy is %s: set it to noeviction, or use a server of its own", ErrEvicts, eviction)})
	}
	return err
}

// ready says whether the box may be used: it is open, and its server is one that can be worked with.
func (b *Box) ready(ctx context.Context) error {
	select {
	case <-b.closing:
		return ErrClosed
	default:
	}
	err := b.checkServer(ctx)
	if err != nil && endOf(ctx) != nil {
		return endOf(ctx)
	}
	return err
}

// resource checks a name for the calls that take one.
func (b *Box) resource(ctx context.Context, verb, name string) (*ledger.Resource, error) {
	resource, err := ledger.NewResource(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err) // it tells as much of the name as fits
	}
	if err := b.ready(ctx); err != nil {
		return nil, fmt.Errorf("%s %q: %w", verb, name, err)
	}
	return resource, nil
}
