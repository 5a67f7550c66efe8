package ledger

import (
	"context"
	"fmt"
	"time"
)

// Claims is for how many claim times a heartbeat with a Process counts, if within each the process says that it is there.
const Claims = 10

// HeartbeatRequest says that up to MaxBatch waiters of one resource are alive, for Claim from now on. With the Process
// that they are of it counts for longer: see StillRequest. Waited is set as in an AcquireRequest.
type HeartbeatRequest struct {
	Resource *Resource
	IDs      []string
	Claim    time.Duration
	Process  string
	Waited   time.Duration
}

// HeartbeatResult says what became of them. Next is when it is worth asking again, as in an AcquireAnswer. Head is the
// index of the id at the head of the queue, -1 if it is none of them. Gone are the indexes of those that do not wait: each
// asks by Acquire what became of it. Version is that of the queue, for StillRequest, if a Process was named.
type HeartbeatResult struct {
	NowMs   int64
	Next    time.Duration
	Head    int
	Gone    []int
	Version int64
	Err     error
}

// HeartbeatAll runs heartbeat.lua for each request in one pipeline. The results stand in the order of the requests.
func (l *Ledger) HeartbeatAll(ctx context.Context, requests []HeartbeatRequest) []HeartbeatResult {
	calls := make([]call, len(requests))
	for i := range requests {
		calls[i] = requests[i].call()
	}
	results := make([]HeartbeatResult, len(requests))
	for i, reply := range l.runAll(ctx, calls) {
		if reply.Err != nil {
			results[i].Err = failure("heartbeat", requests[i].Resource.Name, reply.Err)
			continue
		}
		results[i] = requests[i].answer(reply.Value)
	}
	return results
}

func (r *HeartbeatRequest) call() call {
	args := make([]any, 0, 1+len(r.IDs))
	if r.Process == "" {
		args = append(args, r.Claim.Milliseconds())
	} else {
		args = append(args, fmt.Sprintf("%d,%s", r.Claim.Milliseconds(), r.Process))
	}
	for _, id := range r.IDs {
		args = append(args, id)
	}
	c := newCall(heartbeatScript, r.Resource.keys, args...)
	c.waited = &r.Waited
	return c
}

func (r *HeartbeatRequest) answer(reply any) HeartbeatResult {
	n := numbers(reply)
	least := 3
	if r.Process != "" {
		least = 4
	}
	if len(n) < least || n[2] < 0 || n[2] > int64(len(r.IDs)) {
		return HeartbeatResult{Err: unexpected("heartbeat", r.Resource.Name, reply)}
	}
	result := HeartbeatResult{NowMs: n[0], Next: ms(n[1]), Head: int(n[2]) - 1}
	if r.Process != "" {
		result.Version = n[3]
	}
	for _, place := range n[least:] {
		if place < 1 || place > int64(len(r.IDs)) {
			return HeartbeatResult{Err: unexpected("heartbeat", r.Resource.Name, reply)}
		}
		result.Gone = append(result.Gone, int(place)-1)
	}
	return result
}

// StillRequest says that a process is there, of which each waiter of the resource stood in a HeartbeatRequest within Claims
// claim times, the last of which was told the Version. Waited is set as in an AcquireRequest.
type StillRequest struct {
	Resource *Resource
	Process  string
	Claim    time.Duration
	Version  int64
	Waited   time.Duration
}

// StillResult says with Same that none of those waiters has left the queue, and that its head is the same. Else a heartbeat
// tells.
type StillResult struct {
	Same  bool
	NowMs int64
	Next  time.Duration
	Err   error
}

// StillAll runs still.lua for each request in one pipeline. The results stand in the order of the requests.
func (l *Ledger) StillAll(ctx context.Context, requests []StillRequest) []StillResult {
	calls := make([]call, len(requests))
	for i := range requests {
		r := &requests[i]
		calls[i] = newCall(stillScript, r.Resource.keys, r.Claim.Milliseconds(), r.Process, r.Version)
		calls[i].waited = &r.Waited
	}
	results := make([]StillResult, len(requests))
	for i, reply := range l.runAll(ctx, calls) {
		name := requests[i].Resource.Name
		n := numbers(reply.Value)
		switch {
		case reply.Err != nil:
			results[i].Err = failure("heartbeat", name, reply.Err)
		case n != nil && len(n) == 0:
		case len(n) == 2:
			results[i] = StillResult{Same: true, NowMs: n[0], Next: ms(n[1])}
		default:
			results[i].Err = unexpected("heartbeat", name, reply.Value)
		}
	}
	return results
}

// ReleaseRequest ends the lease of an id. Bar above 0 says that an acquire of it may still be under way: the id is barred
// for so long.
type ReleaseRequest struct {
	Resource *Resource
	ID       string
	Bar      time.Duration
}

// ReleaseResult is one answer of ReleaseAll: Held means that this call ended the lease. With a Bar it is never Forced.
type ReleaseResult struct {
	Hold Hold
	Err  error
}

// ReleaseAll releases in one pipeline. The results stand in the order of the requests.
func (l *Ledger) ReleaseAll(ctx context.Context, requests []ReleaseRequest) []ReleaseResult {
	calls := make([]call, len(requests))
	for i, r := range requests {
		if r.Bar > 0 {
			calls[i] = newCall(cancelScript, r.Resource.keys, r.ID, r.Bar.Milliseconds(), 1)
		} else {
			calls[i] = newCall(releaseScript, r.Resource.keys, r.ID)
		}
	}
	results := make([]ReleaseResult, len(requests))
	for i, reply := range l.runAll(ctx, calls) {
		n, err := whole("release", requests[i].Resource, reply)
		switch {
		case err != nil:
			results[i].Err = err
		case requests[i].Bar == 0:
			results[i].Hold = Hold(n)
		case Cancelled(n) == WasHeld:
			results[i].Hold = Held
		}
	}
	return results
}

// CancelRequest takes an acquisition back in whatever state it is, and bars its id for the time given.
type CancelRequest struct {
	Resource *Resource
	ID       string
	Bar      time.Duration
}

// CancelResult is one answer of CancelAll.
type CancelResult struct {
	Was Cancelled
	Err error
}

// CancelAll runs cancel.lua for each request in one pipeline. The results stand in the order of the requests.
func (l *Ledger) CancelAll(ctx context.Context, requests []CancelRequest) []CancelResult {
	calls := make([]call, len(requests))
	for i, r := range requests {
		calls[i] = newCall(cancelScript, r.Resource.keys, r.ID, r.Bar.Milliseconds(), 0)
	}
	results := make([]CancelResult, len(requests))
	for i, reply := range l.runAll(ctx, calls) {
		n, err := whole("cancel", requests[i].Resource, reply)
		results[i] = CancelResult{Cancelled(n), err}
	}
	return results
}
