package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// A desk is where an agent works, a person at a page or a program: a worker of the queue that is offered tasks, and runs one
// from when it is accepted until the agent says that it is finished.
//
// Who may have a task is decided by the queue alone. When an agent accepts while the customer hangs up, or logs out while he
// is offered one, one of the two was first; the other is told that it came too late.
type desk struct {
	name     string
	skills   []string
	takes    capacities
	offerFor time.Duration
	offered  func(*task) // told of each offer; nil for an agent who looks at the page

	worker *queue.Worker
	leave  context.CancelFunc
	left   chan struct{} // closed when the agent has logged out
	err    error         // why that was, if he did not want it; for who has seen left closed

	mu      sync.Mutex
	tasks   map[string]*task
	over    error         // the agent was given more than he takes
	changed chan struct{} // closed and made anew when anything changes
}

// task is a contact that an agent was offered.
type task struct {
	ID       string
	Channel  string
	Contact  Contact
	Enqueued time.Time
	Since    time.Time // offered, then accepted
	Accepted bool

	offer  *queue.Offer
	finish chan string
}

// errNotYours: the task has gone to somebody else, or its customer has hung up.
var errNotYours = errors.New("this task is not yours any more")

// logIn opens a desk, until logOut or the end of ctx. An agent whose name somebody has who is online finds left closed at once.
func logIn(ctx context.Context, q *queue.Queue, d *desk) (*desk, error) {
	if err := d.takes.check(); err != nil {
		return nil, err
	}
	ctx, d.leave = context.WithCancel(ctx)
	d.tasks, d.changed, d.left = map[string]*task{}, make(chan struct{}), make(chan struct{})
	room := queue.Capacity{"quarter": attention}
	for name, n := range d.takes {
		room[name] = n
	}
	d.worker = q.Worker(d.name, queue.With(room), queue.Tags(d.skills...), queue.OfferFor(d.offerFor), queue.DrainTimeout(0))
	for _, c := range channels {
		if d.takes[c.name] > 0 {
			c.kind.Handle(d.worker, d.serve)
		}
	}
	go func() {
		d.err = d.worker.Run(ctx)
		close(d.left)
		d.change(func() {})
	}()
	go func() {
		for offer := range d.worker.Offers() {
			d.show(offer)
		}
	}()
	return d, nil
}

// show lays an offer on the desk until it is over.
func (d *desk) show(offer *queue.Offer) {
	t := &task{
		ID: offer.ID, Channel: offer.Kind, Enqueued: offer.Enqueued, Since: time.Now(), offer: offer, finish: make(chan string, 1),
	}
	if err := json.Unmarshal(offer.Args, &t.Contact); err != nil {
		t.Contact.Customer = "unreadable: " + err.Error() // when it is accepted it fails
	}
	d.change(func() { d.tasks[t.ID] = t })
	if d.offered != nil {
		go d.offered(t)
	}
	go func() {
		<-offer.Done()
		if offer.Err() != nil {
			d.change(func() { d.remove(t) })
		}
	}()
}

// remove takes a task off the desk, unless it is there again. The caller holds mu.
func (d *desk) remove(t *task) {
	if d.tasks[t.ID] == t {
		delete(d.tasks, t.ID)
	}
}

// serve is a task from when it was accepted to its end.
func (d *desk) serve(ctx context.Context, j *queue.Job[Contact]) (Served, error) {
	waited := time.Since(j.Enqueued)
	d.mu.Lock()
	t := d.tasks[j.ID]
	d.mu.Unlock()
	if t == nil {
		return Served{}, fmt.Errorf("%s runs, and was not offered", j.ID)
	}
	d.change(func() { d.begin(t) })
	defer d.change(func() { d.remove(t) })
	select {
	case note := <-t.finish:
		return Served{Agent: d.name, Waited: waited, Note: note}, nil
	case <-ctx.Done():
		return Served{}, context.Cause(ctx)
	}
}

// begin notes that a task is under way, and looks whether the agent has more than he takes. The caller holds mu.
func (d *desk) begin(t *task) {
	t.Accepted, t.Since = true, time.Now()
	used := map[string]int{}
	for _, t := range d.tasks {
		if t.Accepted {
			used[t.Channel]++
			used["quarter"] += channelOf(t.Channel).share
		}
	}
	for name, n := range used {
		if most := d.takes[name]; name != "quarter" && n > most || name == "quarter" && n > attention {
			d.over = fmt.Errorf("%s has %d × %s at once, more than he takes", d.name, n, name)
		}
	}
}

func (d *desk) change(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Accept, Decline and Finish are the agent's answers.

func (d *desk) Accept(ctx context.Context, id string) error {
	t := d.task(id)
	if t == nil {
		return errNotYours
	}
	return t.offer.Accept(ctx)
}

func (d *desk) Decline(ctx context.Context, id string) error {
	t := d.task(id)
	if t == nil {
		return errNotYours
	}
	return t.offer.Decline(ctx)
}

func (d *desk) Finish(id, note string) error {
	t := d.task(id)
	if t == nil {
		return errNotYours
	}
	select {
	case t.finish <- note:
		return nil
	default:
		return errNotYours // it was finished before
	}
}

func (d *desk) task(id string) *task {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tasks[id]
}

// setAway begins or ends a break. What the agent was offered goes to others; what he has accepted he goes on with.
func (d *desk) setAway(ctx context.Context, away bool) error {
	defer d.change(func() {})
	if away {
		return d.worker.Away(ctx)
	}
	return d.worker.Online(ctx)
}

// logOut ends the shift. What the agent has not finished goes to others, with its age.
func (d *desk) logOut() {
	d.leave()
	<-d.left
}

// view is the desk at one moment.
type view struct {
	Name    string
	Skills  []string
	Takes   capacities
	Away    bool
	Left    bool
	Problem error // why he has left, if he did not want it
	Offers  []task
	Running []task
	changed <-chan struct{}
}

func (d *desk) view() view {
	away := d.worker.State() == queue.Away
	d.mu.Lock()
	defer d.mu.Unlock()
	v := view{Name: d.name, Skills: d.skills, Takes: d.takes, Away: away, changed: d.changed}
	select {
	case <-d.left:
		v.Left, v.Problem = true, d.err
	default:
	}
	for _, t := range d.tasks {
		if t.Accepted {
			v.Running = append(v.Running, *t)
		} else {
			v.Offers = append(v.Offers, *t)
		}
	}
	older := func(a, b task) int { return cmp.Or(a.Enqueued.Compare(b.Enqueued), cmp.Compare(a.ID, b.ID)) }
	slices.SortFunc(v.Offers, older)
	slices.SortFunc(v.Running, older)
	return v
}
