package signalbox

import (
	"context"
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
	Granted  Happening = "granted"  // an acquisition got its lease; Wait is how long that took
	Refused  Happening = "refused"  // TryAcquire found no permit free
	Failed   Happening = "failed"   // an acquisition ended with Err, after Wait
	Renewed  Happening = "renewed"  // a renewal succeeded, Lag after it was due
	Released Happening = "released" // the holder gave the lease back, after Hold
	Lost     Happening = "lost"     // the lease ended otherwise, after Hold; Err says how
)

// Observation is something that happened.
type Observation struct {
	What     Happening
	Resource string
	ID       string // of the lease, empty if there is none
	Label    string
	Weight   int
	Token    int64           // 0 if there is no lease
	At       time.Time       // by this machine's clock
	Wait     time.Duration   // since the acquisition began; of Granted, Refused, Failed
	Hold     time.Duration   // since the grant was known here; of Renewed, Released, Lost
	Lag      time.Duration   // of Renewed: between when it was due and its answer
	Err      error           // of Refused, Failed, Lost
	Context  context.Context // of the acquisition, for its values; a lease's, once there is one
}

func (b *Box) observe(o Observation) {
	for _, fn := range b.observers {
		fn(o)
	}
}

// observeAcquisition tells what became of one that was begun at a time.
func (b *Box) observeAcquisition(ctx context.Context, name string, t *terms, begun time.Time, lease *Lease, err error) {
	if len(b.observers) == 0 {
		return
	}
	now := time.Now()
	o := Observation{
		What: Granted, Resource: name, Label: t.label, Weight: t.weight, At: now, Wait: now.Sub(begun), Err: err, Context: ctx,
	}
	switch {
	case lease != nil:
		o.ID, o.Token, o.Context = lease.id, lease.Token(), lease.ctx
	case isBusy(err):
		o.What = Refused
	default:
		o.What = Failed
	}
	b.observe(o)
}

func (l *Lease) observe(what Happening, lag time.Duration, err error) {
	if len(l.box.observers) == 0 {
		return
	}
	now := time.Now()
	l.box.observe(Observation{
		What: what, Resource: l.resource.Name, ID: l.id, Label: l.label, Weight: l.Weight(), Token: l.Token(), At: now,
		Hold: now.Sub(l.since), Lag: lag, Err: err, Context: l.ctx,
	})
}
