package ledger

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// What stands beside the permits of a resource: who waits at its barrier and at its latch, and what was taken of its rate.
// These have no record of who waits: the id of a party says it, so that nothing has to be kept in step.

// Party is one that waits at a barrier or a latch.
type Party struct {
	ID      string
	Parties int    // for how many it waits; 0 if its id does not say
	Owner   string // "" if its id does not say
}

// PartyID is the id of a party that says for how many it waits, and who it is. It has no blanks, as a message needs it.
func PartyID(id string, parties int, owner string) string {
	return fmt.Sprintf("%s/%d/%s", id, parties, url.QueryEscape(owner))
}

func readParty(member string) Party {
	id, rest, _ := strings.Cut(member, "/")
	parties, escaped, _ := strings.Cut(rest, "/")
	owner, err := url.QueryUnescape(escaped)
	if err != nil {
		owner = escaped
	}
	return Party{ID: id, Parties: int(integer(parties)), Owner: owner}
}

// Beside is what is in use of a resource besides permits. Who died is listed for two claim times at most.
type Beside struct {
	Arrived   int // at the barrier
	AtBarrier []Party
	Counted   int // at the latch
	Awaiting  int
	AtLatch   []Party
	Rate      time.Duration // until what was taken of the rate is made up for; 0 if it is idle
}

// InUse says whether anybody waits, or has taken something.
func (b *Beside) InUse() bool { return b.Arrived+b.Awaiting > 0 || b.Rate > 0 }

// BesideResult is one answer of BesideAll.
type BesideResult struct {
	Beside
	Err error
}

// BesideAll looks at what is in use of each resource, in one pipeline, with at most `most` parties of each kind, 1 or more. The results
// stand in the order of the resources. O(1) for each, and what is listed.
func (l *Ledger) BesideAll(ctx context.Context, resources []*Resource, most int) []BesideResult {
	const each = 6
	commands := make([]transport.Command, 0, each*len(resources))
	for _, r := range resources {
		key := r.beside("arrived", "counted", "awaiting", "rate")
		for _, words := range [each][]any{
			{"zcard", key[0]},
			{"zrange", key[0], 0, most - 1},
			{"scard", key[1]},
			{"zcard", key[2]},
			{"zrange", key[2], 0, most - 1},
			{"pttl", key[3]},
		} {
			commands = append(commands, transport.Command{Words: words, Key: 1, Within: l.within})
		}
	}
	results := make([]BesideResult, len(resources))
	replies := l.transport.Pipeline(ctx, commands)
	for i, r := range resources {
		results[i] = readBeside(r, replies[each*i:each*(i+1)])
	}
	return results
}

func readBeside(r *Resource, replies []transport.Reply) BesideResult {
	values := make([]any, len(replies))
	for i, reply := range replies {
		if reply.Err != nil {
			return BesideResult{Err: failure("inspect", r.Name, reply.Err)}
		}
		values[i] = reply.Value
	}
	n := numbers([]any{values[0], values[2], values[3], values[5]})
	atBarrier, okBarrier := readParties(values[1])
	atLatch, okLatch := readParties(values[4])
	if n == nil || !okBarrier || !okLatch {
		return BesideResult{Err: unexpected("inspect", r.Name, values)}
	}
	return BesideResult{Beside: Beside{
		Arrived: int(n[0]), AtBarrier: atBarrier, Counted: int(n[1]), Awaiting: int(n[2]), AtLatch: atLatch, Rate: max(ms(n[3]), 0),
	}}
}

func readParties(value any) (parties []Party, ok bool) {
	members, ok := value.([]any)
	for _, member := range members {
		text, isText := member.(string)
		ok = ok && isText
		parties = append(parties, readParty(text))
	}
	return parties, ok
}

// BesideNames calls visit, as Names does, with the names of resources of which something is in use besides permits.
func (l *Ledger) BesideNames(ctx context.Context, visit func(names []string) error) error {
	return l.names(ctx, StatePattern+":[ar]*", func(key string) (string, bool) {
		for _, suffix := range []string{":arrived", ":awaiting", ":rate"} {
			if state, found := strings.CutSuffix(key, suffix); found {
				return NameOf(state)
			}
		}
		return "", false
	}, visit)
}
