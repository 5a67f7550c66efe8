package signalbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// How a quorum asks its servers. Nobody waits long for one that is silent: it is passed over, what it grants later goes
// back, and the quorum remembers it, so that the next acquisitions do not wait for it either.
//
// Two processes may take different servers for silent, and queue at different ones. Then they meet on the others: one of
// them gets the majority, or neither does and both give back and try again after a random pause. Who is thought to be
// silent never makes a lease, it only says who is asked, and when.
//
// Every request is a task of its server's Box, which waits for it when it closes.

const (
	hedge        = 250 * time.Millisecond // a server that has not answered by then is passed over if others can do
	mostPatience = 4 * time.Second        // where all are slow
	silenceSpan  = time.Second            // so long a silent server is left alone before it is asked for a sign of life
)

// silence is what the quorum remembers of a server.
type silence struct {
	silent bool
	again  time.Time // when it may be asked whether it still is
}

// due says whether a server may be asked, which for a silent one only one may do in a while. Called with the mutex held.
func (s *silence) due() bool {
	now := time.Now()
	if s.silent && now.Before(s.again) {
		return false
	}
	s.again = now.Add(silenceSpan)
	return true
}

// answer is what became of a request to one server.
type answer struct {
	server int
	lease  *Lease
	err    error
}

// isSilence says whether an error is that of a server that gave no answer, or cannot give one now.
func isSilence(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// order is the servers in their order, those that are silent apart.
func (q *Quorum) order() (heard, silent []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for server, s := range q.silence {
		if s.silent {
			silent = append(silent, server)
		} else {
			heard = append(heard, server)
		}
	}
	return heard, silent
}

func without(servers []int, server int) []int {
	return slices.DeleteFunc(servers, func(s int) bool { return s == server })
}

// note remembers whether a server is silent.
func (q *Quorum) note(server int, silent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silence[server].silent, q.silence[server].again = silent, time.Now().Add(silenceSpan)
}

// revisit asks silent servers for a sign of life, in the background.
func (q *Quorum) revisit(ctx context.Context, name string) {
	var due []int
	q.mu.Lock()
	for server := range q.silence {
		if s := &q.silence[server]; s.silent && s.due() {
			due = append(due, server)
		}
	}
	q.mu.Unlock()
	for _, server := range due {
		box := q.boxes[server]
		if box.enter() != nil {
			continue // it is closed
		}
		go func() {
			defer box.tasks.Done()
			within, done := context.WithTimeout(context.WithoutCancel(ctx), silenceSpan)
			defer done()
			_, err := box.Inspect(within, name)
			q.note(server, isSilence(err))
		}()
	}
}

// start runs one request in the background. Its answer goes to answers, or, once late is closed, what it was granted goes
// back. It reports false if the Box is closed.
func (q *Quorum) start(server int, answers chan<- answer, late <-chan struct{}, request func() (*Lease, error)) bool {
	box := q.boxes[server]
	if box.enter() != nil {
		return false
	}
	go func() {
		defer box.tasks.Done()
		lease, err := request()
		select {
		case answers <- answer{server, lease, err}:
		case <-late:
			if lease != nil {
				_ = lease.Release(context.Background()) // else it ends with its ttl
			}
		}
	}()
	return true
}

// ask asks servers at once, and returns what was answered when all have answered, or when bound is over, or when it has
// been decided for a while whether enough of them agree.
func (q *Quorum) ask(
	ctx context.Context, servers []int, enough int, bound time.Duration,
	request func(ctx context.Context, server int) (*Lease, error),
) (got []answer) {
	within, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	answers, late := make(chan answer), make(chan struct{})
	defer close(late)
	begun, agreed := time.Now(), 0
	for _, server := range servers {
		ask := func() (*Lease, error) { return request(within, server) }
		if !q.start(server, answers, late, ask) {
			lease, err := ask() // a closed Box says so at once
			got = append(got, answer{server, lease, err})
		}
	}
	var patience <-chan time.Time
	for left := true; left && len(got) < len(servers); {
		select {
		case a := <-answers:
			got = append(got, a)
			if a.err == nil {
				agreed++
			}
			hopeless := enough <= len(servers) && agreed+len(servers)-len(got) < enough
			if patience == nil && (agreed >= enough || hopeless) {
				timer := time.NewTimer(hedge)
				defer timer.Stop()
				patience = timer.C
			}
		case <-patience:
			left = false
		case <-within.Done():
			left = false
		}
	}
	if endOf(ctx) == nil {
		q.noteAll(servers, got, time.Since(begun) >= hedge)
	}
	return got
}

// noteAll remembers who answered. Those who did not are silent if they had the time.
func (q *Quorum) noteAll(servers []int, got []answer, hadTime bool) {
	for _, server := range servers {
		i := slices.IndexFunc(got, func(a answer) bool { return a.server == server })
		switch {
		case i >= 0:
			q.note(server, isSilence(got[i].err))
		case hadTime:
			q.note(server, true)
		}
	}
}

// queueAt waits for the turn at one server, as long as that answers within the patience: with the lease, or with a place in
// its queue.
func (q *Quorum) queueAt(
	ctx context.Context, name string, server int, patience time.Duration, options []AcquireOption,
) answer {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, late, placed := make(chan answer), make(chan struct{}), make(chan struct{}, 1)
	defer close(late)
	hear := OnWait(func(Waiting) {
		select {
		case placed <- struct{}{}:
		default:
		}
	})
	if !q.start(server, answers, late, func() (*Lease, error) {
		return q.boxes[server].Mutex(name).Acquire(within, append(options[:len(options):len(options)], hear)...)
	}) {
		return answer{server: server, err: fmt.Errorf("acquire %q: %w", name, ErrClosed)}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for ended := ctx.Done(); ; {
		select {
		case a := <-answers:
			if endOf(ctx) == nil {
				q.note(server, isSilence(a.err))
			}
			return a
		case <-placed: // it is there; if it falls silent now, Acquire says so
			timer.Stop()
			q.note(server, false)
		case <-ended:
			ended = nil
			timer.Reset(hedge) // then the answer is not waited for any more
		case <-timer.C:
			if endOf(ctx) == nil {
				q.note(server, true)
			}
			err := fmt.Errorf("acquire %q: %w: no answer within %v", name, ErrUnavailable, patience)
			return answer{server: server, err: err}
		}
	}
}

// giveUp gives leases back. What cannot be given back soon goes on in the background, and at last ends with its ttl.
func (q *Quorum) giveUp(ctx context.Context, held []answer) {
	leases, servers := byServer(held)
	q.ask(context.WithoutCancel(ctx), servers, len(servers), hedge, func(ctx context.Context, server int) (*Lease, error) {
		return nil, leases[server].Release(ctx)
	})
}

func byServer(held []answer) (leases map[int]*Lease, servers []int) {
	leases = make(map[int]*Lease)
	for _, a := range held {
		leases[a.server], servers = a.lease, append(servers, a.server)
	}
	return leases, servers
}
