package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// MaxGroup is how many resources one GroupRequest may name: a script holds up everybody while it runs.
const MaxGroup = 64

// GroupRequest asks for permits of several resources at once, each with an id of its own. Wait 0 means: refuse rather
// than queue.
type GroupRequest struct {
	Places []Place
	TTL    time.Duration
	Wait   time.Duration
	Claim  time.Duration
	Owner  string
	Label  string

	Precedence transport.Precedence
	Waited     time.Duration // set, as in an AcquireRequest
}

// Place is what a GroupRequest asks of one resource.
type Place struct {
	Resource *Resource
	ID       string
	Weight   int
	Limit    int
}

// GroupAnswer holds, by Outcome: Granted: Tokens, in the order of the places. Waiting: Ahead, the most in any queue, and
// Next. Refused: Which, Next, Held, Limit. Barred: Which. Heavy: Which, Limit. Which is the index of a place.
type GroupAnswer struct {
	AcquireAnswer
	Tokens []int64
	Which  int
}

// AcquireGroup runs acquire_group.lua once.
func (l *Ledger) AcquireGroup(ctx context.Context, request *GroupRequest) (GroupAnswer, error) {
	var keys, args []any
	var names []string
	for _, place := range request.Places {
		keys = append(keys, place.Resource.keys...)
		args = append(args, place.ID, place.Weight, place.Limit)
		names = append(names, place.Resource.Name)
	}
	args = append(args, request.TTL.Milliseconds(), request.Wait.Milliseconds(), request.Claim.Milliseconds(),
		person(request.Owner, request.Label))
	c := newCall(acquireGroupScript, keys, args...)
	c.precedence, c.waited = request.Precedence, &request.Waited
	reply, err := l.run(ctx, c)
	if transport.HasPrefix(err, "CROSSSLOT") {
		return GroupAnswer{}, fmt.Errorf("acquire %q: %w: the names lie on different servers of the Cluster: give them a "+
			`hash tag in common, as in "invoice:{42}" and "customer:{42}": %w`, names, ErrInvalid, err)
	}
	if err != nil {
		return GroupAnswer{}, failure("acquire", strings.Join(names, " + "), err)
	}
	if answer, ok := request.answer(reply); ok {
		return answer, nil
	}
	return GroupAnswer{}, unexpected("acquire", strings.Join(names, " + "), reply)
}

func (r *GroupRequest) answer(reply any) (GroupAnswer, bool) {
	n := numbers(reply)
	if len(n) == 0 {
		return GroupAnswer{}, false
	}
	a := GroupAnswer{AcquireAnswer: AcquireAnswer{Outcome: Outcome(n[0])}}
	switch {
	case a.Outcome == Granted && len(n) == 2+len(r.Places):
		a.NowMs, a.Tokens = n[1], n[2:]
		return a, true
	case a.Outcome == Waiting && len(n) == 4:
		a.Ahead, a.Next, a.NowMs = int(n[1]), ms(n[2]), n[3]
		return a, true
	}
	if len(n) < 2 || n[1] < 1 || n[1] > int64(len(r.Places)) {
		return GroupAnswer{}, false
	}
	a.Which = int(n[1]) - 1
	switch {
	case a.Outcome == Refused && len(n) == 5:
		a.Next, a.Held, a.Limit = ms(n[2]), int(n[3]), int(n[4])
	case a.Outcome == Barred && len(n) == 2:
	case a.Outcome == Heavy && len(n) == 3:
		a.Limit = int(n[2])
	default:
		return GroupAnswer{}, false
	}
	return a, true
}
