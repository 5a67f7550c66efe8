package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Offers: a worker that is a person, or a program with a will of its own, is asked before it is given a job. On the server
// an offer is a claim with a time until which it has to be accepted. Whatever ends it (Accept, Decline, that time, the
// worker's leave or loss) is a transition there, and goes by the claim's token: one of them is first, and the others come
// late. Until then the job keeps its place, and counts for limits and for the worker's room.
//
// The worker's clock ends an offer too, so that nobody accepts what must be over. That is a hint: only the server's word counts.

// Offer is a job that a worker may accept. It is the worker's until Until, or until Done is closed.
type Offer struct {
	Task
	Tags  []string       // that the worker had to have
	Cost  map[string]int // what it takes of capacities; nothing is one slot
	Until time.Time      // by the worker's clock

	execution *execution
	done      chan struct{} // closed when the offer is over
	late      *time.Timer

	// Under the worker's mu:
	err      error // why it is over; nil if the job was accepted
	accepted bool  // the server is being asked
}

// OfferFor has a worker be offered jobs, each for so long, instead of being given them: see Offers. Its handlers run once an
// offer was accepted. A worker that lets an offer pass goes away (see Away), unless it is to Stay.
//
// Two workers that take offers cannot have the same name at once: the second one's Run returns ErrNameTaken.
func OfferFor(d time.Duration) WorkerOption {
	return func(w *Worker) {
		if (d < time.Millisecond || d > 24*time.Hour) && w.err == nil {
			w.err = fmt.Errorf("%w: an offer for %v: it is between a millisecond and a day", ErrInvalid, d)
		}
		w.offerFor = d
	}
}

// Stay has a worker stay online that lets an offer pass. That job goes to others first.
func Stay() WorkerOption { return func(w *Worker) { w.stays = true } }

// offersMost is how many offers wait to be read. Who does not read loses the oldest, which pass.
const offersMost = 256

// Offers is where a worker with OfferFor finds what it is offered. The channel is closed when Run returns. An offer that is
// not read in time passes.
func (w *Worker) Offers() <-chan *Offer { return w.offers }

// Done is closed when an offer is over: it was accepted, declined or missed, or the job went elsewhere.
func (o *Offer) Done() <-chan struct{} { return o.done }

// Err says why an offer is over: ErrOfferOver and the reason. It is nil before, and if the offer was accepted.
func (o *Offer) Err() error {
	w := o.execution.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.err
}

// Accept takes the job. When it returns nil the job is the worker's and its handler runs. ErrOfferOver says that the job is
// not the worker's: the time was over, the worker had left, or somebody canceled the job. When ctx ends first nobody knows: the
// handler runs if the job was taken.
func (o *Offer) Accept(ctx context.Context) error { return o.answer(ctx, "accept") }

// Decline gives the job to the next worker. This one is not offered it again for a minute, by when another has it or there
// is none. ErrOfferOver says that the offer was over already.
func (o *Offer) Decline(ctx context.Context) error { return o.answer(ctx, "decline") }

func (o *Offer) answer(ctx context.Context, verb string) error {
	e := o.execution
	w := e.worker
	doing := fmt.Sprintf("%s job %s of queue %q", verb, o.ID, w.queue.name)
	defer w.tellOffers()
	w.mu.Lock()
	switch {
	case o.isOver() && o.err != nil:
		defer w.mu.Unlock()
		return fmt.Errorf("%s: %w", doing, o.err)
	case verb == "decline" && (o.accepted || o.isOver()):
		defer w.mu.Unlock()
		return fmt.Errorf("%s: %w: it was accepted", doing, ErrOfferOver)
	case verb == "decline":
		w.endOffer(e, "declined", fmt.Errorf("%w: it was declined", ErrOfferOver))
		w.reports = append(w.reports, store.Done{ID: o.ID, Token: e.claim.Token, Verb: "decline"})
		defer w.ring()
		defer w.mu.Unlock()
		return nil
	case !o.accepted:
		o.accepted = true
		w.reports = append(w.reports, store.Done{ID: o.ID, Token: e.claim.Token, Verb: "accept"})
	}
	w.mu.Unlock()
	w.ring()
	select {
	case <-o.done:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w: the server has not answered yet", doing, context.Cause(ctx))
	}
	if err := o.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

func (o *Offer) isOver() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// offer tells of a job that the worker may accept. The caller holds mu.
func (w *Worker) offer(h *handler, c store.Claim) {
	r := &c.Record
	e := newExecution(w, h, c)
	o := &Offer{
		Task: Task{ID: c.ID, Kind: r.Lane.Kind, Key: r.Lane.Key, Attempt: r.Attempts + 1, Crashes: r.Crashes, Enqueued: r.Enqueued},
		Tags: r.Lane.Tags, Until: time.Now().Add(w.offerFor), execution: e, done: make(chan struct{}),
	}
	o.Token, _ = parseToken(c.Token) // one that is no number fails the job when it runs
	if env, err := parseEnvelope(r.Rest); err == nil {
		o.Args, o.Codec = env.arguments()
		o.Attempts = env.attempts()
	}
	if r.Lane.Cost != "" {
		o.Cost = costOf(r.Lane.Cost)
	}
	e.offer = o
	w.jobs[c.ID] = e
	event := e.event(OfferMade)
	event.Waited = waited(&c)
	w.noteOffer(event)
	o.late = time.AfterFunc(w.offerFor, func() { w.missed(e) })
	for {
		select {
		case w.offers <- o:
			return
		default:
		}
		select {
		case <-w.offers:
		default:
		}
	}
}

// missed ends an offer whose time is over. One that is being accepted is the server's to decide.
func (w *Worker) missed(e *execution) {
	defer w.tellOffers()
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.offer == nil || e.offer.accepted || e.offer.isOver() {
		return
	}
	w.pass(e)
	w.reports = append(w.reports, store.Done{ID: e.claim.ID, Token: e.claim.Token, Verb: "miss"})
	w.ring()
}

// pass notes that the worker has let an offer pass. The caller holds mu.
func (w *Worker) pass(e *execution) {
	w.endOffer(e, "missed", fmt.Errorf("%w: it was not accepted in time", ErrOfferOver))
	if !w.stays && w.state == "online" {
		w.state = "away"
		w.endOffers("the worker is away")
	}
}

// endOffer has a worker forget an offer, and the job. Verb is what observers are told. The caller holds mu, and calls tellOffers
// without it.
func (w *Worker) endOffer(e *execution, verb string, err error) {
	o := e.offer
	if o == nil || o.isOver() {
		return
	}
	o.late.Stop()
	o.err = err
	close(o.done)
	w.offerOver(e, verb, err)
	e.end(err)
	if w.jobs[e.claim.ID] == e {
		delete(w.jobs, e.claim.ID)
	}
}

// offerOver keeps what became of an offer for the observers. The caller holds mu.
func (w *Worker) offerOver(e *execution, verb string, err error) {
	event := e.event(OfferEnded)
	event.Verb, event.Took = verb, time.Since(e.begun)
	if verb == "withdrawn" {
		event.Err = err
	}
	w.noteOffer(event)
}

// endOffers ends those that the server is not being asked about: it takes them back when it hears what the worker's state is. The
// caller holds mu.
func (w *Worker) endOffers(why string) {
	for _, e := range w.jobs {
		if e.offer != nil && !e.offer.accepted {
			w.endOffer(e, "withdrawn", fmt.Errorf("%w: %s", ErrOfferOver, why))
		}
	}
}

// pending is how many offers are not over: no handler of theirs has begun. The caller holds mu.
func (w *Worker) pending() (n int) {
	for _, e := range w.jobs {
		if e.offer != nil && !e.offer.isOver() {
			n++
		}
	}
	return n
}

// answeredOffers runs what was accepted. The caller holds mu.
func (w *Worker) answeredOffers(done []store.Done, late []string) {
	for i := range done {
		e := w.jobs[done[i].ID]
		if done[i].Verb != "accept" || e == nil || e.offer == nil || e.claim.Token != done[i].Token || e.offer.isOver() {
			continue
		}
		if slices.Contains(late, done[i].ID) {
			w.endOffer(e, "withdrawn", fmt.Errorf("%w: it was not accepted in time, or the job went elsewhere", ErrOfferOver))
			continue
		}
		e.offer.late.Stop()
		close(e.offer.done)
		w.offerOver(e, "accepted", nil)
		e.begun = time.Now()
		w.start(e)
	}
}

// offerEnded hears that the server has ended an offer.
func (w *Worker) offerEnded(id, token, why string) {
	defer w.tellOffers()
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.jobs[id]
	if e == nil || e.offer == nil || e.claim.Token != token || e.offer.isOver() {
		return
	}
	if why == "missed" {
		w.pass(e)
	} else {
		w.endOffer(e, "withdrawn", fmt.Errorf("%w: %s", ErrOfferOver, why))
	}
	w.ring()
}

// forgetOffers is for when no call is made any more. The caller holds mu.
func (w *Worker) forgetOffers() {
	for _, e := range w.jobs {
		if e.offer != nil {
			w.endOffer(e, "withdrawn", fmt.Errorf("%w: the worker has ended", ErrOfferOver))
		}
	}
	close(w.offers)
}

// For reserves a job for the workers of a name until a time of the server's clock. Then anybody may have it. When one of that name
// declines it, it is anybody's at once.
func For(worker string, until time.Time) Option {
	return func(t *terms) {
		t.reserve(worker)
		t.forUntil, t.forWithin = until, 0
	}
}

// ForWithin is For with a time from when the job is enqueued.
func ForWithin(worker string, d time.Duration) Option {
	return func(t *terms) {
		t.reserve(worker)
		if d <= 0 || d > maxReserve {
			t.refuse("a job reserved for %v: it is more than nothing, and at most %v", d, maxReserve)
		}
		t.forUntil, t.forWithin = time.Time{}, d
	}
}

const maxReserve = 30 * 24 * time.Hour

func (t *terms) reserve(worker string) {
	if err := store.CheckName("worker", worker, maxNameLen); err != nil && t.err == nil {
		t.err = err
	}
	t.forWorker = worker
}

// Order is how one of several idle workers is chosen for a job.
type Order string

// Orders of workers.
const (
	AnyWorker   Order = ""        // whoever is found first, beginning anywhere
	LongestIdle Order = "longest" // who has neither been given nor ended a job for longest, since it came online
	LeastBusy   Order = "least"   // who has the smallest share of its capacities in use, and of those the longest idle
)

// Placement sets how one of several idle workers is chosen. It holds for a worker from its next call on: within a third of its
// lease for those that are idle.
func Placement(order Order) Change {
	switch order {
	case AnyWorker, LongestIdle, LeastBusy:
		return Change{fields: []string{"placement", string(order)}}
	}
	return Change{err: fmt.Errorf("%w: there is no placement %q: it is LongestIdle, LeastBusy or AnyWorker", ErrInvalid, order)}
}

// nameOnServer is a worker's name where commas part names.
func nameOnServer(name string) string { return strings.ReplaceAll(name, ",", "\x02") }

func nameFromServer(name string) string { return strings.ReplaceAll(name, "\x02", ",") }

// lateEnds are the jobs whose end the server heard too late. What became of an offer is told by the offer.
func lateEnds(done []store.Done, late []string) (ids []string) {
	for _, id := range late {
		offered := func(d store.Done) bool {
			return d.ID == id && slices.Contains([]string{"accept", "decline", "miss"}, d.Verb)
		}
		if !slices.ContainsFunc(done, offered) {
			ids = append(ids, id)
		}
	}
	return ids
}
