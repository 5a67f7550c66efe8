package ledger

import (
	"context"
	"time"
)

// LatchRequest is about a latch of so many parties. Who is the party that counts, or the id that awaits.
type LatchRequest struct {
	Resource *Resource
	Verb     LatchVerb
	Who      string
	Parties  int
	Keep     time.Duration // for which it is remembered after the last count
	Claim    time.Duration
}

// LatchVerb is what to do with a latch.
type LatchVerb string

// The verbs of latch.lua.
const (
	LatchCount LatchVerb = "count"
	LatchAwait LatchVerb = "await"
	LatchLeave LatchVerb = "leave"
	LatchLook  LatchVerb = "look"
)

// Latch runs latch.lua once and returns how many parties are still missing.
func (l *Ledger) Latch(ctx context.Context, r *LatchRequest) (missing int, err error) {
	args := []any{string(r.Verb), r.Who, r.Parties, r.Keep.Milliseconds(), r.Claim.Milliseconds()}
	reply, err := l.run(ctx, call{latchScript, r.Resource.beside("counted", "awaiting"), args})
	if err != nil {
		return 0, failure("latch", r.Resource.Name, err)
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, unexpected("latch", r.Resource.Name, reply)
	}
	return int(n), nil
}

// BarrierAnswer says whether the party has passed, in which round, or how many have arrived.
type BarrierAnswer struct {
	Passed  bool
	Round   int64
	Arrived int
}

// Arrive runs barrier.lua once, for a party that arrives, or still waits.
func (l *Ledger) Arrive(
	ctx context.Context, resource *Resource, id string, parties int, claim time.Duration,
) (BarrierAnswer, error) {
	return l.barrier(ctx, resource, "arrive", id, parties, claim)
}

// Depart takes a party back. It may have passed meanwhile.
func (l *Ledger) Depart(
	ctx context.Context, resource *Resource, id string, parties int, claim time.Duration,
) (BarrierAnswer, error) {
	return l.barrier(ctx, resource, "leave", id, parties, claim)
}

func (l *Ledger) barrier(
	ctx context.Context, resource *Resource, verb, id string, parties int, claim time.Duration,
) (BarrierAnswer, error) {
	args := []any{verb, id, parties, claim.Milliseconds()}
	reply, err := l.run(ctx, call{barrierScript, resource.beside("arrived", "passed"), args})
	if err != nil {
		return BarrierAnswer{}, failure("barrier", resource.Name, err)
	}
	n := numbers(reply)
	switch {
	case len(n) == 2 && n[0] == 1:
		return BarrierAnswer{Passed: true, Round: n[1]}, nil
	case len(n) == 2 && n[0] == 0:
		return BarrierAnswer{Arrived: int(n[1])}, nil
	}
	return BarrierAnswer{}, unexpected("barrier", resource.Name, reply)
}
