package transport

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Lanes bounds what is on its way. Client libraries give every caller a connection of its own: tens of thousands of callers
// wait for the pool until their time is up, give up connections that were busy with an answer, and collapse. So the
// requests to one server share a lane with room for inFlight of them.
//
//   - Who finds room sends by himself, as if there were no lane.
//   - Who finds none joins the lane's queue. Whoever finishes hands his room on to everything that is queued by then, at
//     most batchMost commands, which goes as one pipeline in a goroutine of its own. That one goes on while there is more.
//     So the busier the lane, the larger the batches: nobody waits for a batch to fill.
//   - The batches are as large as the server can answer soon, so that little is on its way when it is slow: what waits here
//     costs it nothing, no time runs out for it, and what matters more can still go before it (Precedence).
//   - Of one precedence first queued, first sent. A Pipeline is cut into pieces that queue like everybody's requests; pieces
//     of the same server may overtake each other on different connections, commands of one piece do not.
//   - A bound (Within) begins when a command is sent. In the queue it ends a wait only if
//     the server has been silent for twice as long.
//   - A batch belongs to nobody: its context keeps the values of its first caller's and ends with none. A caller whose
//     context ends takes his request out of the queue, and it was surely not sent; or leaves the batch on its way, and
//     nobody knows. So a batch may outlive those who gave it up, by as long as Within or the client's own timeout lets it.
//   - Servers do not wait for each other: Transport.Server says which commands share a lane.
//
// Ownership: mu guards the lanes and the place of every request. A request's commands belong to who sends it, its replies
// to its sender until done is closed and then to its caller. mu is the only lock here, and never held while calling out.
//
// Invariant: where somebody is queued, the lane has no room.
type Lanes struct {
	Transport // Server, Together, Listen and EachPrimary pass through
	inFlight  int

	stopping context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup // goroutines that send batches; added to under mu, while not closed

	mu     sync.Mutex
	lanes  map[string]*lane // by server; never removed, a Cluster has few
	closed bool
}

// lane is the way to one server.
type lane struct {
	onTheWay int                    // direct requests and batches
	queues   [precedences]list.List // of *request
	most     int                    // commands in a batch, by size
	heard    time.Time              // when the server answered last
}

// request is commands for one server that wait in a queue, or go in a batch.
type request struct {
	ctx      context.Context
	lane     *lane
	queue    *list.List    // that of its precedence,
	place    *list.Element // and where in it; nil once it is on its way
	queued   time.Time
	sent     time.Time // or refused
	commands []Command
	size     int
	replies  []Reply
	done     chan struct{}
}

const (
	// inFlight fits go-redis' smallest pool, of 10 connections. On 2 cores and loopback (lanes_bench_test.go) 100 goroutines
	// that call without a pause wait 0.45 ms for an answer (p50) with room for 1 to 8, 0.65 ms with 16 and 1.3 ms without
	// lanes. 40,000 at once, with a script as long as an acquire, take 1.9, 1.5, 1.4, 1.2 and 1.2 times as long with 1, 2, 4,
	// 8 and 16 as the same calls in pipelines of 500. Where the network is slow, more room is better.
	inFlight = 8
	// batchMost is about what the library puts into a pipeline elsewhere, and well below what holds a server up. A lane finds
	// out by and by whether its server bears that.
	batchMost  = 500
	batchFirst = 64
	// A batch is to be answered within this part of the bound of its commands. Where it is not, batches become smaller, in
	// proportion, but no smaller than batchLeast: on a slow network that makes them no quicker.
	soonest    = 10
	batchLeast = 32
	usual      = 3 * time.Second // where there is none
	// A command with so many words more counts as one more.
	manyWords = 16
)

// NewLanes returns lanes over a transport.
func NewLanes(over Transport) *Lanes {
	stopping, stop := context.WithCancel(context.Background())
	return &Lanes{Transport: over, inFlight: inFlight, stopping: stopping, stop: stop, lanes: map[string]*lane{}}
}

// Close fails what is queued, and returns when no batch is under way. What is sent after it goes directly or fails.
func (l *Lanes) Close() {
	l.mu.Lock()
	l.closed = true
	for _, lane := range l.lanes {
		lane.refuse(As(ErrUnsent, ErrClosed), func(*request) bool { return true })
	}
	l.mu.Unlock()
	l.stop()
	l.running.Wait()
}

// refuse answers those who are queued and of whom it is said. It needs mu.
func (l *lane) refuse(err error, which func(*request) bool) {
	for i := range l.queues {
		for e := l.queues[i].Front(); e != nil; {
			r := e.Value.(*request)
			e = e.Next()
			if which(r) {
				r.leave()
				r.refuse(err)
			}
		}
	}
}

// refuse answers a request that is in no queue any more. It needs mu.
func (r *request) refuse(err error) {
	if r.sent.IsZero() {
		r.sent = time.Now()
	}
	r.replies = Failed(len(r.commands), err)
	close(r.done)
}

// leave takes a request out of its queue. It needs mu.
func (r *request) leave() {
	r.queue.Remove(r.place)
	r.place = nil
}

// Do is part of Transport.
func (l *Lanes) Do(ctx context.Context, command Command) (any, error) {
	server := l.server(command)
	if lane := l.enter(server); lane != nil {
		sent := time.Now()
		value, err := l.Transport.Do(within(ctx, command.Within), command)
		l.leave(lane, sent, size(&command), command.Within, err)
		return value, err
	}
	reply := l.wait(ctx, l.enqueue(ctx, &piece{server: server, commands: []Command{command}, size: size(&command)}))[0]
	return reply.Value, reply.Err
}

// Pipeline is part of Transport.
func (l *Lanes) Pipeline(ctx context.Context, commands []Command) []Reply {
	pieces := l.cut(commands)
	if len(pieces) == 1 {
		if lane := l.enter(pieces[0].server); lane != nil {
			sent, bound := time.Now(), longest(commands)
			replies := l.Transport.Pipeline(within(ctx, bound), commands)
			l.leave(lane, sent, pieces[0].size, bound, silence(replies))
			return replies
		}
	}
	requests := make([]*request, len(pieces))
	for i, piece := range pieces {
		requests[i] = l.enqueue(ctx, piece)
	}
	replies := make([]Reply, len(commands))
	for i, piece := range pieces {
		for j, reply := range l.wait(ctx, requests[i]) {
			replies[piece.places[j]] = reply
		}
	}
	return replies
}

// silence is the first error of replies none of which is an answer, nil if one is.
func silence(replies []Reply) error {
	for _, reply := range replies {
		if answered(reply.Err) {
			return nil
		}
	}
	return replies[0].Err
}

// answered says whether an error is the server's, or none.
func answered(err error) bool {
	var answer *ServerError
	return err == nil || errors.As(err, &answer)
}

// piece is as many commands of a Pipeline that go to one server as make one batch, and where they stood.
type piece struct {
	server   string
	commands []Command
	places   []int
	size     int
}

// size is how much a command counts.
func size(c *Command) int { return 1 + len(c.Words)/manyWords }

func (l *Lanes) cut(commands []Command) []*piece {
	var pieces []*piece
	open, most := map[string]*piece{}, map[string]int{}
	for i, command := range commands {
		server := l.server(command)
		p, more := open[server], size(&command)
		if p == nil || p.size+more > most[server] {
			if p == nil {
				most[server] = l.most(server)
			}
			p = &piece{server: server}
			open[server] = p
			pieces = append(pieces, p)
		}
		p.commands, p.places, p.size = append(p.commands, command), append(p.places, i), p.size+more
	}
	return pieces
}

// most is how many commands make one batch for a server.
func (l *Lanes) most(server string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to(server).most
}

func (l *Lanes) server(command Command) string {
	if command.Key == 0 {
		return ""
	}
	key, _ := command.Words[command.Key].(string)
	return l.Server(key)
}

// enter returns the lane to a server if it has room for one more, who must leave it.
func (l *Lanes) enter(server string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane := l.to(server); lane.onTheWay < l.inFlight {
		lane.onTheWay++
		return lane
	}
	return nil
}

// leave notes what became of commands that were sent directly, and hands the room on to those who are queued.
func (l *Lanes) leave(lane *lane, sent time.Time, size int, bound time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane.note(sent, size, bound, err)
	l.pass(lane)
}

// note learns from a batch, and from a command on its own, how much the server can answer soon. One that is silent for twice
// the bound of those who are queued, to two batches one after the other, will not answer them either. It needs mu.
func (l *lane) note(sent time.Time, size int, bound time.Duration, err error) {
	now := time.Now()
	took := now.Sub(sent)
	if bound <= 0 {
		bound = usual
	}
	switch soon := bound / soonest; {
	case took > soon:
		l.most = max(batchLeast, min(l.most, int(int64(size)*int64(soon)/int64(took))))
	case took <= soon/2 && 2*size > l.most:
		l.most = min(batchMost, 2*l.most)
	}
	if answered(err) {
		l.heard = now
		return
	}
	l.refuse(As(ErrUnsent, err), func(r *request) bool {
		silent, bound := r.queued, longest(r.commands)
		if l.heard.After(silent) {
			silent = l.heard
		}
		if bound <= 0 || now.Sub(silent) < 2*bound {
			return false
		}
		r.sent = silent // it might as well have been
		return true
	})
}

// pass starts a goroutine in the room of who has finished, or gives the room up if nobody is queued. It needs mu.
func (l *Lanes) pass(lane *lane) {
	if batch := lane.take(); batch != nil {
		l.running.Go(func() { l.run(lane, batch) })
	} else {
		lane.onTheWay--
	}
}

func (l *Lanes) enqueue(ctx context.Context, p *piece) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.to(p.server)
	r := &request{
		ctx: ctx, lane: lane, queue: &lane.queues[p.commands[0].Precedence], queued: time.Now(), commands: p.commands,
		size: p.size, done: make(chan struct{}),
	}
	if l.closed {
		r.refuse(As(ErrUnsent, ErrClosed))
		return r
	}
	r.place = r.queue.PushBack(r)
	if lane.onTheWay < l.inFlight {
		lane.onTheWay++
		l.pass(lane)
	}
	return r
}

// to needs mu.
func (l *Lanes) to(server string) *lane {
	to := l.lanes[server]
	if to == nil {
		to = &lane{most: batchFirst}
		l.lanes[server] = to
	}
	return to
}

// run sends one batch after the other while there are any.
func (l *Lanes) run(lane *lane, batch []*request) {
	for batch != nil {
		sent := time.Now()
		size, bound, err := l.send(batch)
		batch = l.next(lane, sent, size, bound, err)
	}
}

// next is called by who has finished: it returns who is to use his room now, and takes it back if there is nobody.
func (l *Lanes) next(lane *lane, sent time.Time, size int, bound time.Duration, err error) []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane.note(sent, size, bound, err)
	batch := lane.take()
	if batch == nil {
		lane.onTheWay--
	}
	return batch
}

// take takes as many as make one batch, those of the lowest precedence first. It needs mu.
func (l *lane) take() (batch []*request) {
	now, size := time.Now(), 0
	for i := range l.queues {
		for queue := &l.queues[i]; queue.Len() > 0; {
			r := queue.Front().Value.(*request)
			if size += r.size; size > l.most && batch != nil {
				return batch
			}
			r.leave()
			r.sent = now
			batch = append(batch, r)
		}
	}
	return batch
}

// send sends a batch, and returns its size, the bound of its commands, and the error if there was no answer.
func (l *Lanes) send(batch []*request) (size int, bound time.Duration, err error) {
	var commands []Command
	for _, r := range batch {
		commands, size = append(commands, r.commands...), size+r.size
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	defer cancel()
	defer context.AfterFunc(l.stopping, cancel)()
	bound = longest(commands)
	replies := l.Transport.Pipeline(within(ctx, bound), commands)
	err = silence(replies)
	for _, r := range batch {
		r.replies, replies = replies[:len(r.commands)], replies[len(r.commands):]
		close(r.done)
	}
	return size, bound, err
}

// wait returns the replies to a request, or what became of it when ctx ended.
func (l *Lanes) wait(ctx context.Context, r *request) []Reply {
	if until, limited := ctx.Deadline(); limited && ctx.Done() == nil {
		timed, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = timed
	}
	defer r.tellWait()
	select {
	case <-r.done:
		return r.replies
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.place != nil {
		r.leave()
		r.sent = time.Now()
		return Failed(len(r.commands), As(ErrUnsent, ctx.Err()))
	}
	select {
	case <-r.done: // both at once: what is known is worth more
		return r.replies
	default:
		return Failed(len(r.commands), ctx.Err())
	}
}

// tellWait tells who wants to know for how long it stood in the queue.
func (r *request) tellWait() {
	for i := range r.commands {
		if waited := r.commands[i].Waited; waited != nil {
			*waited = r.sent.Sub(r.queued)
		}
	}
}

// longest is how long an answer to all of these may take.
func longest(commands []Command) (bound time.Duration) {
	for _, command := range commands {
		if command.Within <= 0 {
			return 0
		}
		bound = max(bound, command.Within)
	}
	return bound
}

// within bounds ctx from now on, if there is a bound.
func within(ctx context.Context, bound time.Duration) context.Context {
	if bound <= 0 {
		return ctx
	}
	until := time.Now().Add(bound)
	if earlier, limited := ctx.Deadline(); limited && earlier.Before(until) {
		return ctx
	}
	return bounded{ctx, until}
}

// bounded is a context with a deadline and no timer: the connection keeps the deadline, and a timer costs a request a good
// part of its round trip.
type bounded struct {
	context.Context
	until time.Time
}

func (b bounded) Deadline() (time.Time, bool) { return b.until, true }
