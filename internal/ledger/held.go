package ledger

import (
	"context"
	"time"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// ReweighAnswer holds, for Held: Token and Weight, as the lease has them now. Busy: it stays as it is because more does not
// fit now, with InUse of Limit. Stale: a request with a higher number was there before, and the lease stays as that one
// made it, with Weight.
type ReweighAnswer struct {
	Hold   Hold
	Token  int64
	Weight int
	Stale  bool
	Busy   bool
	InUse  int
	Limit  int
}

// Reweigh runs reweigh.lua once. The holder numbers its requests, 1, 2, 3…, below 2^53, so that one that arrives late
// undoes nothing; asking again with the same number does it once.
func (l *Ledger) Reweigh(
	ctx context.Context, resource *Resource, id string, number int64, weight, limit int,
) (ReweighAnswer, error) {
	reply, err := l.run(ctx, newCall(reweighScript, resource.keys, id, weight, limit, number))
	if err != nil {
		return ReweighAnswer{}, failure("reweigh", resource.Name, err)
	}
	n := numbers(reply)
	switch {
	case len(n) == 3 && n[0] == reweighDone:
		return ReweighAnswer{Hold: Held, Token: n[1], Weight: int(n[2])}, nil
	case len(n) == 1 && (n[0] == int64(Lost) || n[0] == int64(Forced)):
		return ReweighAnswer{Hold: Hold(n[0])}, nil
	case len(n) == 3 && n[0] == reweighBusy:
		return ReweighAnswer{Hold: Held, Busy: true, InUse: int(n[1]), Limit: int(n[2])}, nil
	case len(n) == 2 && n[0] == reweighStale:
		return ReweighAnswer{Hold: Held, Stale: true, Weight: int(n[1])}, nil
	}
	return ReweighAnswer{}, unexpected("reweigh", resource.Name, reply)
}

// The codes of reweigh.lua beside Lost and Forced.
const (
	reweighDone  = 1
	reweighBusy  = 3
	reweighStale = 4
)

// Raise lifts the last token of a resource to at least `token`, as the holder of a lease.
func (l *Ledger) Raise(ctx context.Context, resource *Resource, id string, token int64) (Hold, error) {
	n, err := l.number(ctx, "raise", raiseScript, resource, id, token)
	return Hold(n), err
}

// Replicate renews one lease and waits until `replicas` have that, and so the grant before it, or timeout is over. It
// returns how many have. 0 for timeout would be for ever, and is not.
func (l *Ledger) Replicate(
	ctx context.Context, resource *Resource, lease Renewal, replicas int, timeout time.Duration,
) (hold Hold, acknowledged int, err error) {
	request := RenewRequest{Resource: resource, Leases: []Renewal{lease}}
	wait := transport.Command{Words: []any{"wait", replicas, max(timeout.Milliseconds(), 1)}, Within: l.within}
	replies := l.transport.Together(ctx, []transport.Command{l.byDigest(request.call()), wait})
	if isUnknownScript(replies[0].Err) {
		replies = l.transport.Together(ctx, []transport.Command{l.byText(request.call()), wait})
	}
	for _, reply := range replies {
		if reply.Err != nil {
			return Lost, 0, failure("replicate", resource.Name, reply.Err)
		}
	}
	holds := numbers(replies[0].Value)
	count, ok := replies[1].Value.(int64)
	if len(holds) != 1 || !ok {
		return Lost, 0, unexpected("replicate", resource.Name, replies)
	}
	return Hold(holds[0]), int(count), nil
}
