package signalbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// Box is the door to all primitives over one client. It may be used by any number of goroutines. A process needs one.
type Box struct {
	transport   transport.Transport
	closeClient func() error // nil if the client is the caller's
	ledger      *ledger.Ledger
	process     string // names the inbox and begins every id
	owner       string
	claim       time.Duration
	keeper      keeper
	inbox       inbox

	acquisitions atomic.Uint64
	supported    atomic.Bool
	checking     chan struct{} // a turn to ask for the server's version

	closing  chan struct{} // closed by Close: acquisitions give up
	stopping context.Context
	stop     context.CancelFunc // ends keeper and inbox
	servants sync.WaitGroup     // keeper and inbox
	tasks    sync.WaitGroup     // acquisitions, and what they and the keeper started

	observers []func(Observation)

	mu      sync.Mutex
	members map[string]member // by id: waiters, then leases
	relays  map[relayKey]*relay
	closed  chan struct{} // made by the first Close, closed when it is done
}

// member is who can be told something: a waiter or a lease.
type member interface {
	hear(message)
	shut() // the box closes
}

// New returns a Box over a client that stays the caller's: Close leaves it open. A client with MaxRetries -1 is best:
// retries it does by itself are unknown to the Box, which sends its own.
func New(client redis.UniversalClient, options ...Option) *Box {
	return NewOver(goredis.New(client), options...)
}

// NewOver returns a Box over a transport: what carries it to the servers when that is not go-redis. It is for this
// module's packages, as its parameter's type is: what a transport must get right about errors (L7 rests on it) only the
// conformance suite can tell, and the interface still grows. Use New, or rueidisbox.New.
func NewOver(t transport.Transport, options ...Option) *Box {
	stopping, stop := context.WithCancel(context.Background())
	b := &Box{
		transport: t, ledger: ledger.New(t), process: rand.Text()[:16], owner: thisProcess(), claim: DefaultClaim,
		checking: make(chan struct{}, 1), closing: make(chan struct{}), stopping: stopping, stop: stop,
		members: make(map[string]member), relays: make(map[relayKey]*relay),
	}
	for _, option := range options {
		option(b)
	}
	b.keeper = keeper{box: b, wake: make(chan struct{}, 1), origin: time.Now()}
	b.inbox = inbox{box: b}
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
// left. What a server that does not answer is to be told is tried for twice the claim time at most, and the timeouts of the
// client.
func (b *Box) Close() error {
	b.mu.Lock()
	if b.closed != nil {
		b.mu.Unlock()
		<-b.closed
		return nil
	}
	b.closed = make(chan struct{})
	defer close(b.closed)
	close(b.closing)
	members := make([]member, 0, len(b.members))
	for _, m := range b.members {
		members = append(members, m)
	}
	b.tasks.Add(len(members))
	b.mu.Unlock()

	for _, m := range members {
		go func() {
			defer b.tasks.Done()
			m.shut()
		}()
	}
	b.stop()
	b.servants.Wait()
	b.tasks.Wait()
	if b.closeClient != nil {
		return b.closeClient()
	}
	return nil
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

// spawn runs fn as a task of its own. Only tasks and servants may call it, so that Close cannot miss one.
func (b *Box) spawn(fn func()) {
	b.tasks.Go(fn)
}

// patiently runs fn as a task that was counted by enter, and waits for it a moment.
func (b *Box) patiently(fn func()) {
	done := make(chan struct{})
	go func() {
		defer b.tasks.Done()
		defer close(done)
		fn()
	}()
	patience := time.NewTimer(cancelPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
}

// serve starts a servant, unless the box is closed.
func (b *Box) serve(run func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed == nil {
		b.servants.Go(run)
	}
}

// join makes m the one that messages for id go to. A closed box takes none: it reports false.
func (b *Box) join(id string, m member) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		return false
	}
	b.members[id] = m
	return true
}

// part forgets id if it is still m's.
func (b *Box) part(id string, m member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.members[id] == m {
		delete(b.members, id)
	}
}

func (b *Box) member(id string) member {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.members[id]
}

func (b *Box) newID() string {
	return b.process + ":" + strconv.FormatUint(b.acquisitions.Add(1), 10)
}

// checkServer asks the server for its version until it has been answered once.
func (b *Box) checkServer(ctx context.Context) error {
	if b.supported.Load() {
		return nil
	}
	select {
	case b.checking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.checking }()
	if b.supported.Load() {
		return nil
	}
	err := b.ledger.CheckServer(ctx)
	b.supported.Store(err == nil)
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
	if err != nil && over(ctx) != nil {
		return over(ctx)
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
