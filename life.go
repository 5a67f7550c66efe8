package signalbox

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// A life is an acquisition of this process: the machine that decides, the errand that puts its calls into requests, and who
// is to be told. The first request, a release and a change of weight are made by the goroutine that wants them: another one
// would cost more than the request. Everything else is made by goroutines of the Box, in batches (batches.go): what the
// loop finds due, and what a message calls for.

// cancelPatience is for how long a caller who gave up waits for the server to know.
const cancelPatience = 100 * time.Millisecond

type life struct {
	machine *acquisition.Machine
	errand  errand
	ids     []string // that messages come for
	channel string   // in a Cluster, that on which they come; "" as long as none is wanted

	index int                 // in the alarms plus 1, 0 = not there
	at    acquisition.Instant // when it is due there

	outcome   *outcome      // for the caller, once there is one
	delivered chan struct{} // made by a caller who waits for it, closed then
	news      chan Waiting  // nil if the caller does not want to know
	pace      pace          // of its places
	lease     *Lease        // that holds what was granted, nil if there is none
	children  []*life       // of a group: those of its leases

	turn    chan struct{}           // to change the weight, made by the first who does
	result  chan acquisition.Action // of the change that somebody waits for,
	expects int64                   // and its number

	over    bool               // nothing is left to be told to the server
	verdict acquisition.Action // then: how it ended
	gone    chan struct{}      // made by who waits for that, closed then
}

// newLife returns a life that has not begun.
func (b *Box) newLife(ctx context.Context, e errand, terms acquisition.Terms, ids ...string) *life {
	terms.Claim, terms.Seed = b.claim, rand.Uint64()
	if deadline, ok := ctx.Deadline(); ok {
		terms.Until = b.clock.Now().Add(time.Until(deadline))
	}
	l := &life{machine: acquisition.New(terms), errand: e, ids: ids}
	l.machine.Share(&b.scratch)
	return l
}

// outcome is what a caller gets.
type outcome struct {
	lease *Lease
	err   error
}

// errand is what a life is about: a permit (permit.go), several (group.go), a latch or a barrier.
type errand interface {
	// request makes a call and returns what became of it.
	request(ctx context.Context, b *Box, s sending) reply
	// granted is what the caller gets. Called with b.mu held.
	granted(b *Box, l *life) outcome
	// failure is why the caller gets nothing, in words.
	failure(why *acquisition.Action) error
	// name is that of the resource, or of the first of several; doing has the verb before it.
	name() string
	doing() string
}

// reply is what became of a request.
type reply struct {
	answer acquisition.Answer
	err    error
	undone bool          // the request surely did nothing; the zero value is the safe one
	left   bool          // the caller did not wait for the answer, which says nothing of the server
	waited time.Duration // in a queue of this process, before it was sent
}

// sending is a call that a step wants made.
type sending struct {
	life   *life
	call   acquisition.Call
	rank   acquisition.Rank
	during time.Duration // for how long to wait, or to bar
	number int64
	weight int
}

// outbox is what steps want done when mu is free.
type outbox struct {
	first sending // most have no more, which then cost nothing
	sends []sending
	end   *Lease // to be cancelled; so here
	ends  []*Lease
	notes []note // for observers
}

func (out *outbox) send(s sending) {
	if out.first.life == nil {
		out.first = s
	} else {
		out.sends = append(out.sends, s)
	}
}

func (out *outbox) cancel(l *Lease) {
	if out.end == nil {
		out.end = l
	} else {
		out.ends = append(out.ends, l)
	}
}

// note is that a lease has ended, or was renewed so long after it was due.
type note struct {
	lease *Lease
	ended bool
	lag   time.Duration
}

// register adds a life, unless the box is closed.
func (b *Box) register(l *life) bool {
	if b.closed != nil {
		return false
	}
	for _, id := range l.ids {
		b.lives[id] = l
	}
	return true
}

// forget drops a life that is over. Called with mu held.
func (b *Box) forget(l *life, why *acquisition.Action) {
	if l.over {
		return
	}
	l.over, l.verdict = true, *why
	b.leaveInbox(l)
	switch {
	case b.closed == nil:
	case why.Why == acquisition.Failure:
		b.unsent.add(l.errand.name(), why.Err)
	default:
		b.told++
	}
	for _, id := range l.ids {
		if b.lives[id] == l { // and not the life of a group's lease
			delete(b.lives, id)
		}
	}
	if l.index > 0 {
		heap.Remove(&b.alarms, l.index-1)
	}
	if l.gone != nil {
		close(l.gone)
	}
	if b.ended != nil && len(b.lives) == 0 {
		close(b.ended)
		b.ended = nil
	}
}

// step tells a life what happened. Called with mu held.
func (b *Box) step(l *life, now acquisition.Instant, e acquisition.Event, out *outbox) {
	actions := l.machine.Step(now, e)
	for i := range actions {
		b.heed(l, now, e.What, &actions[i], out)
	}
	if !l.over {
		b.schedule(l)
	}
}

// heed does what a step wants done. Called with mu held.
func (b *Box) heed(
	l *life, now acquisition.Instant, what acquisition.Happening, a *acquisition.Action, out *outbox,
) {
	switch a.Do {
	case acquisition.Send:
		out.send(sending{l, a.Call, a.Rank, a.Wait + a.Bar, a.Number, a.Weight})
	case acquisition.Listen:
		b.openInbox(l)
	case acquisition.Moved:
		l.moved(now, a)
	case acquisition.Grant:
		l.deliver(l.errand.granted(b, l))
	case acquisition.Refuse:
		l.deliver(outcome{err: l.errand.failure(a)})
	case acquisition.Notice:
		l.lease.want()
	case acquisition.Renewed:
		if l.lease.told {
			out.notes = append(out.notes, note{lease: l.lease, lag: a.Lag})
		}
	case acquisition.Reweighed:
		l.reweighed(a)
	case acquisition.End:
		l.lease.end(a, out)
	case acquisition.Done:
		b.forget(l, a)
	case acquisition.Impossible:
		b.misfits.Add(1)
		misfit(l.machine.State(), what)
	}
}

// misfit is told of events in states where they cannot be. They are ignored, and counted; tests make more of it.
var misfit = func(acquisition.State, acquisition.Happening) {}

// deliver hands the outcome to the caller, who may not be there any more. A second one is of a caller who got through
// although he had given up, and looks for himself. Called with mu held.
func (l *life) deliver(o outcome) {
	if l.outcome != nil {
		return
	}
	l.outcome = &o
	if l.delivered != nil {
		close(l.delivered)
	}
}

// moved tells the caller its place in the queue, in the place of the last if that was not heard of yet.
func (l *life) moved(now acquisition.Instant, a *acquisition.Action) {
	if l.news == nil {
		return
	}
	select {
	case <-l.news:
	default:
	}
	l.news <- Waiting{l.errand.name(), a.Ahead, a.Wait, l.pace.estimate(now, a.Ahead)}
}

// pace is how fast a queue moves.
type pace struct {
	begun acquisition.Instant // when the first place was told,
	from  int                 // and how many were ahead then
}

// estimate is how long those ahead and this one will take at the pace seen so far, 0 if there is none yet.
func (p *pace) estimate(now acquisition.Instant, ahead int) time.Duration {
	if p.begun == 0 {
		p.begun, p.from = now, ahead
	}
	gone := p.from - ahead
	if gone <= 0 {
		return 0
	}
	return now.Sub(p.begun) / time.Duration(gone) * time.Duration(ahead+1)
}

// perform does what steps wanted done, when mu is free.
func (b *Box) perform(out *outbox) {
	if out.end != nil {
		out.end.cancel(out.end.cause)
	}
	for _, lease := range out.ends {
		lease.cancel(lease.cause)
	}
	for _, n := range out.notes {
		if n.ended {
			n.lease.observeEnd()
		} else {
			n.lease.observe(Renewed, n.lag, nil)
		}
	}
	if out.first.life != nil {
		b.dispatch(append(out.sends, out.first))
	}
}

// follow performs an outbox, the first of its calls here and now.
func (b *Box) follow(ctx context.Context, out *outbox) {
	first := out.first
	out.first = sending{}
	if len(out.sends) > 0 {
		out.first, out.sends = out.sends[0], out.sends[1:]
	}
	b.perform(out)
	if first.life != nil {
		b.request(ctx, first)
	}
}

// request makes a call and tells the life what became of it.
func (b *Box) request(ctx context.Context, s sending) {
	sent := b.clock.Now()
	r := s.life.errand.request(ctx, b, s)
	var out outbox
	b.mu.Lock()
	b.answered(&s, sent, &r, &out)
	b.mu.Unlock()
	b.perform(&out)
}

// answered tells a life what became of a call. Called with mu held.
func (b *Box) answered(s *sending, sent acquisition.Instant, r *reply, out *outbox) {
	sent = sent.Add(r.waited)
	e := acquisition.Event{What: acquisition.Answered, Call: s.call, Sent: sent, Answer: r.answer, Number: s.number}
	if r.err != nil {
		e.What, e.Err = acquisition.Failed, r.err
		e.Undone, e.Lasting = r.undone, !r.left && !ledger.Retryable(r.err)
	}
	b.step(s.life, b.clock.Now(), e, out)
}

var alreadyClosed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// await begins a life and waits for the outcome.
func (b *Box) await(ctx context.Context, l *life, onWait func(Waiting)) outcome {
	var out outbox
	b.mu.Lock()
	if !b.register(l) {
		b.mu.Unlock()
		return outcome{err: l.errand.failure(&acquisition.Action{Why: acquisition.WasClosed})}
	}
	b.step(l, b.clock.Now(), acquisition.Event{What: acquisition.Begin}, &out)
	b.mu.Unlock()
	// A cancel while the answer is on its way is heard when it has come, or has timed out; a deadline by the client.
	b.follow(ctx, &out)
	b.mu.Lock()
	if l.outcome == nil {
		l.delivered = make(chan struct{})
	}
	delivered := l.delivered
	b.mu.Unlock()
	if delivered == nil { // it was so quick
		delivered = alreadyClosed
	}
	for {
		select {
		case <-delivered:
			o := *l.outcome
			if o.err == nil {
				return o
			}
			b.patiently(l, cancelPatience)
			if endOf(ctx) != nil {
				o.err = ended(ctx, l.errand.doing())
			}
			return o
		case news := <-l.news:
			b.showPlace(onWait, news)
		case <-ctx.Done():
			b.abandon(l)
			return outcome{err: ended(ctx, l.errand.doing())}
		}
	}
}

// showPlace calls the caller's function and waits for it, unless the box closes: it may be what closes the box, and Close
// waits for this acquisition.
func (b *Box) showPlace(onWait func(Waiting), news Waiting) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		onWait(news)
	}()
	select {
	case <-told:
	case <-b.closing:
	}
}

// abandon gives up: nothing of the acquisition may stay behind, nor of leases that came at the last moment.
func (b *Box) abandon(l *life) {
	var out outbox
	b.mu.Lock()
	now := b.clock.Now()
	for _, l := range append(l.children, l) {
		b.step(l, now, acquisition.Event{What: acquisition.GiveUp}, &out)
	}
	b.handOver(&out)
	b.mu.Unlock()
	b.perform(&out)
	b.patiently(l, cancelPatience)
}

// patiently waits a while until nothing is left to be told to the server, and reports whether that is so.
func (b *Box) patiently(l *life, during time.Duration) bool {
	b.mu.Lock()
	if l.over {
		b.mu.Unlock()
		return true
	}
	if l.gone == nil {
		l.gone = make(chan struct{})
	}
	gone := l.gone
	b.mu.Unlock()
	patience := time.NewTimer(during)
	defer patience.Stop()
	select {
	case <-gone:
		return true
	case <-patience.C:
		return false
	}
}

// schedule notes when a life is due. Called with mu held.
func (b *Box) schedule(l *life) {
	at := l.machine.Wake()
	switch {
	case at == 0 && l.index > 0:
		heap.Remove(&b.alarms, l.index-1)
	case at == 0 || (at == l.at && l.index > 0):
	case l.index > 0:
		l.at = at
		heap.Fix(&b.alarms, l.index-1)
	default:
		l.at = at
		heap.Push(&b.alarms, l)
	}
	if at != 0 && (!b.running || b.alarm == 0 || at < b.alarm) {
		b.wakeLoop()
	}
}

// wakeLoop has the loop look. Called with mu held.
func (b *Box) wakeLoop() {
	if !b.running {
		b.running = true
		b.servants.Go(b.loop)
		return
	}
	select {
	case b.ring <- struct{}{}:
	default:
	}
}

// handOver leaves the calls in an outbox to the loop, which makes one batch of those that many callers have at once. Called
// with mu held.
func (b *Box) handOver(out *outbox) {
	if out.first.life == nil {
		return
	}
	b.handed = append(append(b.handed, out.first), out.sends...)
	out.first, out.sends = sending{}, nil
	b.wakeLoop()
}

// longestNap is after how long the loop looks whether the computer has slept.
const longestNap = time.Second

// loop is the goroutine that knows when something is due.
func (b *Box) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-b.ring:
		case <-b.stopping.Done():
			return
		}
		var out outbox
		b.clock.Refresh()
		b.mu.first.Lock()
		now := b.clock.Now()
		for len(b.alarms) > 0 && b.alarms[0].at <= now {
			l := heap.Pop(&b.alarms).(*life)
			b.step(l, now, acquisition.Event{What: acquisition.Tick}, &out)
		}
		for _, s := range b.handed {
			out.send(s)
		}
		b.alarm, b.handed = 0, nil
		if len(b.alarms) > 0 {
			b.alarm = b.alarms[0].at
		}
		next := b.alarm
		b.mu.first.Unlock()
		b.perform(&out)
		if next == 0 {
			timer.Stop()
		} else {
			timer.Reset(min(next.Sub(now), longestNap))
		}
	}
}

// alarms is a heap of lives, the earliest first.
type alarms []*life

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at < h[j].at }

func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push is called by container/heap.
func (h *alarms) Push(x any) {
	l := x.(*life)
	*h = append(*h, l)
	l.index = len(*h)
}

// Pop is called by container/heap.
func (h *alarms) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.index = 0
	return l
}
