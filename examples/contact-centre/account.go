package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// The account is kept by the customers, apart from the queue: who came, and what each was told at the end. So it finds out
// what the queue has lost, or done for two. A customer has come when the queue has acknowledged the contact.
type account struct {
	mu      sync.Mutex
	arrived int
	open    map[string]*channel // by the ids of contacts
	tallies map[*channel]*tally
	wrong   []string // each thing that must not be
}

// tally is what became of the contacts of a channel.
type tally struct {
	served, abandoned, inTime int
}

func newAccount() *account {
	a := &account{open: map[string]*channel{}, tallies: map[*channel]*tally{}}
	for _, c := range channels {
		a.tallies[c] = &tally{}
	}
	return a
}

func (a *account) came(c *channel, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[id] != nil {
		a.wrong = append(a.wrong, fmt.Sprintf("%s came twice", id))
	}
	a.arrived++
	a.open[id] = c
}

// left notes how a contact ended: err is what Wait said.
func (a *account) left(id string, waited time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.open[id]
	if c == nil {
		a.wrong = append(a.wrong, fmt.Sprintf("%s ended, and was not there", id))
		return
	}
	delete(a.open, id)
	t := a.tallies[c]
	switch {
	case err == nil:
		t.served++
		if waited <= c.target {
			t.inTime++
		}
	case errors.Is(err, queue.ErrCanceled):
		t.abandoned++
	default:
		a.wrong = append(a.wrong, fmt.Sprintf("%s: %v", id, err))
	}
}

// note adds something that must not be.
func (a *account) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrong = append(a.wrong, what)
}

// totals are the tallies of a moment.
type totals struct {
	Arrived, Served, Abandoned, Waiting, Running int
	Wrong                                        []string
}

// Missing is how many have come and are nowhere.
func (t totals) Missing() int { return t.Arrived - t.Served - t.Abandoned - t.Waiting - t.Running }

func (t totals) String() string {
	return fmt.Sprintf("%d arrived = %d done + %d abandoned + %d waiting + %d running",
		t.Arrived, t.Served, t.Abandoned, t.Waiting, t.Running)
}

// errLost: the account and the queue do not agree.
var errLost = errors.New("something is lost")

// check compares the account with the queue: each contact whose customer has not heard of its end has to be there. It
// returns the totals, and errLost if they do not add up. After another error the totals mean nothing.
func (a *account) check(ctx context.Context, q *queue.Queue) (totals, error) {
	a.mu.Lock()
	t := totals{Arrived: a.arrived, Wrong: append([]string(nil), a.wrong...)}
	open := make([]string, 0, len(a.open))
	for id := range a.open {
		open = append(open, id)
	}
	for _, tally := range a.tallies {
		t.Served += tally.served
		t.Abandoned += tally.abandoned
	}
	a.mu.Unlock()
	for _, id := range open {
		job, err := q.Look(ctx, id)
		if errors.Is(err, queue.ErrUnknownJob) {
			t.Wrong = append(t.Wrong, err.Error())
			continue
		}
		if err != nil {
			return t, err
		}
		switch job.State {
		case queue.Done:
			t.Served++
		case queue.Canceled:
			t.Abandoned++
		case queue.Running:
			t.Running++
		case queue.Dead:
			t.Wrong = append(t.Wrong, fmt.Sprintf("%s is dead: %s", id, job.Error))
		default:
			t.Waiting++
		}
	}
	if t.Missing() != 0 || len(t.Wrong) > 0 {
		return t, fmt.Errorf("%w: %v, which leaves %d: %v", errLost, t, t.Missing(), t.Wrong)
	}
	return t, nil
}

// level is the tally of a channel.
func (a *account) level(c *channel) tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.tallies[c]
}
