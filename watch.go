package signalbox

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// Transitions publish what they do only while somebody watches, which a watcher says again and again: nobody pays for
// what nobody looks at. Messages can be lost with the connection; then the watcher sees a new Snapshot.

// watchedFor is for how many claim times the server goes on publishing after a watcher has fallen silent.
const watchedFor = 4

// EventKind says what an Event is about.
type EventKind string

// What happens to a resource.
const (
	Snapshot      EventKind = "snapshot" // the State, at first and whenever events may have been missed
	WaiterQueued  EventKind = "wait"
	WaiterLeft    EventKind = "leave"   // it gave up, died, or was sent away; After is for how long it had waited
	LeaseGranted  EventKind = "grant"   // After is for how long it had waited
	LeaseReleased EventKind = "release" // After is for how long it was held
	LeaseExpired  EventKind = "expire"  // likewise
	LeaseForced   EventKind = "force"   // likewise
	LeaseReweighs EventKind = "reweigh" // Weight is the new one, Token too if it grew
	LimitResized  EventKind = "resize"  // Weight is the operator's limit, 0 if it was cleared
)

// Event is a change of a resource. Times are the server's.
type Event struct {
	What     EventKind     `json:"what"`
	Resource string        `json:"resource"`
	At       time.Time     `json:"at"`
	ID       string        `json:"id,omitempty"`
	Owner    string        `json:"owner,omitempty"`
	Label    string        `json:"label,omitempty"`
	Weight   int           `json:"weight,omitempty"`
	Token    int64         `json:"token,omitempty"`
	After    time.Duration `json:"after_ns,omitempty"`
	State    *State        `json:"state,omitempty"`
}

// watchBuffer is how many events may wait for a slow loop; when there are more, it gets a Snapshot instead.
const watchBuffer = 1024

// Watch yields a Snapshot of a resource and then its changes as they happen, until ctx ends, the loop is left, or an error
// is yielded, which is the last thing. Events that follow a Snapshot may be contained in it already. An expiry is seen
// when it is due. Each Watch has a connection of its own and one request each third of the claim time.
func (b *Box) Watch(ctx context.Context, name string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		resource, err := b.resource(ctx, "watch", name)
		if err == nil {
			if err = b.enter(); err == nil {
				defer b.tasks.Done()
				w := &watcher{box: b, resource: resource, heard: make(chan transport.Event, watchBuffer)}
				err = w.run(ctx, func(e Event) bool { return yield(e, nil) })
			}
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

type watcher struct {
	box      *Box
	resource *ledger.Resource
	heard    chan transport.Event
	asked    time.Time // when the server was asked to publish; it does so for watchedFor claim times from then on, or longer
}

// run yields until that is enough (then it returns nil), or something ends it.
func (w *watcher) run(ctx context.Context, yield func(Event) bool) error {
	listening, stop := context.WithCancel(ctx)
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		w.listen(listening)
	}()
	defer func() {
		stop()
		<-listened
	}()
	timer := time.NewTimer(0) // also when no message ever comes
	defer timer.Stop()
	failures := 0
	for answered, known := time.Now(), false; ; {
		var event transport.Event
		select {
		case event = <-w.heard:
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("watch %q: %w", w.resource.Name, ctx.Err())
		case <-w.box.closing:
			return fmt.Errorf("watch %q: %w", w.resource.Name, ErrClosed)
		}
		if event.Payload != "" {
			if change, ok := ledger.ParseChange(event.Payload); ok && !yield(w.event(change)) {
				return nil
			}
			continue
		}
		next, err := w.look(ctx, event.Subscribed || !known, yield)
		switch {
		case err == nil:
			answered, known, failures = time.Now(), true, 0
		case err == errEnough: //nolint:errorlint // a mark of our own
			return nil
		case ctx.Err() != nil:
			continue
		case !ledger.Retryable(err) || time.Since(answered) > w.box.claim:
			return err
		default:
			failures++
			next = w.box.backoff(failures)
		}
		timer.Reset(next)
	}
}

// errEnough says that the loop was left.
var errEnough = fmt.Errorf("enough")

// look keeps the server publishing, has it publish what has expired, and yields a Snapshot if one is due. It returns when
// to look again.
func (w *watcher) look(ctx context.Context, snapshot bool, yield func(Event) bool) (time.Duration, error) {
	claim, asked := w.box.claim, time.Now()
	expiry, err := w.box.ledger.Watch(ctx, w.resource, watchedFor*claim)
	if err != nil {
		return 0, err
	}
	// A loop that takes long keeps this from being asked in time, and then the server has published nothing for a while.
	lapsed := time.Since(w.asked) > watchedFor*claim
	w.asked = asked
	if snapshot || lapsed {
		state, err := w.box.ledger.Inspect(ctx, w.resource, inspectMost)
		if err != nil {
			return 0, err
		}
		all := newState(w.resource.Name, state)
		if !yield(Event{What: Snapshot, Resource: w.resource.Name, At: all.Now, State: &all}) {
			return 0, errEnough
		}
	}
	if expiry > 0 {
		return min(acquisition.Heartbeat(claim), expiry+time.Millisecond), nil
	}
	return acquisition.Heartbeat(claim), nil
}

func (w *watcher) event(c ledger.Change) Event {
	if c.Kind == string(LimitResized) {
		c.ID = "" // it has none
	}
	return Event{
		What: EventKind(c.Kind), Resource: w.resource.Name, At: c.At, ID: c.ID, Owner: c.Owner, Label: c.Label,
		Weight: c.Weight, Token: c.Token, After: c.After,
	}
}

// listen puts what comes into heard, and subscribes again when the connection is lost. If the loop is too slow, what does
// not fit is dropped, and the subscription begun anew, which makes a Snapshot.
func (w *watcher) listen(ctx context.Context) {
	for failures := 1; ctx.Err() == nil; failures++ {
		connection, lose := context.WithCancel(ctx)
		// What ended it makes no difference: the requests of run say what is wrong.
		_ = w.box.transport.Listen(connection, []string{w.resource.Events()}, func(e transport.Event) {
			failures = 0
			select {
			case w.heard <- e:
			default:
				lose()
			}
		})
		lose()
		pause := time.NewTimer(w.box.backoff(failures))
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}
