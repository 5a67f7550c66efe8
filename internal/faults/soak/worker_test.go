//go:build unix

package soak_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// plan is what a process is told by its environment.
type plan struct {
	URL, Witness string
	Seed         uint64
	Boxes        int
	Workers      int // of each box
	TTL, Claim   time.Duration
	Think        time.Duration // between two turns of a worker, at most
	Name         string        // of the only semaphore that all work on; "": everything there is
	Limit        int           // of that
	NoFailure    bool          // no call may fail
}

const planVariable = "SIGNALBOX_TEST_SOAK"

// account is what a process says at its end.
type account struct {
	Turns, Failed, Renewed int
	Faults                 []string // the first few things that must not happen
	Leaked                 string
}

// mostFaults is how many are told: the first says it, the others may help.
const mostFaults = 5

// longest is how long a worker waits that does not give up. It passes in full only if the test fails.
const longest = 90 * time.Second

// crew are the workers of a process.
type crew struct {
	plan    plan
	witness witness
	ctx     context.Context // ends when the workers are to stop

	mu      sync.Mutex
	account account
}

// work is what a process does: it says "ready", begins when it is told a line, and ends when there are no more.
func work(text string) error {
	c := &crew{}
	if err := json.Unmarshal([]byte(text), &c.plan); err != nil {
		return err
	}
	c.witness = witness{redis.NewClient(&redis.Options{
		Addr: c.plan.Witness, ReadTimeout: time.Minute, PoolTimeout: time.Minute,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})}
	var boxes []*signalbox.Box
	for range c.plan.Boxes {
		box, err := c.open()
		if err != nil {
			return err
		}
		boxes = append(boxes, box)
	}
	fmt.Println(`"ready"`)
	stdin := bufio.NewReader(os.Stdin)
	if _, err := stdin.ReadString('\n'); err != nil {
		return err
	}
	var stop context.CancelFunc
	c.ctx, stop = context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for i := range c.plan.Boxes * c.plan.Workers {
		workers.Go(func() { c.turns(boxes[i%len(boxes)], uint64(i)) })
	}
	for err := error(nil); err == nil; { // any end of the input is an end
		_, err = stdin.ReadString('\n')
	}
	stop()
	workers.Wait()
	for _, box := range boxes {
		if err := box.Close(); err != nil {
			c.fault(fmt.Errorf("close a box: %w", err))
		}
	}
	if err := c.witness.client.Close(); err != nil {
		return err
	}
	if err := faults.Leaked(); err != nil {
		c.account.Leaked = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(c.account)
}

// open tries again while the network is bad.
func (c *crew) open() (box *signalbox.Box, err error) {
	for giveUp := time.Now().Add(longest); ; {
		box, err = signalbox.Open(context.Background(), c.plan.URL, signalbox.Claim(c.plan.Claim))
		if err == nil || !errors.Is(err, signalbox.ErrUnavailable) || time.Now().After(giveUp) {
			return box, err
		}
	}
}

func (c *crew) fault(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.account.Faults) < mostFaults {
		c.account.Faults = append(c.account.Faults, err.Error())
	}
}

func (c *crew) count(what *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what++
}

// worker is one goroutine.
type worker struct {
	*crew
	box    *signalbox.Box
	random *rand.Rand
	own    string // the name of a mutex that nobody else wants
}

func (c *crew) turns(box *signalbox.Box, i uint64) {
	w := &worker{c, box, rand.New(rand.NewPCG(c.plan.Seed, i)), fmt.Sprintf("own:%d:%d", os.Getpid(), i)} //nolint:gosec // can be repeated
	for c.ctx.Err() == nil {
		if c.plan.Name != "" {
			w.semaphore(c.plan.Name, c.plan.Limit, 1)
			continue
		}
		switch n := w.random.IntN(100); {
		case n < 30:
			w.semaphore(w.own, 1, 1)
		case n < 55:
			w.semaphore(fmt.Sprintf("mutex:%d", w.random.IntN(200)), 1, 1)
		case n < 75:
			w.semaphore(fmt.Sprintf("semaphore:%d", w.random.IntN(50)), 5, 1+w.random.IntN(2))
		case n < 90:
			w.readOrWrite(fmt.Sprintf("rw:%d", w.random.IntN(50)))
		default:
			w.group(w.random.IntN(30))
		}
		w.rest(rand.N(c.plan.Think + 1))
	}
}

// rest lasts as long as it is told, or until the end.
func (w *worker) rest(length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// asking is how a worker asks: mostly it waits, sometimes it tries, sometimes it gives up.
type asking struct {
	ctx        context.Context
	end        context.CancelFunc
	try, hasty bool
}

func (w *worker) asking() asking {
	a := asking{}
	patience := longest
	if w.plan.Name == "" {
		n := w.random.IntN(10)
		a.try, a.hasty = n == 0, n == 1 || n == 2
	}
	if a.hasty {
		patience = time.Duration(w.random.IntN(200)) * time.Millisecond
	}
	a.ctx, a.end = context.WithTimeout(w.ctx, patience)
	return a
}

// refused sorts out why there is no lease.
func (w *worker) refused(a asking, err error) {
	switch {
	case w.ctx.Err() != nil && errors.Is(err, context.Canceled):
	case a.try && errors.Is(err, signalbox.ErrBusy):
	case a.hasty && errors.Is(err, context.DeadlineExceeded):
	case !w.plan.NoFailure && errors.Is(err, signalbox.ErrUnavailable):
		w.count(&w.account.Failed)
	default:
		w.fault(fmt.Errorf("an acquisition failed: %w", err))
	}
}

func (w *worker) semaphore(name string, limit, weight int) {
	a := w.asking()
	defer a.end()
	options := []signalbox.AcquireOption{signalbox.Weight(weight), signalbox.TTL(w.plan.TTL)}
	semaphore := w.box.Semaphore(name, limit)
	acquire := semaphore.Acquire
	switch {
	case a.try:
		acquire = semaphore.TryAcquire
	case limit == 1 && name != w.own && w.plan.Name == "" && w.random.IntN(5) == 0:
		options = append(options, signalbox.LocalHandoff(5))
	}
	lease, err := acquire(a.ctx, options...)
	if err != nil {
		w.refused(a, err)
		return
	}
	w.enter(lease, weight, limit)
	w.hold(lease)
	w.release(lease)
}

func (w *worker) readOrWrite(name string) {
	a := w.asking()
	defer a.end()
	mutex := w.box.RWMutex(name)
	side, weight := mutex.Read(), 1
	if w.random.IntN(3) == 0 {
		side, weight = mutex.Write(), signalbox.MaxReaders
	}
	acquire := side.Acquire
	if a.try {
		acquire = side.TryAcquire
	}
	lease, err := acquire(a.ctx, signalbox.TTL(w.plan.TTL))
	if err != nil {
		w.refused(a, err)
		return
	}
	w.enter(lease, weight, signalbox.MaxReaders)
	w.hold(lease)
	if w.random.IntN(2) == 0 {
		w.change(mutex, lease, weight)
		w.hold(lease)
	}
	w.release(lease)
}

// change makes a writer a reader, or the other way round. While it is not known whether that came to be, the lighter
// weight counts.
func (w *worker) change(mutex *signalbox.RWMutex, lease *signalbox.Lease, weight int) {
	var err error
	if weight == 1 {
		if err = mutex.Upgrade(w.ctx, lease); err == nil {
			w.enter(lease, signalbox.MaxReaders, signalbox.MaxReaders)
		}
	} else {
		w.enter(lease, 1, signalbox.MaxReaders)
		err = mutex.Downgrade(w.ctx, lease)
	}
	switch {
	case err == nil, w.ctx.Err() != nil, errors.Is(err, signalbox.ErrBusy) && weight == 1:
	case !w.plan.NoFailure && (errors.Is(err, signalbox.ErrUnavailable) || errors.Is(err, signalbox.ErrLeaseLost)):
		w.count(&w.account.Failed)
	default:
		w.fault(fmt.Errorf("a change of weight from %d failed: %w", weight, err))
	}
}

func (w *worker) group(i int) {
	a := w.asking()
	defer a.end()
	requests := []signalbox.Request{
		w.box.Mutex(fmt.Sprintf("group:%d", i)).Request(), w.box.Mutex(fmt.Sprintf("group:%d", i+1)).Request(),
	}
	acquire := w.box.AcquireAll
	if a.try {
		acquire = w.box.TryAcquireAll
	}
	leases, err := acquire(a.ctx, requests, signalbox.TTL(w.plan.TTL))
	if err != nil {
		w.refused(a, err)
		return
	}
	for _, lease := range leases.All() {
		w.enter(lease, 1, 1)
	}
	w.rest(w.span())
	for _, lease := range leases.All() {
		w.release(lease)
	}
}

// enter tells the witness. It is not asked to be quick: a lease that is over meanwhile does not count.
func (w *worker) enter(lease *signalbox.Lease, weight, limit int) {
	w.count(&w.account.Turns)
	if err := w.witness.enter(context.Background(), lease, weight, limit, limit == 1); err != nil {
		w.fault(err)
	}
}

// span is a moment, or so long that a lease is renewed.
func (w *worker) span() time.Duration {
	if w.plan.Name == "" && w.random.IntN(20) == 0 {
		return w.plan.TTL * 2 / 3
	}
	return time.Duration(w.random.IntN(5000)) * time.Microsecond
}

func (w *worker) hold(lease *signalbox.Lease) {
	first := lease.Deadline()
	timer := time.NewTimer(w.span())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	case <-lease.Done():
		if early := time.Until(lease.Deadline()); early > 0 || w.plan.NoFailure {
			w.fault(fmt.Errorf("a lease of %q ended with %v to go: %w", lease.Resource(), early, lease.Err()))
		}
	}
	if lease.Deadline().After(first) {
		w.count(&w.account.Renewed)
	}
}

func (w *worker) release(lease *signalbox.Lease) {
	alive, deadline := lease.Err() == nil, lease.Deadline()
	if err := w.witness.leave(context.Background(), lease); err != nil {
		w.fault(fmt.Errorf("the witness: %w", err))
	}
	err := lease.Release(context.Background())
	switch within := alive && time.Now().Before(deadline); {
	case err == nil && !alive:
		w.fault(fmt.Errorf("L4: a lease of %q was released after it was lost", lease.Resource()))
	case err == nil:
	case !w.plan.NoFailure && (errors.Is(err, signalbox.ErrUnavailable) || errors.Is(err, signalbox.ErrLeaseLost) && !within):
		w.count(&w.account.Failed)
	default:
		w.fault(fmt.Errorf("a lease that had %v to go could not be released: %w", time.Until(deadline), err))
	}
}
