package signalbox

import (
	"context"
	"fmt"
	"time"

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
	id := l.box.newID()
	a, err := l.box.attend(fmt.Sprintf("await %q", l.name), id)
	if err != nil {
		return err
	}
	defer a.leave()
	err = a.run(ctx, func() (time.Duration, bool, error) {
		missing, err := l.call(ctx, ledger.LatchAwait, id)
		return 0, missing == 0 && err == nil, err
	})
	if err != nil {
		l.box.tasks.Add(1) // this is a task
		l.box.patiently(func() {
			ctx, done := context.WithTimeout(context.WithoutCancel(ctx), l.box.claim)
			defer done()
			// The server forgets who is silent by itself, after the claim time.
			_, _ = l.call(ctx, ledger.LatchLeave, id)
		})
	}
	return err
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
	if err != nil && over(ctx) != nil {
		err = fmt.Errorf("latch %q: %w", l.name, over(ctx))
	}
	return missing, err
}
