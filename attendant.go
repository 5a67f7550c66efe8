package signalbox

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// An attendant is a caller who waits for something that is no single permit: several resources, a latch, a barrier. It
// asks in the caller's own goroutine: at once, when a message says that it is worth it, when the answer said so, and as a
// heartbeat each third of the claim time. Leases and single permits, of which there may be thousands, go through the
// keeper instead.
type attendant struct {
	box     *Box
	doing   string // for errors: the verb and the name
	ids     []string
	patient bool // tries again for as long as a waiter would
	heard   chan message
}

// attend makes the box's messages for the ids come to a. The caller has entered the box, and ends with a.leave.
func (b *Box) attend(doing string, ids ...string) (*attendant, error) {
	a := &attendant{box: b, doing: doing, ids: ids, patient: true, heard: make(chan message, 1)}
	for _, id := range ids {
		if !b.join(id, a) {
			a.leave()
			return nil, fmt.Errorf("%s: %w", doing, ErrClosed)
		}
	}
	b.inbox.open()
	return a, nil
}

func (a *attendant) leave() {
	for _, id := range a.ids {
		a.box.part(id, a)
	}
}

// hear keeps the latest message only: each means "ask", and the answer says the rest.
func (a *attendant) hear(m message) {
	select {
	case <-a.heard:
	default:
	}
	select {
	case a.heard <- m:
	default: // somebody else's message got in between, and means the same
	}
}

func (a *attendant) shut() {} // run hears box.closing by itself

// run asks until ask says that it is done, or the caller gives up, or the server has not answered for the claim time.
// ask returns when it is worth asking again, 0 for the next heartbeat.
func (a *attendant) run(ctx context.Context, ask func() (next time.Duration, done bool, err error)) error {
	claim := a.box.claim
	for answered := time.Now(); ; {
		if over(ctx) != nil {
			return fmt.Errorf("%s: %w", a.doing, over(ctx))
		}
		round := a.box.inbox.round.Load()
		next, done, err := ask()
		pause := claim / 3
		switch {
		case err != nil && (!a.patient || !ledger.Retryable(err) || time.Since(answered) > claim):
			if over(ctx) != nil {
				return fmt.Errorf("%s: %w", a.doing, over(ctx))
			}
			return err
		case err != nil:
			pause = backoff(claim)
		case done:
			return nil
		default:
			answered = time.Now()
			if next > 0 {
				pause = min(pause, next+time.Millisecond)
			}
			if now := a.box.inbox.round.Load(); now != 0 && now != round { // a message may have gone by
				pause = 0
			}
		}
		if err := a.pause(ctx, pause); err != nil {
			return err
		}
	}
}

// pause waits, for a while or until a message says that it is worth asking. No message makes it longer.
func (a *attendant) pause(ctx context.Context, during time.Duration) error {
	until := time.Now().Add(during)
	timer := time.NewTimer(during)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case m := <-a.heard:
			after := time.Duration(0)
			if m.verb == "ask" {
				after = time.Duration(m.number[0]) * time.Millisecond
			}
			timer.Reset(min(time.Until(until), after))
		case <-ctx.Done():
			return nil // run says so
		case <-a.box.closing:
			return fmt.Errorf("%s: %w", a.doing, ErrClosed)
		}
	}
}

// nudge has every attendant ask: the inbox has just opened, and messages may have gone by.
func (b *Box) nudge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.members {
		if a, ok := m.(*attendant); ok {
			a.hear(message{verb: "ask"})
		}
	}
}
