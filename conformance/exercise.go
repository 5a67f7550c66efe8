// Package conformance states what Signalbox promises, as tests that run against any server: Exercise is the whole
// suite, and each promise is a subtest of it named by its invariant (docs/invariants.md).
//
// Two layers are asked. Most subtests speak to the ledger itself, one transition after the other: there deadlines are
// minutes away and pass because the test writes one that lies in the past (bench.expire), so nothing waits for a clock.
// Those about what only a living process does, renewing, noticing, giving up, go through Boxes and real time.
//
// To add a promise: a function here in the file of its kind, a line in its list, a line in docs/invariants.md.
package conformance

import (
	"context"
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
	for _, list := range []map[string]func(*bench){
		ledgerPromises, tornPromises, boxPromises, edgePromises,
		termPromises, primitivePromises, gatherPromises,
	} {
		for name, promise := range list {
			t.Run(name, func(t *testing.T) {
				guard(t)
				promise(newBench(t, dial, open, name))
			})
		}
	}
}

// patience is how long anything may take that happens soon.
const patience = 10 * time.Second

// atMost is how long the calls of one promise may take together: its context ends then.
const atMost = 6 * patience

// stuck is how long a promise may take: long after its context has ended, and long before go test would give up.
const stuck = 12 * patience

// guard ends the process when a promise does not end: a call that heeds neither its context nor a close leaves nothing
// else to do. Where it hangs is in the stacks that a panic prints.
func guard(t *testing.T) {
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
	name     string
	resource *ledger.Resource
	keys     []string
}

func newBench(t *testing.T, dial Dial, open Open, name string) *bench {
	ctx, done := context.WithTimeout(context.Background(), atMost)
	t.Cleanup(done)
	b := &bench{T: t, ctx: ctx, open: open, client: dial(t), ledger: ledger.New(open(t))}
	b.use(fmt.Sprintf("%s %d", name, time.Now().UnixNano()))
	return b
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
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			b.Fatalf("not in %v: %s", patience, what)
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
		b.Fatalf("has not come in %v: %s", atMost, what)
	}
	return value
}

// ends waits for the end of a lease.
func (b *bench) ends(lease *signalbox.Lease) {
	b.Helper()
	select {
	case <-lease.Done():
	case <-b.ctx.Done():
		b.Fatalf("a lease has not ended in %v", atMost)
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
	case <-time.After(atMost + patience):
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
	answer, err := b.ledger.Acquire(b.ctx, b.request(id, weight, limit, wait))
	b.must(err)
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
	result := b.ledger.RenewAll(b.ctx, []ledger.RenewRequest{{
		Resource: b.resource, Leases: []ledger.Renewal{{ID: qualified(id), TTL: time.Minute}},
	}})[0]
	b.must(result.Err)
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
	_, err := b.ledger.Resize(b.ctx, b.resource, limit)
	b.must(err)
}

func (b *bench) inspect() ledger.State {
	b.Helper()
	state, err := b.ledger.Inspect(b.ctx, b.resource, 1000)
	b.must(err)
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
	past := redis.Z{Score: 1, Member: qualified(id)}
	b.must(b.client.ZAddXX(b.ctx, b.keys[1], past).Err())
	b.must(b.client.ZAddXX(b.ctx, b.keys[3], past).Err())
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

func (b *bench) boxOver(over transport.Transport, options ...signalbox.Option) *signalbox.Box {
	b.Helper()
	box := signalbox.NewOver(over, options...)
	b.Cleanup(func() {
		if err := box.Close(); err != nil {
			b.Error(err)
		}
	})
	return box
}
