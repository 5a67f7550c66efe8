// Package ledger is the permit ledger: the one state machine behind every lock, semaphore and election of Signalbox.
//
// A resource is a key, or up to four under one hash tag; prelude.lua describes them. Each .lua file beside this one is one
// transition, atomic on the server and timed by the server's clock. The Go here does no more than call them: it puts
// requests into arguments, answers into structs, and server errors into a few sentinels that say whether asking again
// can help. It keeps no state besides the transport, so everything may be called from any number of goroutines.
//
// To add a transition: one .lua file with the header every other has, one line in script.go and one in library.go, one
// typed call here.
package ledger

import (
	"context"
	"time"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// MaxLimit is the highest limit of a resource and the highest weight of a lease.
const MaxLimit = 1<<31 - 1

// MaxBatch is how many leases or waiters one request may be about: as much as a script does in a moment.
const MaxBatch = 500

// Ledger calls the transitions on one server, Sentinel group or Cluster.
type Ledger struct {
	transport transport.Transport
	within    time.Duration
}

// New returns the ledger kept by the servers that t reaches.
func New(t transport.Transport) *Ledger {
	return &Ledger{transport: t}
}

// Within is the same ledger, for whose commands this is how long the answer may take once they are on their way; 0: as
// the client and the context allow.
func (l *Ledger) Within(d time.Duration) *Ledger {
	return &Ledger{transport: l.transport, within: d}
}

// AcquireRequest asks for Weight of Limit permits. Wait 0 means: refuse rather than queue.
type AcquireRequest struct {
	Resource *Resource
	ID       string
	Weight   int
	Limit    int
	TTL      time.Duration
	Wait     time.Duration
	Claim    time.Duration
	Terms    Terms
	Owner    string
	Label    string

	Precedence transport.Precedence
	Waited     time.Duration // set: for how long it stood in a queue of this process before it was sent
}

// Outcome says what became of an AcquireRequest.
type Outcome int

// The outcomes are the codes acquire.lua returns.
const (
	Granted Outcome = 1 + iota
	Waiting
	Refused
	Barred // the id was cancelled or forced
	Heavy  // the weight can never fit the limit
)

// AcquireAnswer holds, by Outcome: Granted: Token, Now. Waiting: Ahead, Next, Now. Refused: Next, Held, Limit.
// Heavy: Limit. Now is the ledger's time in ms, which goes on when the server's clock goes back, Next the time until the earliest lease expires.
type AcquireAnswer struct {
	Outcome Outcome
	Token   int64
	Ahead   int
	Next    time.Duration
	NowMs   int64
	Held    int
	Limit   int
}

// Acquire runs acquire.lua once.
func (l *Ledger) Acquire(ctx context.Context, request *AcquireRequest) (AcquireAnswer, error) {
	reply, err := l.run(ctx, request.call())
	if err != nil {
		return AcquireAnswer{}, failure("acquire", request.Resource.Name, err)
	}
	return request.answer(reply)
}

// AcquireResult is one answer of AcquireAll.
type AcquireResult struct {
	AcquireAnswer
	Err error
}

// AcquireAll runs acquire.lua for each request in one pipeline. The results stand in the order of the requests.
func (l *Ledger) AcquireAll(ctx context.Context, requests []*AcquireRequest) []AcquireResult {
	calls := make([]call, len(requests))
	for i, request := range requests {
		calls[i] = request.call()
	}
	results := make([]AcquireResult, len(requests))
	for i, reply := range l.runAll(ctx, calls) {
		if reply.Err != nil {
			results[i].Err = failure("acquire", requests[i].Resource.Name, reply.Err)
			continue
		}
		results[i].AcquireAnswer, results[i].Err = requests[i].answer(reply.Value)
	}
	return results
}

func (r *AcquireRequest) call() call {
	c := newCall(acquireScript, r.Resource.keys,
		r.ID, r.Weight, r.Limit, r.TTL.Milliseconds(), r.Wait.Milliseconds(), r.Claim.Milliseconds(), r.Terms.word(),
		person(r.Owner, r.Label),
	)
	c.precedence, c.waited = r.Precedence, &r.Waited
	return c
}

func (r *AcquireRequest) answer(reply any) (AcquireAnswer, error) {
	n := numbers(reply)
	switch {
	case len(n) == 3 && n[0] == int64(Granted):
		return AcquireAnswer{Outcome: Granted, Token: n[1], NowMs: n[2]}, nil
	case len(n) == 4 && n[0] == int64(Waiting):
		return AcquireAnswer{Outcome: Waiting, Ahead: int(n[1]), Next: ms(n[2]), NowMs: n[3]}, nil
	case len(n) == 4 && n[0] == int64(Refused):
		return AcquireAnswer{Outcome: Refused, Next: ms(n[1]), Held: int(n[2]), Limit: int(n[3])}, nil
	case len(n) == 1 && n[0] == int64(Barred):
		return AcquireAnswer{Outcome: Barred}, nil
	case len(n) == 2 && n[0] == int64(Heavy):
		return AcquireAnswer{Outcome: Heavy, Limit: int(n[1])}, nil
	}
	return AcquireAnswer{}, unexpected("acquire", r.Resource.Name, reply)
}

// Hold says whether a lease is still held.
type Hold int

// The codes of release.lua and renew.lua.
const (
	Lost   Hold = 0 // it expired, was released, or never was
	Held   Hold = 1 // it was held: it is renewed now, or released
	Forced Hold = 2 // it was ended by Force
	Wanted Hold = 3 // it was held and is renewed, and somebody waits
)

// Release ends the lease of an id. Held means that this call ended it.
func (l *Ledger) Release(ctx context.Context, resource *Resource, id string) (Hold, error) {
	n, err := l.number(ctx, "release", releaseScript, resource, id)
	return Hold(n), err
}

// Renewal asks for TTL more from now on. Cool is the one of the lease's Terms.
type Renewal struct {
	ID   string
	TTL  time.Duration
	Cool time.Duration
}

// RenewRequest renews up to MaxBatch leases of one resource. Waited is set as in an AcquireRequest.
type RenewRequest struct {
	Resource *Resource
	Leases   []Renewal
	Waited   time.Duration
}

// RenewResult holds an answer for each lease of the request, or the error of all.
type RenewResult struct {
	Holds []Hold
	Err   error
}

// RenewAll runs renew.lua for each request in one pipeline. The results stand in the order of the requests.
func (l *Ledger) RenewAll(ctx context.Context, requests []RenewRequest) []RenewResult {
	calls := make([]call, len(requests))
	for i := range requests {
		calls[i] = requests[i].call()
	}
	results := make([]RenewResult, len(requests))
	for i, reply := range l.runAll(ctx, calls) {
		name := requests[i].Resource.Name
		if reply.Err != nil {
			results[i].Err = failure("renew", name, reply.Err)
			continue
		}
		n := numbers(reply.Value)
		if len(n) != len(requests[i].Leases) {
			results[i].Err = unexpected("renew", name, reply.Value)
			continue
		}
		for _, hold := range n {
			results[i].Holds = append(results[i].Holds, Hold(hold))
		}
	}
	return results
}

func (r *RenewRequest) call() call {
	args := make([]any, 0, 3*len(r.Leases))
	for _, lease := range r.Leases {
		args = append(args, lease.ID, lease.TTL.Milliseconds(), lease.Cool.Milliseconds())
	}
	c := newCall(renewScript, r.Resource.keys, args...)
	c.waited = &r.Waited
	return c
}

// Cancelled says what an acquisition was when Cancel took it back.
type Cancelled int

// The codes of cancel.lua.
const (
	WasUnknown Cancelled = iota
	WasWaiting
	WasHeld
)

// Cancel takes an acquisition back in whatever state it is, and bars its id for the time given.
func (l *Ledger) Cancel(ctx context.Context, resource *Resource, id string, bar time.Duration) (Cancelled, error) {
	n, err := l.number(ctx, "cancel", cancelScript, resource, id, bar.Milliseconds(), 0)
	return Cancelled(n), err
}

// Resize sets the operator's limit, or clears it if limit is 0, and returns the one before, 0 if none.
func (l *Ledger) Resize(ctx context.Context, resource *Resource, limit int) (int, error) {
	n, err := l.number(ctx, "resize", resizeScript, resource, limit)
	return int(n), err
}

// Force ends the lease, or the waiting, of an id and bars it for the time given, or for its ttl if that is longer.
// It returns how many were ended: 0 or 1.
func (l *Ledger) Force(ctx context.Context, resource *Resource, id string, bar time.Duration) (int, error) {
	n, err := l.number(ctx, "force", forceScript, resource, id, bar.Milliseconds())
	return int(n), err
}

// ForceAll ends every lease and returns how many there were. Above forceBatch of them, those granted meanwhile to
// waiters may be among them.
func (l *Ledger) ForceAll(ctx context.Context, resource *Resource, bar time.Duration) (int, error) {
	for ended := 0; ; {
		n, err := l.number(ctx, "force", forceScript, resource, "", bar.Milliseconds())
		ended += int(n)
		if err != nil || n < forceBatch {
			return ended, err
		}
	}
}

// forceBatch is how many leases force.lua ends in one call.
const forceBatch = 1000

func (l *Ledger) number(ctx context.Context, verb string, s *script, resource *Resource, args ...any) (int64, error) {
	reply, err := l.run(ctx, newCall(s, resource.keys, args...))
	return whole(verb, resource, transport.Reply{Value: reply, Err: err})
}

// whole reads the reply of a transition that returns one number.
func whole(verb string, resource *Resource, reply transport.Reply) (int64, error) {
	if reply.Err != nil {
		return 0, failure(verb, resource.Name, reply.Err)
	}
	n, ok := reply.Value.(int64)
	if !ok {
		return 0, unexpected(verb, resource.Name, reply.Value)
	}
	return n, nil
}

// numbers returns the integers of an array reply, nil if it is anything else.
func numbers(reply any) []int64 {
	elements, ok := reply.([]any)
	if !ok {
		return nil
	}
	n := make([]int64, len(elements))
	for i, element := range elements {
		if n[i], ok = element.(int64); !ok {
			return nil
		}
	}
	return n
}

// longestMs is more than any time that a script answers with a meaning.
const longestMs = 1 << 42

func ms(n int64) time.Duration {
	return time.Duration(min(max(n, -longestMs), longestMs)) * time.Millisecond // more would overflow
}
