package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

// The times of a load. The claim time and the ttl are short, so that what a fault delays is over soon, and yet long
// beside what a busy machine takes from a process.
const (
	TTL   = 1500 * time.Millisecond
	Claim = 600 * time.Millisecond

	boxes         = 3
	workersPerBox = 5
	holdMost      = 3 * time.Millisecond
	// starved is how long an acquisition may wait that nobody cancels. It passes in full only if the test fails.
	starved = 60 * time.Second
)

// Setup says what a Load works on.
type Setup struct {
	// URL is where the boxes go, perhaps through a proxy.
	URL string
	// Well is where a box goes that looks at what is left; "" = URL.
	Well string
	// Servers returns clients of all primaries that are alive, for a look at their keys.
	Servers func() []*redis.Client
	// NoFailure says that the fault is one that no caller may notice.
	NoFailure bool
	// PerBox is how many workers each box has; 0 = 5.
	PerBox int
}

// unhurried is by how much the times of a load are longer if no caller may notice the fault: then nobody may notice that
// the machine is busy either.
const unhurried = 3

func (s *Setup) ttl() time.Duration   { return s.span(TTL) }
func (s *Setup) claim() time.Duration { return s.span(Claim) }

func (s *Setup) span(d time.Duration) time.Duration {
	if s.NoFailure {
		return unhurried * d
	}
	return d
}

// Load is workers on several boxes, which acquire, try, cancel, hold and release at random, and a checker that hears of
// all they see.
type Load struct {
	t       *testing.T
	setup   Setup
	checker *checker
	ctx     context.Context // ends when the workers are to stop
	stop    context.CancelFunc
	boxes   []*signalbox.Box
	workers sync.WaitGroup
	turns   []atomic.Int64 // of each worker
	failed  atomic.Int64   // calls that a fault made fail
}

// limits are those of the resources of a load, which take them in turn.
var limits = []int{1, 3, 5}

// resources is how many there are: enough for the slots of a Cluster, few enough for a queue before each.
const resources = 6

// Names returns the names of the resources of a load in the given test.
func Names(t *testing.T) (names []string) {
	for i := range resources {
		names = append(names, fmt.Sprintf("%s %d", t.Name(), i))
	}
	return names
}

// StartLoad starts the workers, and returns when each has had its turn. Finish must follow.
func StartLoad(t *testing.T, setup Setup) *Load {
	t.Helper()
	if setup.Well == "" {
		setup.Well = setup.URL
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{
		t: t, setup: setup, checker: newChecker(t, setup.NoFailure), ctx: ctx, stop: stop,
		turns: make([]atomic.Int64, boxes*cmp.Or(setup.PerBox, workersPerBox)),
	}
	t.Cleanup(l.end) // if the test does not come to Finish
	for range boxes {
		l.boxes = append(l.boxes, Open(l.t, l.setup.URL, l.setup.claim()))
	}
	names := Names(t)
	for i := range l.turns {
		l.workers.Go(func() { l.work(l.boxes[i%boxes], names, &l.turns[i]) })
	}
	l.Turns(2)
	return l
}

// Open returns a box. The URL may say that the client waits for an answer for a short time only, as the fault wants it;
// on a busy machine that may be too short for the first one.
func Open(t *testing.T, url string, claim time.Duration) (box *signalbox.Box) {
	t.Helper()
	var err error
	Await(t, "a box", func() bool {
		box, err = signalbox.Open(t.Context(), url, signalbox.Claim(claim))
		return err == nil || !errors.Is(err, signalbox.ErrUnavailable)
	})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// Turns returns when every worker has been granted n leases more.
func (l *Load) Turns(n int64) {
	l.t.Helper()
	var goal []int64
	for i := range l.turns {
		goal = append(goal, l.turns[i].Load()+n)
	}
	l.await(fmt.Sprintf("%d turns for every worker", n), func() bool {
		for i := range l.turns {
			if l.turns[i].Load() < goal[i] {
				return false
			}
		}
		return true
	})
}

// Failures returns when n calls more have failed, which shows that a fault is felt.
func (l *Load) Failures(n int64) {
	l.t.Helper()
	goal := l.failed.Load() + n
	l.await(fmt.Sprintf("%d calls that fail", n), func() bool { return l.failed.Load() >= goal })
}

// Granted returns when n leases more have been granted to anybody.
func (l *Load) Granted(n int) {
	l.t.Helper()
	goal := l.checker.count() + n
	l.await(fmt.Sprintf("%d grants", n), func() bool { return l.checker.count() >= goal })
}

// Losing runs what may lose writes that were acknowledged. It must return when they are lost, if they are.
func (l *Load) Losing(act func()) {
	l.t.Helper()
	l.checker.losing(true)
	act()
	l.checker.losing(false)
}

// await polls until ok holds, and gives up if the checker does.
func (l *Load) await(what string, ok func() bool) {
	l.t.Helper()
	Await(l.t, what, func() bool {
		l.checker.report(l.t)
		return ok()
	})
}

// stuck is how long a whole test may take: much longer than any, and well below what go test allows.
const stuck = 4 * time.Minute

// guard ends the process when a test does not end: a call that heeds neither its context nor a close leaves nothing else
// to do. Where it hangs is in the stacks that a panic prints.
func guard(t *testing.T, longer time.Duration) {
	name, limit := t.Name(), stuck+longer
	watchdog := time.AfterFunc(limit, func() { panic(fmt.Sprintf("%s: not over after %v", name, limit)) })
	t.Cleanup(func() { watchdog.Stop() })
}

// Patient returns a context for what must not wait for ever. It ends much later than anything takes.
func Patient(t *testing.T) context.Context {
	ctx, done := context.WithTimeout(t.Context(), starved)
	t.Cleanup(done)
	return ctx
}

// Awaited returns what comes from a channel, which may be closed to say so. It gives up as Await does.
func Awaited[T any](t *testing.T, what string, from <-chan T) (value T) {
	t.Helper()
	giveUp := time.NewTimer(starved + 30*time.Second)
	defer giveUp.Stop()
	select {
	case value = <-from:
	case <-giveUp.C:
		t.Fatalf("never came: %s", what)
	}
	return value
}

// Await polls until ok holds. It gives up much later than anything takes.
func Await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(starved + 30*time.Second); !ok(); <-again.C {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// Finish gives every worker one more turn, ends all, and checks that nothing is left. The fault must be over; the load
// goes on until what it may have left on the servers has expired.
func (l *Load) Finish() {
	l.t.Helper()
	over := time.Now().Add(l.setup.ttl() + l.setup.claim())
	l.Turns(1)
	l.await("the end of all leases of before", func() bool { return time.Now().After(over) })
	l.end()
	l.checker.report(l.t)
	l.t.Logf("%d grants, %d leases renewed, %d calls failed", l.checker.count(), l.checker.renewals(), l.failed.Load())
	l.nothingLeft()
}

// end closes the boxes under the workers, which hold and wait, and with that ends them. Ending again does nothing.
func (l *Load) end() {
	var closing sync.WaitGroup
	for _, box := range l.boxes {
		closing.Go(func() {
			if err := box.Close(); err != nil {
				l.t.Errorf("close a box: %v", err)
			}
		})
	}
	closing.Wait()
	l.stop()
	l.workers.Wait()
	l.boxes = nil
}

func (l *Load) work(box *signalbox.Box, names []string, turns *atomic.Int64) {
	for l.ctx.Err() == nil {
		i := rand.IntN(len(names))
		limit := limits[i%len(limits)]
		a := &acquisition{resource: names[i], limit: limit, weight: 1 + rand.IntN(min(limit, 2)), called: time.Now()}
		lease, err := l.acquire(box, a)
		if errors.Is(err, signalbox.ErrClosed) {
			return
		}
		if err != nil {
			l.refused(a, err)
			continue
		}
		l.checker.granted(a, lease)
		turns.Add(1)
		l.hold(a)
		l.release(a)
	}
}

// acquire waits mostly; sometimes it tries, sometimes it cancels.
func (l *Load) acquire(box *signalbox.Box, a *acquisition) (*signalbox.Lease, error) {
	semaphore := box.Semaphore(a.resource, a.limit)
	options := []signalbox.AcquireOption{signalbox.Weight(a.weight), signalbox.TTL(l.setup.ttl())}
	switch rand.IntN(10) {
	case 0:
		a.try = true
		return semaphore.TryAcquire(l.ctx, options...)
	case 1:
		a.hasty = true
		ctx, cancel := context.WithTimeout(l.ctx, rand.N(50*time.Millisecond))
		defer cancel()
		return semaphore.Acquire(ctx, options...)
	}
	ctx, cancel := context.WithTimeout(l.ctx, starved)
	defer cancel()
	return semaphore.Acquire(ctx, options...)
}

// hold works for a moment, or for so long that the lease is renewed.
func (l *Load) hold(a *acquisition) {
	span := rand.N(holdMost)
	if rand.IntN(20) == 0 {
		span = l.setup.ttl() * 2 / 3
	}
	first := a.lease.Deadline()
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	case <-a.lease.Done():
		if !errors.Is(a.lease.Err(), signalbox.ErrClosed) {
			l.checker.lost(a)
		}
	}
	if a.lease.Deadline().After(first) {
		l.checker.renewed()
	}
}

func (l *Load) release(a *acquisition) {
	deadline := a.lease.Deadline()
	// Close ends a lease and releases it, or has been overtaken by this release.
	alive := a.lease.Err() == nil || errors.Is(a.lease.Err(), signalbox.ErrClosed)
	l.checker.releases(a)
	err := a.lease.Release(context.Background())
	if err != nil {
		l.failed.Add(1)
	}
	l.checker.released(a, alive, deadline, err)
}

// refused counts what a fault may be to blame for.
func (l *Load) refused(a *acquisition, err error) {
	switch {
	case l.ctx.Err() != nil && errors.Is(err, context.Canceled):
	case a.try && errors.Is(err, signalbox.ErrBusy):
	case a.hasty && errors.Is(err, context.DeadlineExceeded):
	default:
		l.failed.Add(1)
		l.checker.refused(a, err)
	}
}

// Repeat does something again and again, as fast as `every` allows, until the load has had n turns more of every
// worker. It is for faults that go on while others work: between two of them somebody is granted a lease, or a busy
// machine, where nothing is done in so short a time, would never come to an end.
func (l *Load) Repeat(every time.Duration, n int64, act func()) {
	l.t.Helper()
	over := make(chan struct{})
	var repeating sync.WaitGroup
	repeating.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := -1; ; {
			select {
			case <-tick.C:
				if granted := l.checker.count(); granted != last {
					last = granted
					act()
				}
			case <-over:
				return
			}
		}
	})
	defer repeating.Wait()
	defer close(over)
	l.Turns(n)
}

// WithOption adds an option of go-redis, such as read_timeout=200ms, to a URL.
func WithOption(url, option string) string {
	if strings.Contains(url, "?") {
		return url + "&" + option
	}
	return url + "?" + option
}
