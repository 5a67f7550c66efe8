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
	reply, err := l.run(ctx, newCall(latchScript, r.Resource.beside("counted", "awaiting"), args...))
	if err != nil {
		return 0, failure("latch", r.Resource.Name, err)
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, unexpected("latch", r.Resource.Name, reply)
	}
	return int(n), nil
}

// BarrierAnswer says whether the party has passed, in which round, or how many have arrived. Barred: it has left.
type BarrierAnswer struct {
	Passed  bool
	Barred  bool
	Round   int64
	Arrived int
}

// The codes of barrier.lua.
const (
	barrierWaiting = iota
	barrierPasses
	barrierBarred
)

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
	reply, err := l.run(ctx, newCall(barrierScript, resource.beside("arrived", "passed", "left"), args...))
	if err != nil {
		return BarrierAnswer{}, failure("barrier", resource.Name, err)
	}
	n := numbers(reply)
	switch {
	case len(n) == 2 && n[0] == barrierPasses:
		return BarrierAnswer{Passed: true, Round: n[1]}, nil
	case len(n) == 2 && n[0] == barrierWaiting:
		return BarrierAnswer{Arrived: int(n[1])}, nil
	case len(n) == 1 && n[0] == barrierBarred:
		return BarrierAnswer{Barred: true}, nil
	}
	return BarrierAnswer{}, unexpected("barrier", resource.Name, reply)
}
