package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// State is what inspect.lua returns of a resource.
type State struct {
	Now      time.Time // the ledger's: the server's clock, if that never went back
	Limit    int       // the last a caller stated, 0 if none
	Operator int       // the operator's, 0 if none
	Token    int64     // of the last grant
	Held     int       // sum of the weights of all leases
	Leases   int       // how many there are
	Waiters  int
	Holders  []Entry // by the time they expire
	Queue    []Entry // in their order
}

// Entry is a lease or a waiter.
type Entry struct {
	ID       string
	Owner    string
	Label    string
	Weight   int
	Token    int64         // of a lease
	Limit    int           // that a waiter stated
	Pace     time.Duration // that a waiter wants between grants, 0 if none
	Group    bool          // a waiter that waits for other resources too
	Resting  bool          // a lease that has ended, and whose permits are not granted yet
	Since    time.Time
	TTL      time.Duration
	Deadline time.Time // when the lease expires; by when the waiter must be heard from
}

// Inspect returns the state of a resource with at most `most` holders and as many waiters.
func (l *Ledger) Inspect(ctx context.Context, resource *Resource, most int) (State, error) {
	value, err := l.run(ctx, newCall(inspectScript, resource.keys, most))
	if err != nil {
		return State{}, failure("inspect", resource.Name, err)
	}
	return readState(resource, value)
}

// InspectResult is one answer of InspectAll.
type InspectResult struct {
	State
	Err error
}

// InspectAll returns the numbers of each resource, in one pipeline, without holders and waiters. The results stand in the
// order of the resources.
func (l *Ledger) InspectAll(ctx context.Context, resources []*Resource) []InspectResult {
	calls := make([]call, len(resources))
	for i, resource := range resources {
		calls[i] = newCall(inspectScript, resource.keys, 0)
	}
	results := make([]InspectResult, len(resources))
	for i, reply := range l.runAll(ctx, calls) {
		if reply.Err != nil {
			results[i].Err = failure("inspect", resources[i].Name, reply.Err)
			continue
		}
		results[i].State, results[i].Err = readState(resources[i], reply.Value)
	}
	return results
}

func readState(resource *Resource, value any) (State, error) {
	elements, ok := value.([]any)
	if !ok || len(elements) != 9 {
		return State{}, unexpected("inspect", resource.Name, value)
	}
	n := numbers(elements[:7])
	holders, okHolders := readEntries(elements[7], leaseEntry)
	queue, okQueue := readEntries(elements[8], waiterEntry)
	if n == nil || !okHolders || !okQueue {
		return State{}, unexpected("inspect", resource.Name, value)
	}
	return State{
		Now: time.UnixMilli(n[0]), Limit: int(n[1]), Operator: int(n[2]), Token: n[3],
		Held: int(n[4]), Leases: int(n[5]), Waiters: int(n[6]), Holders: holders, Queue: queue,
	}, nil
}

// readEntries reads {id, record, ms, ...}. A record that is lost leaves an entry with no more than its id.
func readEntries(value any, read func(record string) Entry) ([]Entry, bool) {
	elements, ok := value.([]any)
	if !ok || len(elements)%3 != 0 {
		return nil, false
	}
	entries := make([]Entry, 0, len(elements)/3)
	for i := 0; i < len(elements); i += 3 {
		id, okID := elements[i].(string)
		record, okRecord := elements[i+1].(string)
		deadline, okDeadline := elements[i+2].(int64)
		if !okID || !okRecord || !okDeadline {
			return nil, false
		}
		entry := read(record)
		entry.ID, entry.Deadline = id, time.UnixMilli(deadline)
		entry.Resting = strings.HasPrefix(id, "!")
		entries = append(entries, entry)
	}
	return entries, true
}

// leaseEntry reads "L weight token sinceMs ttlMs terms owner".
func leaseEntry(record string) Entry {
	part := strings.SplitN(record, " ", 7)
	if len(part) < 7 {
		return Entry{}
	}
	owner, label, _ := strings.Cut(part[6], "\t")
	return Entry{
		Weight: int(integer(part[1])), Token: integer(part[2]), Since: time.UnixMilli(integer(part[3])),
		TTL: ms(integer(part[4])), Owner: owner, Label: label,
	}
}

// waiterEntry reads "W weight limit sinceMs ttlMs claimMs terms owner".
func waiterEntry(record string) Entry {
	part := strings.SplitN(record, " ", 8)
	if len(part) < 8 {
		return Entry{}
	}
	owner, label, _ := strings.Cut(part[7], "\t")
	entry := Entry{
		Weight: int(integer(part[1])), Limit: int(integer(part[2])), Since: time.UnixMilli(integer(part[3])),
		TTL: ms(integer(part[4])), Owner: owner, Label: label,
	}
	for term := range strings.SplitSeq(part[6], ",") { // see prelude.lua
		if pace, ok := strings.CutPrefix(term, "p"); ok {
			interval, _, _ := strings.Cut(pace, ":")
			entry.Pace = time.Duration(integer(interval)) * time.Microsecond
		}
		entry.Group = entry.Group || term == "g"
	}
	return entry
}

// integer reads a number that a script wrote; 0 if somebody else did.
func integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Names calls visit with the names of all resources that have a state, some perhaps twice, in no order. In a Cluster
// it asks every primary. visit is never called by two goroutines at once.
func (l *Ledger) Names(ctx context.Context, visit func(names []string) error) error {
	return l.names(ctx, StatePattern, NameOf, visit)
}

// names visits the names that nameOf finds in the keys which match a pattern.
func (l *Ledger) names(ctx context.Context, pattern string, nameOf func(key string) (string, bool), visit func(names []string) error) error {
	err := l.transport.EachPrimary(ctx, func(ctx context.Context, server transport.Doer) error {
		return scan(ctx, server, pattern, nameOf, visit)
	})
	if err != nil {
		return classify("list the resources", err)
	}
	return nil
}

func scan(
	ctx context.Context, server transport.Doer, pattern string, nameOf func(key string) (string, bool), visit func(names []string) error,
) error {
	for cursor := "0"; ; {
		command := transport.Command{Words: []any{"scan", cursor, "match", pattern, "count", 500}}
		reply, err := server.Do(ctx, command)
		if err != nil {
			return err
		}
		next, names, ok := readScan(reply, nameOf)
		if !ok {
			return fmt.Errorf("%w: an answer to SCAN that is none: %.200q", ErrServer, fmt.Sprint(reply))
		}
		if err := visit(names); err != nil {
			return err
		}
		if next == "0" {
			return nil
		}
		cursor = next
	}
}

// readScan reads {cursor, keys} and returns the names that nameOf finds in the keys.
func readScan(reply any, nameOf func(key string) (string, bool)) (next string, names []string, ok bool) {
	elements, _ := reply.([]any)
	if len(elements) != 2 {
		return "", nil, false
	}
	next, okNext := elements[0].(string)
	keys, okKeys := elements[1].([]any)
	for _, key := range keys {
		text, _ := key.(string) // nothing else is a key of ours
		if name, isOurs := nameOf(text); isOurs {
			names = append(names, name)
		}
	}
	return next, names, okNext && okKeys
}
