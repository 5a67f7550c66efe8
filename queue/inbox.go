package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// The inbox is one subscription for the process, opened when the first worker or waiter wants it. Messages are hints: they
// may be lost whenever the connection is. Each time it is open (again), workers make a call and waiters look. In a Cluster it
// is in the slot of the queue.

// news is what a waiter hears: the end of its job, what its handler says, or that it is to look.
type news struct {
	look  bool
	state string // of one that has ended
	text  string
	note  string
}

func (q *Queue) openInbox() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listening || q.closed {
		return
	}
	q.listening = true
	if clustered, ok := q.transport.(transport.Clustered); ok && clustered.Sharded() {
		shards := transport.NewShards(clustered, q.receive)
		shards.Want(store.Inbox(q.name, q.process))
		q.tasks.Go(func() { shards.Run(q.stopping, q.backoff) })
	} else {
		q.tasks.Go(q.listen)
	}
}

func (q *Queue) listen() {
	for failures := 1; q.stopping.Err() == nil; failures++ {
		// What ended it makes no difference: until it is open again heartbeats do its work, and say what is wrong.
		_ = q.transport.Listen(q.stopping, []string{store.Inbox(q.name, q.process)}, func(e transport.Event) {
			failures = 0
			q.receive(e)
		})
		if !q.pause(q.stopping, failures) {
			return
		}
	}
}

func (q *Queue) receive(e transport.Event) {
	if e.Subscribed {
		q.lookAgain()
	} else if words, ok := store.ParseMessage(e.Payload); ok && len(words) > 1 {
		q.hear(words)
	}
}

func (q *Queue) lookAgain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.workers {
		w.look()
	}
	for _, waits := range q.waits {
		for _, c := range waits {
			send(c, news{look: true})
		}
	}
}

// hear passes a message on: verb, for whom, and what.
func (q *Queue) hear(words []string) {
	q.mu.Lock()
	w := q.workers[words[1]]
	if words[0] == "ended" && len(words) == 4 {
		for _, c := range q.waits[words[1]] {
			send(c, news{state: words[2], text: words[3]})
		}
	}
	if words[0] == "noted" && len(words) == 3 {
		for _, c := range q.waits[words[1]] {
			send(c, news{note: words[2]})
		}
	}
	q.mu.Unlock()
	if w == nil {
		return
	}
	switch words[0] {
	case "jobs":
		if claims, ok := store.ParseClaims(words[2:]); ok {
			w.handed(claims)
		}
	case "look":
		w.look()
	case "over":
		if len(words) == 5 {
			w.offerEnded(words[2], words[3], words[4])
		}
	case "wake":
		w.ring()
	case "cancel":
		if len(words) == 4 {
			w.cancel(words[2], words[3])
		}
	}
}

// send adds to what a waiter has not looked at yet. There is one sender, under mu.
func send(c chan news, n news) {
	select {
	case c <- n:
		return
	default:
	}
	select {
	case old := <-c:
		if n.note == "" {
			n.note = old.note
		}
		if n.state == "" {
			n.state, n.text = old.state, old.text
		}
		n.look = n.state == "" && (n.look || old.look)
	default:
	}
	c <- n
}

// waitLook is how often a waiter looks by itself, should all messages be lost.
const waitLook = 30 * time.Second

// follow looks at a job, and again whenever messages may have been lost. It tells look what it sees, and hear what it hears,
// until one of them says that it is over.
func (q *Queue) follow(ctx context.Context, id string, look func(*store.Sight) (over bool, err error), hear func(news) (over bool, err error)) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.tasks.Done()
	heard := make(chan news, 1)
	q.mu.Lock()
	q.waits[id] = append(q.waits[id], heard)
	q.mu.Unlock()
	defer q.forgetWait(id, heard)
	q.openInbox()
	ticker := time.NewTicker(waitLook)
	defer ticker.Stop()
	for n := (news{look: true}); ; {
		over, err := false, error(nil)
		if n.look {
			var sight *store.Sight
			if sight, err = q.lookUntilKnown(ctx, id); err == nil {
				over, err = look(sight)
			}
		} else {
			over, err = hear(n)
		}
		if over || err != nil {
			return err
		}
		select {
		case n = <-heard:
		case <-ticker.C:
			n = news{look: true}
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", q.waitFor(id), context.Cause(ctx))
		case <-q.closing:
			return fmt.Errorf("%s: %w", q.waitFor(id), ErrClosed)
		}
	}
}

// waitFor is what a call does that waits, for its errors.
func (q *Queue) waitFor(id string) string {
	return fmt.Sprintf("wait for job %s of queue %q", idText(id), q.name)
}

// lookUntilKnown looks at a job, and tries again while the server is out of reach.
func (q *Queue) lookUntilKnown(ctx context.Context, id string) (*store.Sight, error) {
	doing := q.waitFor(id)
	for failures := 1; ; failures++ {
		sight, err := q.store.Look(ctx, id, q.process)
		switch {
		case err == nil && sight == nil:
			return nil, fmt.Errorf("%s: %w: it may have ended, and not be kept (see Retain); or the server has lost its data: "+
				"wait again when the queue was made from its history (signalbox queue rebuild)", doing, ErrUnknownJob)
		case err == nil:
			return sight, nil
		case !ledger.Retryable(err) || ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		if !q.pause(ctx, failures) {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%s: %w, after %w", doing, context.Cause(ctx), err)
			}
			return nil, fmt.Errorf("%s: %w", doing, ErrClosed)
		}
	}
}

// wait returns the result of a job when it has ended.
func (q *Queue) wait(ctx context.Context, id string) (result string, err error) {
	ended := func(state, text string) (over bool, err error) {
		result, over, err = outcome(id, state, text)
		return over, err
	}
	err = q.follow(ctx, id, func(s *store.Sight) (bool, error) { return ended(s.State, s.Result) },
		func(n news) (bool, error) { return ended(n.state, n.text) })
	return result, err
}

func outcome(id, state, text string) (result string, over bool, err error) {
	switch state {
	case "d":
		return text, true, nil
	case "x":
		return "", true, &DeadError{ID: id, Reason: text}
	case "k":
		return "", true, fmt.Errorf("job %s: %w: %s", id, ErrCanceled, text)
	}
	return "", false, nil
}

// errEnough ends Watch for who does not want more.
var errEnough = errors.New("enough")

// Watch follows a job. It yields what there is to know of it now, each time its handler has said something (Job.Progress,
// Job.Logf), and when it has ended; then it is over. It may yield without a change. After an error nothing more comes.
func (q *Queue) Watch(ctx context.Context, id string) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		var info JobInfo
		tell := func() (bool, error) {
			if !yield(info, nil) {
				return true, errEnough
			}
			return strings.Contains(lettersEnded, letters[info.State]), nil
		}
		look := func(s *store.Sight) (bool, error) {
			info = newJobInfo(s)
			return tell()
		}
		err := q.follow(ctx, id, look, func(n news) (bool, error) {
			if n.state == "" && info.State != Running { // by whom?
				sight, err := q.lookUntilKnown(ctx, id)
				if err != nil {
					return true, err
				}
				return look(sight)
			}
			info.hear(n)
			return tell()
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(JobInfo{}, err)
		}
	}
}

// hear brings what is known of a job up to date.
func (j *JobInfo) hear(n news) {
	if n.note != "" {
		noted := parseNotes(n.note)
		j.Progress, j.Log = noted.Progress, noted.Log
	}
	if n.state != "" {
		j.end(stateOf(n.state), n.text)
	}
}

func (q *Queue) forgetWait(id string, heard chan news) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waits := slices.DeleteFunc(slices.Clone(q.waits[id]), func(c chan news) bool { return c == heard })
	if q.waits[id] = waits; len(waits) == 0 {
		delete(q.waits, id)
	}
}
