package racelab

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

// Promise is a sentence that an algorithm is held to.
type Promise string

// The promises that the judge knows.
const (
	// Limit is judged by what clients believe: one holds from when it asked for its
	// permit until it gives it back, is told of its loss, crashes, or its timeout
	// has passed. A client that outlives its timeout breaks no promise.
	Limit Promise = "never more holders than the limit"
	// Kept is broken when a client is told that it has lost what had not timed out.
	Kept Promise = "nobody loses a permit before its timeout"
	// Truth is Limit where the last word was a refresh's.
	Truth Promise = "a refresh tells the truth"
	// Timed is judged when all clients have ended, however they have.
	Timed Promise = "no key without a timeout is left"
	// Freed is judged when all clients have ended and every timeout has passed: a
	// visitor for each permit must be let in.
	Freed Promise = "whatever has happened, all can be had again some time"
	// Woken is judged when nothing but time can help those who wait.
	Woken Promise = "nobody sleeps beside what is free"
	// Order is that of those who were told to wait, or who block.
	Order Promise = "who came first is served first"
	// Fenced, Tidy and Sense are for clients that are led by a life: life.go.
	Fenced Promise = "each grant has a larger token than all before it"
	// Tidy is about those that end well.
	Tidy  Promise = "what has ended is not on the server, and does not come back"
	Sense Promise = "nothing comes to a client that cannot be"
)

// Algorithm is one patient of the laboratory. To add one: a file with a variable
// like those of the others, and a line in All.
type Algorithm struct {
	// Name is what `signalbox race` takes. Summary says in a line what it is.
	Name, Summary string
	// Promises are those that it is held to.
	Promises []Promise
	// Permits is the limit, Timeout how long a permit lasts; 0 is for ever.
	Permits int
	Timeout time.Duration
	// Clients is how many there are unless somebody says otherwise.
	Clients int
	// Attempts is how often a client asks that is refused; 0 is once.
	Attempts int
	// Faults are those that are tried.
	Faults []Fault
	// Pauses are by how much the clock goes on at once. Skews are by how much the
	// clock of a client may be wrong.
	Pauses, Skews []time.Duration
	// Patient makes what a client does out of its connection. Life, if set, is all
	// that a client does; else it is live.
	Patient func(c *Client) Patient
	Life    func(c *Client)
	// Timeless says that no command carries a time of the client's clock. Then it
	// is the same when a call begins and when its first request is run, and the
	// two are one step.
	Timeless bool
	// Sleeps is how long a client sleeps at least, however short it means to.
	Sleeps time.Duration
	// Listens says that clients have an inbox.
	Listens bool
	// AlwaysTimed says that Timed holds after every step, not at the end alone.
	AlwaysTimed bool
	// Line is who holds and who waits, in order, as the server has it, for Order.
	// May be nil: then Order is about those who block.
	Line func(w *world) line
	// Judge looks at the server after a step, for promises of the algorithm's own: it returns the one that is broken, "" if
	// none is, and why. May be nil.
	Judge func(w *world) (Promise, string)
	// FaultsMax is how many misfortunes a schedule may hold unless somebody says
	// otherwise.
	FaultsMax int

	mutate func(script string) string // for tests of the lab
}

// Patient is what one client can do.
type Patient struct {
	// Prepare is called before all else. May be nil.
	Prepare func() error
	// Acquire returns nil with a permit, or classic.ErrBusy.
	Acquire func() error
	// Refresh returns nil, or classic.ErrLost. May be nil.
	Refresh func() error
	// Release returns nil, or classic.ErrLost.
	Release func() error
	// FromSending counts a permit from when the last command of Acquire was sent;
	// otherwise it is counted from the beginning of Acquire.
	FromSending bool
}

// Fault is a kind of misfortune.
type Fault string

// The faults.
const (
	Crash       Fault = "crash"        // a client ends, its connections with it
	LoseRequest Fault = "lost request" // a request does not arrive, and the client is told of an error
	LoseReply   Fault = "lost reply"   // a request is run, and the client is told of an error
	LoseMessage Fault = "lost message" // a message to an inbox does not arrive
	Pause       Fault = "pause"        // time passes, while all stand where they are
	Skew        Fault = "clock"        // the clock of a client is wrong from the beginning
	Haste       Fault = "haste"        // a caller gives up, or releases while a call is under way: life.go
)

// All are the algorithms, by name.
func All() []*Algorithm {
	return []*Algorithm{
		setnxLock, lock, luaLock, semaphore, fairSemaphore, lockedSemaphore, luaSemaphore, binaryLock, listSemaphore,
		ledgerMutex, ledgerSemaphore, queueLimit, queueOnce, queueLines,
	}
}

// Named finds an algorithm.
func Named(name string) (*Algorithm, bool) {
	i := slices.IndexFunc(All(), func(a *Algorithm) bool { return a.Name == name })
	if i < 0 {
		return nil, false
	}
	return All()[i], true
}

// live is the life of a client: it acquires, refreshes, releases.
func live(c *Client) {
	p := c.world.algorithm.Patient(c)
	if p.Prepare != nil {
		if !c.Begin("init") {
			return
		}
		c.told("init", p.Prepare())
	}
	if !acquire(c, p) {
		return
	}
	if p.Refresh != nil && !refresh(c, p) {
		return
	}
	release(c, p)
}

func acquire(c *Client, p Patient) bool {
	for range max(1, c.world.algorithm.Attempts) {
		if !c.Begin("acquire") {
			return false
		}
		if err := p.Acquire(); err != nil {
			c.told("acquire", err)
			continue
		}
		since := c.begun
		if p.FromSending {
			since = c.sent
		}
		c.Has(since)
		return true
	}
	return false
}

// refresh asks again after an error that says nothing about the permit.
func refresh(c *Client, p Patient) bool {
	for range 2 {
		if !c.Begin("refresh") {
			return false
		}
		switch err := p.Refresh(); {
		case err == nil:
			c.Refreshed(c.begun)
			return true
		case errors.Is(err, classic.ErrLost):
			c.told("refresh", err)
			return false
		default:
			c.told("refresh", err)
		}
	}
	return true
}

// release asks again, too: it may have been the request that got lost.
func release(c *Client, p Patient) {
	for range 2 {
		if !c.Begin("release") {
			return
		}
		c.gaveBack()
		err := p.Release()
		c.told("release", err)
		if err == nil || errors.Is(err, classic.ErrLost) {
			return
		}
	}
}

var background = context.Background() // no algorithm is cancelled: clients crash instead

// inboxOf is the channel on which a client is told of its grants.
func inboxOf(c *Client) string { return "signalbox:inbox:" + c.Name }
