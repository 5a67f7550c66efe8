package signalbox

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// permit is the errand of an acquisition of one resource, until nothing of it is left on the server.
type permit struct {
	resource *ledger.Resource
	id       string
	label    string
	limit    int
	weight   int
	ttl      time.Duration
	agreed   ledger.Terms
	shared   bool            // by Reentrant
	parent   context.Context // of the acquisition, for its values
	heard    heard
}

// heard is what the last heartbeat that named a waiter was told. Held by the box's mu.
type heard struct {
	at      acquisition.Instant // when it was sent
	version int64               // of the queue, 0 if there is none to compare with
	head    bool
}

func (p *permit) name() string  { return p.resource.Name }
func (p *permit) doing() string { return fmt.Sprintf("acquire %q", p.resource.Name) }

func (p *permit) failure(why *acquisition.Action) error { return p.explain("acquire", why) }

// explain puts the reason of an outcome into words.
func (p *permit) explain(verb string, why *acquisition.Action) error {
	name := p.resource.Name
	switch why.Why {
	case acquisition.Well:
		return nil
	case acquisition.IsBusy:
		return &BusyError{name, why.Answer.Next, why.Answer.InUse, why.Answer.Limit}
	case acquisition.IsHeavy:
		return tooHeavy(name, p.weight, why.Answer.Limit)
	case acquisition.WasForced:
		return &outcomeError{verb, name, ErrForced}
	case acquisition.WasClosed:
		return &outcomeError{verb, name, ErrClosed}
	case acquisition.WasReleased:
		return &outcomeError{verb, name, ErrReleased}
	case acquisition.HadExpired:
		return fmt.Errorf("%s %q: %w: it had expired on the server", verb, name, ErrLeaseLost)
	case acquisition.Unrenewed:
		if why.Err != nil {
			return fmt.Errorf("%s %q: %w: it could not be renewed in time: %w", verb, name, ErrLeaseLost, why.Err)
		}
		return fmt.Errorf("%s %q: %w: it could not be renewed in time", verb, name, ErrLeaseLost)
	case acquisition.CameLate:
		return fmt.Errorf("%s %q: %w: the answer took longer than the lease lasts; give it a longer ttl than %v",
			verb, name, ErrUnavailable, p.ttl)
	case acquisition.InDoubt:
		return fmt.Errorf("%s %q: %w: nobody knows whether it was done: until the server has answered, the lease has the "+
			"smaller weight: %w", verb, name, ErrUnavailable, why.Err)
	default:
		return why.Err // the ledger's, with verb and name
	}
}

// outcomeError says how something ended that did nothing wrong. Each lease ends so: its text is made when somebody asks for it.
type outcomeError struct {
	verb, name string
	why        error
}

func (e *outcomeError) Error() string { return fmt.Sprintf("%s %q: %v", e.verb, e.name, e.why) }

func (e *outcomeError) Unwrap() error { return e.why }

func tooHeavy(name string, weight, limit int) error {
	return fmt.Errorf("acquire %q: %w: weight %d of limit %d", name, ErrTooHeavy, weight, limit)
}

// granted makes the lease. Called with the box's mu held.
func (p *permit) granted(b *Box, l *life) outcome {
	l.lease = newLease(b, l, p, l.machine.Token())
	return outcome{lease: l.lease}
}

func (p *permit) request(ctx context.Context, b *Box, s sending) reply {
	switch s.call {
	case acquisition.CallAcquire:
		if err := b.checkServer(ctx); err != nil {
			return reply{err: fmt.Errorf("%s: %w", p.doing(), err), undone: true}
		}
		asked := p.acquireRequest(b, &s)
		answer, err := b.asking.Acquire(ctx, asked)
		return acquired(answer, err).after(asked.Waited)
	case acquisition.CallReweigh:
		r := reweighed(b.background.Reweigh(ctx, p.resource, p.id, s.number, s.weight, p.limit))
		r.left = ctx.Err() != nil
		return r
	case acquisition.CallRelease:
		if ctx.Err() != nil && b.stopping.Err() == nil { // it had ended before, which makes no difference
			ctx = context.WithoutCancel(ctx)
		}
		r := p.release(ctx, b, s.during)
		r.left = ctx.Err() != nil
		return r
	case acquisition.CallCancel:
		result := b.background.CancelAll(ctx, []ledger.CancelRequest{p.cancelRequest(s.during)})[0]
		return held(ledger.Held, result.Err)
	default:
		return reply{err: fmt.Errorf("%s: %w: no request for %v", p.doing(), ErrInvalid, s.call), undone: true}
	}
}

func (p *permit) release(ctx context.Context, b *Box, bar time.Duration) reply {
	if bar == 0 {
		return held(b.background.Release(ctx, p.resource, p.id))
	}
	result := b.background.ReleaseAll(ctx, []ledger.ReleaseRequest{p.releaseRequest(bar)})[0]
	return held(result.Hold, result.Err)
}

func (p *permit) acquireRequest(b *Box, s *sending) *ledger.AcquireRequest {
	return &ledger.AcquireRequest{
		Resource: p.resource, ID: p.id, Weight: p.weight, Limit: p.limit, TTL: p.ttl, Wait: s.during, Claim: b.claim,
		Terms: p.agreed, Owner: b.owner, Label: p.label, Precedence: precedences[s.rank],
	}
}

// precedences is in which order questions go where not all can.
var precedences = [...]transport.Precedence{
	acquisition.Turn: transport.First, acquisition.Place: transport.Second, acquisition.Anew: transport.Last,
}

func (p *permit) releaseRequest(bar time.Duration) ledger.ReleaseRequest {
	return ledger.ReleaseRequest{Resource: p.resource, ID: p.id, Bar: bar}
}

func (p *permit) cancelRequest(bar time.Duration) ledger.CancelRequest {
	return ledger.CancelRequest{Resource: p.resource, ID: p.id, Bar: bar}
}

func (p *permit) renewal() ledger.Renewal {
	return ledger.Renewal{ID: p.id, TTL: p.ttl, Cool: p.agreed.Cool}
}

// The answers of the ledger in the words of the machine.

func failed(err error) reply { return reply{err: err, undone: ledger.Undone(err)} }

// after is a reply to a request that stood in a queue of this process before it was sent.
func (r reply) after(waited time.Duration) reply {
	r.waited = waited
	return r
}

var acquireOutcomes = map[ledger.Outcome]acquisition.Outcome{
	ledger.Granted: acquisition.Granted, ledger.Waiting: acquisition.Waiting, ledger.Refused: acquisition.Refused,
	ledger.Barred: acquisition.Barred, ledger.Heavy: acquisition.Heavy,
}

func acquired(a ledger.AcquireAnswer, err error) reply {
	if err != nil {
		return failed(err)
	}
	return reply{answer: acquisition.Answer{
		Outcome: acquireOutcomes[a.Outcome], Token: a.Token, Ahead: a.Ahead, Next: min(max(a.Next, 0), MaxTTL), NowMs: a.NowMs, InUse: a.Held,
		Limit: a.Limit,
	}}
}

var holds = map[ledger.Hold]acquisition.Outcome{
	ledger.Held: acquisition.Kept, ledger.Wanted: acquisition.KeptWanted, ledger.Lost: acquisition.Gone,
	ledger.Forced: acquisition.Expelled,
}

func held(hold ledger.Hold, err error) reply {
	if err != nil {
		return failed(err)
	}
	return reply{answer: acquisition.Answer{Outcome: holds[hold]}}
}

func reweighed(a ledger.ReweighAnswer, err error) reply {
	switch {
	case err != nil:
		return failed(err)
	case a.Busy:
		return reply{answer: acquisition.Answer{Outcome: acquisition.Refused, InUse: a.InUse, Limit: a.Limit}}
	case a.Stale: // somebody else speaks for this lease
		return reply{answer: acquisition.Answer{Outcome: acquisition.Gone}}
	}
	return reply{answer: acquisition.Answer{Outcome: holds[a.Hold], Token: a.Token}}
}
