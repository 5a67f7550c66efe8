package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// A Worker runs jobs: of the kinds that have a handler, for which it has the tags and the room.
//
// It talks to the server with one call (loop), which says what it has done, renews its lease and brings what it has room
// for. A call is made when there is something to say, when a message says that there is something to hear, and three times
// in a lease; while one is under way, what is to be said gathers for the next. A call that failed is made again under its
// number, with its reports, until it is answered.
//
// What was handed to a worker comes in an answer or in a message. Heartbeats say what the worker
// runs, so that what was lost on the way, in either direction, is set right by the next one.
//
// mu is its only lock, but for the one that keeps what observers are told of offers in order. A job that runs has a goroutine to itself (execution.go), which then waits for the next: a new one
// would have to grow its stack anew for each job, and that took two fifths of a worker's time.
type Worker struct {
	queue    *Queue
	name     string
	capacity map[string]int
	tags     []string
	handlers map[string]*handler
	wrap     []Middleware
	drain    time.Duration
	lists    []string // plain ones, to take jobs from
	observe  []func(Event)
	err      error  // what is wrong with the options
	kinds    string // what it says of itself, from Run on
	info     string
	leaving  chan struct{} // closed when it begins to drain
	offerFor time.Duration // 0: it is given jobs, not offered
	stays    bool
	offers   chan *Offer

	mu               sync.Mutex
	running          bool // Run was called: it is once
	endRun           context.CancelFunc
	id               string
	state            string              // online, draining, away
	known            string              // the state that the server was told last
	told             chan struct{}       // closed when that changes
	deadline         acquisition.Instant // when its lease ends; 0 while it has none
	jobs             map[string]*execution
	disowned         map[*execution]bool // handlers that have not returned, of jobs that are others' by now
	seen, seenBefore map[string]bool     // the last tokens that were found, see found
	reports          []store.Done
	noted            []*execution // whose handlers have said something that the server does not know
	full             bool         // look whether everything is held that should be
	bell             chan struct{}
	next             chan *execution // for goroutines that have run one
	over             chan struct{}   // closed when Run returns: they end
	untold           []Event         // of offers, see tellOffers

	telling sync.Mutex // taken before mu
}

// Worker makes a worker. Its name is for people: several may have the same. Without a capacity it has one slot for each
// processor.
func (q *Queue) Worker(name string, options ...WorkerOption) *Worker {
	w := &Worker{
		queue: q, name: name, capacity: map[string]int{}, handlers: map[string]*handler{}, drain: 30 * time.Second,
		state: "online", jobs: map[string]*execution{}, disowned: map[*execution]bool{}, seen: map[string]bool{}, bell: make(chan struct{}, 1),
		leaving: make(chan struct{}), offers: make(chan *Offer, offersMost), told: make(chan struct{}),
	}
	w.err = store.CheckName("worker", name, maxNameLen)
	w.observed()
	for _, option := range options {
		option(w)
	}
	if len(w.capacity) == 0 {
		w.capacity["slot"] = slotsByDefault()
	}
	return w
}

// Run works until ctx ends, or somebody drains the worker (Queue.Drain). Then it takes nothing new, waits for what runs as
// long as DrainTimeout says, and gives back what has not ended by then. It returns nil then, and an error if it could not
// begin.
func (w *Worker) Run(ctx context.Context) error {
	doing := fmt.Sprintf("worker %.150q of queue %q", w.name, w.queue.name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.begin(cancel); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer w.queue.tasks.Done()
	w.queue.openInbox()
	w.queue.watchSleep()
	defer w.forget()
	for _, list := range w.lists {
		taking, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(w.queue.stopping, stop)()
		w.queue.tasks.Go(func() { w.takeFrom(taking, list) })
	}
	err := w.loop(ctx)
	if err != nil {
		err = fmt.Errorf("%s: %w", doing, err)
	}
	return err
}

func (w *Worker) begin(end context.CancelFunc) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case w.running:
		return fmt.Errorf("%w: it runs, or has run: make another one", ErrInvalid)
	case len(w.handlers) == 0:
		return fmt.Errorf("%w: it has no handlers: call Handle of its kinds first", ErrInvalid)
	}
	if err := w.queue.enter(); err != nil {
		return err
	}
	w.running, w.endRun = true, end
	w.next, w.over = make(chan *execution), make(chan struct{})
	w.kinds, w.info = strings.Join(slices.Sorted(maps.Keys(w.handlers)), ","), w.introduce()
	for _, h := range w.handlers {
		if h.fit != nil {
			h.fit(w.capacity)
		}
	}
	return nil
}

func (w *Worker) forget() {
	w.queue.mu.Lock()
	delete(w.queue.workers, w.id)
	w.queue.mu.Unlock()
	w.mu.Lock()
	w.forgetOffers()
	close(w.over)
	w.mu.Unlock()
	w.tellOffers()
}

// incarnate gives the worker an id. A worker whose lease has ended begins anew with another one, of which the part before
// the dot is the same: what the server has to say to the worker is not lost.
func (w *Worker) incarnate() {
	number := strconv.FormatInt(w.queue.ids.Add(1), 36)
	id := w.queue.process + "/" + number
	if w.id != "" {
		first, _, _ := strings.Cut(w.id, ".")
		id = first + "." + number
	}
	w.queue.mu.Lock()
	delete(w.queue.workers, w.id)
	w.queue.workers[id] = w
	w.queue.mu.Unlock()
	w.mu.Lock()
	w.id = id
	w.mu.Unlock()
}

// ring has the loop make a call.
func (w *Worker) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// look has the loop make a call that says what the worker runs.
func (w *Worker) look() {
	w.mu.Lock()
	w.full = true
	w.mu.Unlock()
	w.ring()
}

// session is what the loop keeps between calls.
type session struct {
	call     int64
	register bool
	failures int
	beat     *time.Timer         // the next call, if nothing happens before
	told     acquisition.Instant // when the server was last told what runs
	drained  time.Time           // when the jobs' contexts end
	stopped  bool
}

// loop makes calls until ctx has ended and nothing runs any more.
func (w *Worker) loop(ctx context.Context) error {
	w.incarnate()
	s := &session{register: true, beat: time.NewTimer(0)}
	defer s.beat.Stop()
	done := ctx.Done()
	for {
		select {
		case <-w.bell:
		case <-s.beat.C:
		case <-done:
			done = nil
			w.startDraining(s)
		case <-w.queue.closing:
			w.stopJobs(ErrStopped)
			w.awaitJobs()
			return w.farewell(s)
		}
		if !s.drained.IsZero() && w.drainedBy(s) {
			return w.farewell(s)
		}
		if err := w.makeCall(s); err != nil {
			w.stopJobs(err)
			return err
		}
	}
}

func (w *Worker) startDraining(s *session) {
	w.mu.Lock()
	w.state = "draining"
	w.endOffers("the worker is draining")
	w.mu.Unlock()
	w.tellOffers()
	close(w.leaving)
	s.drained = time.Now().Add(w.drain)
	w.tell(Event{What: Draining})
}

// drainedBy reports whether nothing runs any more. When the time is over it ends what does.
func (w *Worker) drainedBy(s *session) bool {
	w.mu.Lock()
	left := w.left()
	w.mu.Unlock()
	if left == 0 {
		return true
	}
	if !time.Now().Before(s.drained) && !s.stopped {
		s.stopped = true
		w.stopJobs(ErrStopped)
	}
	return s.stopped && !time.Now().Before(s.drained.Add(stopPatience))
}

// stopPatience is for how long a worker waits for handlers whose contexts have ended.
const stopPatience = 5 * time.Second

// awaitJobs waits for handlers whose contexts have ended.
func (w *Worker) awaitJobs() {
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	for {
		w.mu.Lock()
		left := w.left()
		w.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-w.bell: // each end rings
		case <-patience.C:
			return
		}
	}
}

func (w *Worker) stopJobs(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.jobs {
		e.end(cause)
	}
}

// farewell is the last call: what has ended, and that the worker goes. What has not ended by now goes to others when the
// lease is over, and is told to the observers.
func (w *Worker) farewell(s *session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.queue.stopping), answerWithin)
	defer cancel()
	var err error
	stuck, last := 0, false
	for !last {
		stuck, last = w.lastCall()
		for err = w.exchange(ctx, s); err != nil && ledger.Retryable(err) && ctx.Err() == nil; err = w.exchange(ctx, s) {
			if s.failures++; !w.queue.pause(ctx, s.failures) {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if stuck > 0 {
		return errors.Join(err, fmt.Errorf("%w: %d handlers ignore the end of their contexts", ErrStopped, stuck))
	}
	return err
}

// lastCall returns how many handlers have not ended, and whether one call is enough for what is left to say.
func (w *Worker) lastCall() (stuck int, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stuck, last = w.left()-w.pending(), len(w.firstReports()) == len(w.reports)
	if stuck == 0 && last {
		w.state = "gone"
	} else if w.state != "gone" {
		w.state = "draining"
	}
	return stuck, last
}

// makeCall makes one call and sets the time of the next. The error is one that does not pass.
func (w *Worker) makeCall(s *session) error {
	w.loseLease(s) // the computer has slept perhaps
	ctx, cancel := w.whileLeased()
	defer cancel()
	err := w.exchange(ctx, s)
	switch {
	case err == nil:
		s.failures = 0
		return nil
	case w.queue.stopping.Err() != nil:
		return nil
	case ctx.Err() == nil && !ledger.Retryable(err):
		return err
	}
	s.failures++
	w.tell(Event{What: Failing, Err: err})
	left := w.loseLease(s)
	w.look() // whatever was on its way may be lost
	select { // the pause rings, not the bell
	case <-w.bell:
	default:
	}
	s.beat.Reset(min(w.queue.backoff(s.failures), left))
	return nil
}

// whileLeased is the context of a call. It ends with the lease: who waits for an answer then cannot end the jobs.
func (w *Worker) whileLeased() (context.Context, context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deadline == 0 {
		return context.WithCancel(w.queue.stopping)
	}
	return context.WithTimeout(w.queue.stopping, w.deadline.Sub(w.queue.now()))
}

// loseLease ends the jobs when the server cannot believe in the worker any more. It returns when to look again.
func (w *Worker) loseLease(s *session) time.Duration {
	w.mu.Lock()
	deadline, lapsed := w.deadline, w.lapsed()
	w.mu.Unlock()
	switch {
	case lapsed:
		w.startAnew(s)
	case deadline > 0:
		return deadline.Sub(w.queue.now())
	}
	return w.queue.lease
}

// lapsed says whether the lease has ended that the worker had. The caller holds mu.
func (w *Worker) lapsed() bool { return w.deadline > 0 && w.queue.now() >= w.deadline }

func (w *Worker) startAnew(s *session) {
	w.tell(Event{What: LeaseLost})
	w.mu.Lock()
	w.disownAll()
	w.reports, w.deadline = nil, 0
	w.mu.Unlock()
	w.tellOffers()
	w.incarnate()
	s.call, s.register = 0, true
	w.ring()
}

// ask makes a call.
func (w *Worker) ask(ctx context.Context, s *session) (report *store.Report, reported int, answer *store.Answer, sent acquisition.Instant, err error) {
	report, reported = w.report(s)
	pages := w.takeNotes()
	for _, p := range pages {
		report.Done = append(slices.Clip(report.Done), p.note)
	}
	answer, sent, err = w.queue.call(ctx, report)
	answered(pages, err == nil)
	return report, reported, answer, sent, err
}

// exchange is one call and what follows from its answer.
func (w *Worker) exchange(ctx context.Context, s *session) error {
	report, reported, answer, sent, err := w.ask(ctx, s)
	if err != nil {
		return err
	}
	if answer.Taken > 0 {
		return fmt.Errorf("%w: another worker %q is online; if it has died, its name is free in %v", ErrNameTaken, w.name, answer.Taken)
	}
	next := w.queue.lease / 3
	w.mu.Lock()
	if answer.Unknown || w.lapsed() { // the computer has slept since it asked
		w.mu.Unlock()
		w.startAnew(s)
		return nil
	}
	w.full = w.full || answer.More
	if s.register || answer.More || report.Want > 0 && len(answer.Claims) == report.Want {
		w.ring() // the first call claims nothing, and one brings so many and no more
	}
	s.call, s.register = s.call+1, false
	w.deadline = sent.Add(w.queue.lease - w.queue.lease/10)
	w.hasTold(report.State)
	if report.State != "gone" { // else the call that accepted has given back
		w.answeredOffers(report.Done, answer.Late)
	}
	w.reports = w.reports[reported:]
	if report.Inventory != nil {
		w.full, s.told = false, sent
	}
	if len(w.reports) > 0 {
		w.ring()
	}
	for _, id := range answer.Lost {
		if e := w.jobs[id]; e != nil && slices.Contains(report.Inventory, id) {
			w.disown(id, e)
		}
	}
	w.mu.Unlock()
	w.tellOffers()
	for _, id := range lateEnds(report.Done, answer.Late) {
		w.tell(Event{What: ReportedLate, Job: id})
	}
	w.tick(answer.Ticks)
	if report.Inventory != nil {
		w.tellIgnoring()
	}
	w.found(answer.Missing)
	w.handed(answer.Claims)
	for _, id := range answer.Cancel {
		w.cancel(id, "")
	}
	if answer.Next >= 0 {
		next = min(next, max(answer.Next, time.Millisecond))
	}
	if !s.drained.IsZero() && !s.stopped {
		next = min(next, max(time.Until(s.drained), 0))
	}
	s.beat.Reset(next)
	return nil
}

// report is what the worker has to say now, and how many of its reports are in it.
func (w *Worker) report(s *session) (*store.Report, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &store.Report{
		Worker: w.id, Call: s.call + 1, Lease: w.queue.lease, State: w.state, Room: w.room(), Tags: strings.Join(w.tags, ","),
		Kinds: w.kinds, Info: w.info, Register: s.register, Done: w.firstReports(), Name: nameOnServer(w.name), OfferFor: w.offerFor, Stays: w.stays,
	}
	if w.state == "online" {
		r.Want = w.want()
	}
	if w.full || s.failures > 0 || len(r.Done) == 0 || w.queue.now().Sub(s.told) > w.queue.lease/3 {
		r.Inventory = []string{}
		for id := range w.jobs {
			r.Inventory = append(r.Inventory, id)
		}
		for _, d := range w.reports[len(r.Done):] {
			r.Inventory = append(r.Inventory, d.ID)
		}
	}
	return r, len(r.Done)
}

// want is how many jobs a call is to bring: of a worker with many slots half of what it can hold, so that it runs the one half
// while the server sees to the other.
func (w *Worker) want() int {
	slots := 0
	for _, n := range w.capacity {
		slots += n
	}
	if slots < 20 {
		return store.MostClaims
	}
	return min(slots/2, store.MostClaims)
}

// tick makes the jobs of ticks that have come.
func (w *Worker) tick(ticks []store.Tick) {
	for _, tick := range ticks {
		w.queue.tasks.Go(func() {
			if err := w.queue.ticked(w.queue.stopping, tick); err != nil && w.queue.stopping.Err() == nil {
				w.tell(Event{What: Failing, Err: err}) // another worker is asked in a moment
			}
		})
	}
}

// firstReports are those that go into one call.
func (w *Worker) firstReports() []store.Done {
	bytes := 0
	for i, d := range w.reports {
		if bytes += len(d.Text); i == store.MostChanges || i > 0 && bytes > 4*MaxPayload {
			return w.reports[:i]
		}
	}
	return w.reports
}

func (w *Worker) room() string {
	var parts []string
	taken := w.taken()
	for name, n := range w.capacity {
		parts = append(parts, name+":"+strconv.Itoa(max(n-taken[name], 0)))
	}
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

// workerInfo is what a worker says of itself.
type workerInfo struct {
	Name    string `json:"name"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	LeaseMs int64  `json:"lease_ms"`
}

// introduce is what others see of the worker.
func (w *Worker) introduce() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text, err := json.Marshal(workerInfo{w.name, host, os.Getpid(), w.queue.lease.Milliseconds()})
	if err != nil {
		return "{}" // it cannot be: these are texts and numbers
	}
	return string(text)
}

// found starts what the worker should have been running already. The message that handed it over may still come, so its
// token is remembered; or it has come while the question was on its way.
func (w *Worker) found(claims []store.Claim) {
	w.mu.Lock()
	fresh := claims[:0]
	for _, c := range claims {
		running := w.jobs[c.ID] != nil && w.jobs[c.ID].claim.Token == c.Token
		reported := slices.ContainsFunc(w.reports, func(d store.Done) bool { return d.Token == c.Token })
		if !running && !reported {
			fresh = append(fresh, c)
		}
	}
	w.mu.Unlock()
	if !w.handed(fresh) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) > 10_000 {
		w.seen, w.seenBefore = map[string]bool{}, w.seen
	}
	for _, c := range fresh {
		w.seen[c.Token] = true
	}
}

// cancel ends a job's context. Without an id the worker itself is to end.
func (w *Worker) cancel(id, cause string) {
	defer w.tellOffers()
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == "" && w.endRun != nil && w.state != "gone" {
		w.state = "draining" // a call that comes before the loop has heard brings nothing new
		w.endRun()
	}
	if e := w.jobs[id]; e != nil && e.offer != nil && !e.offer.isOver() {
		w.endOffer(e, "withdrawn", fmt.Errorf("%w: the job was canceled", ErrOfferOver))
	} else if e != nil {
		err := ErrCanceled
		if cause != "" {
			err = fmt.Errorf("%w: %s", ErrCanceled, cause)
		}
		e.end(err)
	}
}
