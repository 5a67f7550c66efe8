package signalbox

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// MaxParties is the most parties a Latch or Barrier can have.
const MaxParties = 100_000

// Latch is a gate that opens when a number of parties have counted down, and stays open: for the last of many workers to
// start what comes after all of them. It is forgotten a day after the last count (LatchKeep), so a name is for one use. A
// Latch holds no state: any number of goroutines may use one value.
type Latch struct {
	box      *Box
	resource *ledger.Resource
	name     string
	parties  int
	keep     time.Duration
	err      error
}

// LatchOption changes a Latch.
type LatchOption func(*Latch)

// LatchKeep sets for how long a latch is remembered after the last count; 1 s to MaxTTL.
func LatchKeep(d time.Duration) LatchOption {
	return func(l *Latch) { l.keep = d.Truncate(time.Millisecond) }
}

// Latch returns the count-down latch of a name, which opens after so many parties have counted: 1 to MaxParties. What is
// wrong with it is reported by the first call.
func (b *Box) Latch(name string, parties int, options ...LatchOption) *Latch {
	l := &Latch{box: b, name: name, parties: parties, keep: 24 * time.Hour}
	for _, option := range options {
		option(l)
	}
	l.resource, l.err = ledger.NewResource(name)
	switch {
	case l.err != nil:
	case parties < 1 || parties > MaxParties:
		l.err = fmt.Errorf("%w: latch %q: %d parties, must be 1 to %d", ErrInvalid, name, parties, MaxParties)
	case l.keep < time.Second || l.keep > MaxTTL:
		l.err = fmt.Errorf("%w: latch %q: keep %v, must be 1s to %v", ErrInvalid, name, l.keep, MaxTTL)
	}
	return l
}

// CountDown counts a party, such as the number of a worker's share of the work, and returns how many are still missing. A
// party counts once, however often it says so: a worker that was restarted may call it again.
func (l *Latch) CountDown(ctx context.Context, party string) (missing int, err error) {
	if party == "" || len(party) > ledger.MaxNameBytes {
		return 0, fmt.Errorf("latch %q: %w: the party has %d bytes, must be 1 to %d",
			l.name, ErrInvalid, len(party), ledger.MaxNameBytes)
	}
	return l.once(ctx, ledger.LatchCount, party)
}

// Missing returns how many parties have not counted down yet.
func (l *Latch) Missing(ctx context.Context) (int, error) {
	return l.once(ctx, ledger.LatchLook, "")
}

// Await returns when the latch is open. It waits for a message, and asks each third of the claim time.
func (l *Latch) Await(ctx context.Context) error {
	if l.err != nil {
		return fmt.Errorf("await: %w", l.err)
	}
	if err := l.box.enter(); err != nil {
		return fmt.Errorf("await %q: %w", l.name, err)
	}
	defer l.box.tasks.Done()
	id := ledger.PartyID(l.box.newID(), l.parties, l.box.owner)
	return l.box.await(ctx, l.box.newLife(ctx, &latchWait{passage{"await", l.name}, l, id}, acquisition.Terms{Wait: true, Passing: true}, id), nil).err
}

// passage is what the errands of those have in common who ask to be let through.
type passage struct{ verb, resource string }

func (p *passage) name() string  { return p.resource }
func (p *passage) doing() string { return fmt.Sprintf("%s %q", p.verb, p.resource) }

func (p *passage) failure(why *acquisition.Action) error {
	switch why.Why {
	case acquisition.WasClosed:
		return fmt.Errorf("%s: %w", p.doing(), ErrClosed)
	case acquisition.WasForced: // a party that had left comes back, which nobody of this process does
		return fmt.Errorf("%s: %w", p.doing(), ErrForced)
	}
	return why.Err
}

func (p *passage) granted(*Box, *life) outcome { return outcome{} }

// latchWait is the errand of one that awaits a latch.
type latchWait struct {
	passage
	latch *Latch
	id    string
}

func (w *latchWait) request(ctx context.Context, _ *Box, s sending) reply {
	verb := ledger.LatchAwait
	if s.call == acquisition.CallCancel {
		verb = ledger.LatchLeave
	}
	missing, err := w.latch.call(ctx, verb, w.id)
	return passing(missing == 0 && verb == ledger.LatchAwait, err)
}

// passing is the answer to who asks to be let through.
func passing(passed bool, err error) reply {
	switch {
	case err != nil:
		return failed(err)
	case passed:
		return reply{answer: acquisition.Answer{Outcome: acquisition.Granted}}
	}
	return reply{answer: acquisition.Answer{Outcome: acquisition.Waiting, Ahead: acquisition.Unknown}}
}

func (l *Latch) once(ctx context.Context, verb ledger.LatchVerb, who string) (int, error) {
	if l.err != nil {
		return 0, fmt.Errorf("latch: %w", l.err)
	}
	return l.call(ctx, verb, who)
}

func (l *Latch) call(ctx context.Context, verb ledger.LatchVerb, who string) (int, error) {
	if err := l.box.ready(ctx); err != nil {
		return 0, fmt.Errorf("latch %q: %w", l.name, err)
	}
	missing, err := l.box.ledger.Latch(ctx, &ledger.LatchRequest{
		Resource: l.resource, Verb: verb, Who: who, Parties: l.parties, Keep: l.keep, Claim: l.box.claim,
	})
	if err != nil && endOf(ctx) != nil {
		err = fmt.Errorf("latch %q: %w", l.name, endOf(ctx))
	}
	return missing, err
}
