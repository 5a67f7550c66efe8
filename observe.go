package signalbox

import (
	"context"
	"errors"
	"time"
)

// Observe has fn called with what happens to the acquisitions and leases of a Box: the seam for logs, metrics and traces
// (packages logging, metrics, tracing). fn is called by the goroutine to which it happens, and holds it up: it must be
// quick, and must not call the Box. Several may be given.
func Observe(fn func(Observation)) Option {
	return func(b *Box) { b.observers = append(b.observers, fn) }
}

// Happening is what an Observation is about.
type Happening string

// What can be observed.
const (
	Begun    Happening = "begun"    // an acquisition begins; it ends with one of the next three
	Granted  Happening = "granted"  // an acquisition got its lease; Wait is how long that took
	Refused  Happening = "refused"  // TryAcquire found no permit free
	Failed   Happening = "failed"   // an acquisition ended with Err, after Wait
	Renewed  Happening = "renewed"  // a renewal succeeded, Lag after it was due
	Released Happening = "released" // the holder gave the lease back, after Hold
	Lost     Happening = "lost"     // the lease ended otherwise, after Hold; Err says how
	Warned   Happening = "warned"   // the server is not one to rely on, as Err says: once, when it is asked for the first time
)

// Observation is something that happened. What belongs together comes in order: an acquisition is Begun and then Granted,
// Refused or Failed; a lease is Granted, perhaps Renewed, and then Released or Lost, each once. Only a Renewed may come a
// moment after the end. A lease handed on by LocalHandoff is Released, and Granted anew with the same ID. Not observed are
// leases that never reached a caller, who had given up, arguments that are refused before anything is sent, and
// acquisitions by Reentrant that find their lease.
type Observation struct {
	What     Happening
	Resource string
	ID       string // of the lease, empty if there is none
	Label    string
	Weight   int
	Token    int64           // 0 if there is no lease
	TTL      time.Duration   // of the lease
	At       time.Time       // by this machine's clock
	Wait     time.Duration   // since the acquisition began; of Granted, Refused, Failed
	Hold     time.Duration   // since the grant was known here; of Renewed, Released, Lost
	Lag      time.Duration   // of Renewed: between when it was due and its answer
	Err      error           // of Refused, Failed, Lost, Warned
	Context  context.Context // of the acquisition, for its values; a lease's, once there is one
}

func (b *Box) observe(o Observation) {
	for _, fn := range b.observers {
		fn(o)
	}
}

// observeBegun tells that an acquisition begins, and returns when.
func (b *Box) observeBegun(ctx context.Context, name string, t *terms) time.Time {
	now := time.Now()
	if len(b.observers) > 0 {
		b.observe(t.observation(ctx, Begun, name, now))
	}
	return now
}

// observeAcquisition tells what became of one that was begun at a time.
func (b *Box) observeAcquisition(ctx context.Context, name string, t *terms, begun time.Time, lease *Lease, err error) {
	if len(b.observers) == 0 {
		return
	}
	o := t.observation(ctx, Granted, name, time.Now())
	o.Wait, o.Err = o.At.Sub(begun), err
	switch {
	case lease != nil:
		o.ID, o.Token, o.Context = lease.id, lease.Token(), lease.ctx
		b.observe(o)
		lease.observed()
		return
	case isBusy(err):
		o.What = Refused
	default:
		o.What = Failed
	}
	b.observe(o)
}

func (t *terms) observation(ctx context.Context, what Happening, name string, now time.Time) Observation {
	return Observation{
		What: what, Resource: name, Label: t.label, Weight: t.weight, TTL: t.ttl, At: now, Context: ctx,
	}
}

// observed notes that the grant has been told of. A lease that has ended meanwhile left its end to be told after it.
func (l *Lease) observed() {
	l.box.mu.Lock()
	l.told = true
	ended := l.ended
	l.box.mu.Unlock()
	if ended {
		<-l.ctx.Done() // which is about to be, with the cause
		l.observeEnd()
	}
}

// observeEnd tells how the lease ended, which it has.
func (l *Lease) observeEnd() {
	if err := l.Err(); errors.Is(err, ErrReleased) {
		l.observe(Released, 0, nil)
	} else {
		l.observe(Lost, 0, err)
	}
}

func (l *Lease) observe(what Happening, lag time.Duration, err error) {
	if len(l.box.observers) == 0 {
		return
	}
	now := time.Now()
	l.box.observe(Observation{
		What: what, Resource: l.resource.Name, ID: l.id, Label: l.label, Weight: l.Weight(), Token: l.Token(), TTL: l.ttl,
		At: now, Hold: now.Sub(l.since), Lag: lag, Err: err, Context: l.ctx,
	})
}
