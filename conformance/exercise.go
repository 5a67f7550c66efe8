// Package conformance states what Signalbox promises, as tests that run against any server: Exercise is the whole
// suite, and each promise is a subtest of it named by its invariant (docs/invariants.md).
//
// Two layers are asked. Most subtests speak to the ledger itself, one transition after the other: there deadlines are
// minutes away and pass because the test writes one that lies in the past (bench.expire), so nothing waits for a clock.
// Those about what only a living process does, renewing, noticing, giving up, go through Boxes and real time.
//
// A server may also die and come back while the promises are being kept (Restarts). A wait that must then be longer says
// so by lasting, ttl and claim; a transition whose answer may be lost and asked for again goes over bench.repeat.
//
// To add a promise: a function here in the file of its kind, a line in its list, a line in docs/invariants.md.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
	"github.com/signalbox-io/signalbox/internal/transport/over"
)

// Dial returns a new client of the server under test. It closes the client at the end of the test it is given.
type Dial func(t *testing.T) redis.UniversalClient

// Open returns a transport over a new client of its own to the server under test. The client is closed at the end of the
// test it is given.
type Open func(t *testing.T) transport.Transport

// Exercise runs the suite. The server may hold other data; the suite takes names of its own, and flushes the script
// cache.
func Exercise(t *testing.T, dial func(t *testing.T) redis.UniversalClient) {
	t.Helper()
	ExerciseOver(t, dial, func(t *testing.T) transport.Transport { return goredis.New(dial(t)) })
}

// ExerciseOver runs the suite with Boxes and ledgers over a transport of another kind. The clients of dial only look on,
// and break things.
func ExerciseOver(t *testing.T, dial Dial, open Open) {
	t.Helper()
	for name, keep := range Promises() {
		t.Run(name, func(t *testing.T) { keep(t, Server{Dial: dial, Open: open}) })
	}
}

// Server is where a promise is to be kept.
type Server struct {
	Dial Dial // of clients that look on and break things; they lose no request
	Open Open
	// Restarts is nil for a server that stays.
	Restarts *Restarts
}

// Restarts says that the server may die at any moment, even in the middle of a transition, and comes back with all that
// it acknowledged.
type Restarts struct {
	// Steady is Open for transports none of whose requests is under way when the server dies. Transitions go over it
	// whose second answer is not the first: nobody could tell a release that found nothing from one whose answer got
	// lost. The others are asked for again.
	Steady Open
	// Away is longer than the server ever is. What must not end meanwhile, ttls and claim times, is longer by it.
	Away time.Duration
}

// Promise has a server keep what its name says; a test that fails says that it has not. It takes a name of its own, so
// that many can be asked of one server at once, but for the one with a key of a wrong type, which List would meet.
type Promise func(t *testing.T, server Server)

// Promises returns the whole suite, by name.
func Promises() map[string]Promise {
	all := make(map[string]Promise)
	for _, list := range []map[string]func(*bench){
		ledgerPromises, tornPromises, boxPromises, edgePromises,
		termPromises, primitivePromises, gatherPromises,
	} {
		for name, promise := range list {
			all[name] = func(t *testing.T, server Server) {
				t.Helper()
				guard(t, 2*server.atMost())
				promise(newBench(t, server, name))
			}
		}
	}
	return all
}

// patience is how long anything may take that happens soon. It passes in full only if the test fails.
const patience = 20 * time.Second

// away is how long the server may be.
func (s Server) away() time.Duration {
	if s.Restarts == nil {
		return 0
	}
	return s.Restarts.Away
}

// atMost is how long the calls of one promise may take together: its context ends then.
func (s Server) atMost() time.Duration { return 6 * (patience + 5*s.away()) }

// guard ends the process when a promise does not end, long after its context has and long before go test would give up:
// a call that heeds neither its context nor a close leaves nothing else to do. Where it hangs is in the stacks that a
// panic prints.
func guard(t *testing.T, stuck time.Duration) {
	name := t.Name()
	watchdog := time.AfterFunc(stuck, func() { panic(fmt.Sprintf("%s: not over after %v", name, stuck)) })
	t.Cleanup(func() { watchdog.Stop() })
}

// bench is one test's place of work: a server, a resource, and short words for what one does with them.
type bench struct {
	*testing.T
	ctx      context.Context
	open     Open
	client   redis.UniversalClient
	ledger   *ledger.Ledger
	again    *ledger.Ledger // for transitions that may be asked for again
	away     time.Duration  // how long the server may be; 0 if it stays
	atMost   time.Duration  // how long the calls may take together
	name     string
	resource *ledger.Resource
	keys     []string
}

func newBench(t *testing.T, server Server, name string) *bench {
	b := &bench{T: t, open: server.Open, client: server.Dial(t), away: server.away(), atMost: server.atMost()}
	steady := server.Open
	if server.Restarts != nil {
		steady = server.Restarts.Steady
	}
	ctx, done := context.WithTimeout(context.Background(), b.atMost)
	t.Cleanup(done)
	b.ctx, b.ledger = ctx, ledger.New(steady(t))
	b.again = b.ledger
	if server.Restarts != nil {
		b.again = ledger.New(server.Open(t))
	}
	b.use(fmt.Sprintf("%s %d", name, time.Now().UnixNano()))
	return b
}

func (b *bench) patience() time.Duration { return patience + 5*b.away }

// lasting is a span that is not to be over just because the server is away.
func (b *bench) lasting(d time.Duration) time.Duration { return d + b.away }

func (b *bench) ttl(d time.Duration) signalbox.AcquireOption { return signalbox.TTL(b.lasting(d)) }
func (b *bench) claim(d time.Duration) signalbox.Option      { return signalbox.Claim(b.lasting(d)) }

// repeat makes a call of b.again until the server is there to answer it.
func (b *bench) repeat(call func() error) {
	b.Helper()
	err := call()
	for b.away > 0 && err != nil && ledger.Retryable(err) && b.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		err = call()
	}
	b.must(err)
}

// use makes another resource the one that is worked on.
func (b *bench) use(name string) {
	b.Helper()
	resource, err := ledger.NewResource(name)
	b.must(err)
	b.name, b.resource, b.keys = name, resource, resource.Keys()
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func equal[T comparable](b *bench, what string, got, want T) {
	b.Helper()
	if got != want {
		b.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// eventually polls until ok holds: for what another goroutine or the server does in its own time.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(b.patience()); !ok(); <-tick.C {
		if time.Now().After(end) {
			b.Fatalf("not in %v: %s", b.patience(), what)
		}
	}
}

// awaited returns what comes from a channel, and fails when the test's time is over before.
func awaited[T any](b *bench, what string, from <-chan T) (value T) {
	b.Helper()
	select {
	case came, open := <-from:
		if !open {
			b.Fatalf("will never come: %s", what)
		}
		value = came
	case <-b.ctx.Done():
		b.Fatalf("has not come in %v: %s", b.atMost, what)
	}
	return value
}

// ends waits for the end of a lease.
func (b *bench) ends(lease *signalbox.Lease) {
	b.Helper()
	select {
	case <-lease.Done():
	case <-b.ctx.Done():
		b.Fatalf("a lease has not ended in %v", b.atMost)
	}
}

// join waits for workers, which heed b.ctx.
func (b *bench) join(workers *sync.WaitGroup) {
	b.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		workers.Wait()
	}()
	select {
	case <-over:
	case <-time.After(b.atMost + patience):
		b.Fatal("workers do not heed their context")
	}
}

// ask acquires with wait; id gets a process of its own so that every waiter has an inbox nobody reads.
func (b *bench) ask(id string, weight, limit int) ledger.AcquireAnswer {
	b.Helper()
	return b.acquire(id, weight, limit, time.Minute)
}

func (b *bench) try(id string, weight, limit int) ledger.AcquireAnswer {
	b.Helper()
	return b.acquire(id, weight, limit, 0)
}

func (b *bench) acquire(id string, weight, limit int, wait time.Duration) ledger.AcquireAnswer {
	b.Helper()
	var answer ledger.AcquireAnswer
	b.repeat(func() (err error) {
		answer, err = b.again.Acquire(b.ctx, b.request(id, weight, limit, wait))
		return err
	})
	return answer
}

func (b *bench) request(id string, weight, limit int, wait time.Duration) *ledger.AcquireRequest {
	return &ledger.AcquireRequest{
		Resource: b.resource, ID: qualified(id), Weight: weight, Limit: limit, TTL: time.Minute, Wait: wait,
		Claim: time.Minute, Owner: "conformance " + id,
	}
}

func qualified(id string) string {
	if strings.Contains(id, ":") {
		return id
	}
	return "process-" + id + ":1"
}

func (b *bench) granted(id string, weight, limit int) ledger.AcquireAnswer {
	b.Helper()
	answer := b.ask(id, weight, limit)
	equal(b, "outcome of "+id, answer.Outcome, ledger.Granted)
	return answer
}

func (b *bench) waits(id string, weight, limit int) {
	b.Helper()
	equal(b, "outcome of "+id, b.ask(id, weight, limit).Outcome, ledger.Waiting)
}

func (b *bench) release(id string) ledger.Hold {
	b.Helper()
	hold, err := b.ledger.Release(b.ctx, b.resource, qualified(id))
	b.must(err)
	return hold
}

func (b *bench) renew(id string) ledger.Hold {
	b.Helper()
	var result ledger.RenewResult
	b.repeat(func() error {
		result = b.again.RenewAll(b.ctx, []ledger.RenewRequest{{
			Resource: b.resource, Leases: []ledger.Renewal{{ID: qualified(id), TTL: time.Minute}},
		}})[0]
		return result.Err
	})
	return result.Holds[0]
}

func (b *bench) cancel(id string) ledger.Cancelled {
	b.Helper()
	was, err := b.ledger.Cancel(b.ctx, b.resource, qualified(id), time.Minute)
	b.must(err)
	return was
}

func (b *bench) resize(limit int) {
	b.Helper()
	b.repeat(func() error {
		_, err := b.again.Resize(b.ctx, b.resource, limit)
		return err
	})
}

func (b *bench) inspect() ledger.State {
	b.Helper()
	var state ledger.State
	b.repeat(func() (err error) {
		state, err = b.again.Inspect(b.ctx, b.resource, 1000)
		return err
	})
	return state
}

// holders returns who holds, waiters who waits, both without what qualified added, joined by blanks.
func (b *bench) holders() string { return names(b.inspect().Holders) }
func (b *bench) waiters() string { return names(b.inspect().Queue) }

func names(entries []ledger.Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, strings.TrimSuffix(strings.TrimPrefix(e.ID, "process-"), ":1"))
	}
	return strings.Join(list, " ")
}

// expire lets the lease, or the waiting, of an id be over.
func (b *bench) expire(id string) {
	b.Helper()
	b.probe("overdue", qualified(id))
}

// probe does to the keys what only time and accidents do.
func (b *bench) probe(what string, how any) {
	b.Helper()
	b.must(b.client.Eval(b.ctx, ledger.Probe, b.keys, what, how).Err())
}

// stored is what the keys hold.
func (b *bench) stored() ledger.Stored {
	b.Helper()
	reply, err := b.client.Eval(b.ctx, ledger.Probe, b.keys, "read").Result()
	b.must(err)
	stored, err := ledger.ReadStored(reply)
	b.must(err)
	return stored[0]
}

// box returns a Box of a process of its own.
func (b *bench) box(options ...signalbox.Option) *signalbox.Box {
	b.Helper()
	return b.boxOver(b.open(b.T), options...)
}

// hooked returns a Box whose commands meet a fault.
func (b *bench) hooked(between fault, options ...signalbox.Option) *signalbox.Box {
	b.Helper()
	between.over(b.open(b.T))
	return b.boxOver(between, options...)
}

func (b *bench) boxOver(t transport.Transport, options ...signalbox.Option) *signalbox.Box {
	b.Helper()
	box := over.New(t, append([]signalbox.Option{b.claim(signalbox.DefaultClaim)}, options...)...)
	_, broken := t.(fault)
	b.Cleanup(func() {
		// Behind a fault Close may have something that it could not tell.
		if err := box.Close(); err != nil && (!broken || !errors.Is(err, signalbox.ErrUnavailable)) {
			b.Error(err)
		}
	})
	return box
}
