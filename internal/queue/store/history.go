package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// The history of a queue: what its transitions wrote (prelude.lua, recorder), as a stream beside it. history.lua has what is
// done with it here; what its entries mean is in replay.go.

// HistoryState is what there is of a history.
type HistoryState struct {
	On     bool
	Number int64             // of the last entry
	Keep   int64             // how many entries the stream has at most
	Length int64             // how many it has
	Sinks  map[string]string // name -> the ID up to which it has taken them
}

// Event is an entry of the stream.
type Event struct {
	ID   string
	Data string
}

// HistoryState asks for the history of the queue.
func (s *Store) HistoryState(ctx context.Context) (*HistoryState, error) {
	reply, err := s.run(ctx, "ask for the history of", historyScript, []any{"state"})
	if err != nil {
		return nil, err
	}
	if len(reply) < 3 {
		return nil, s.unexpected("ask for the history of", reply)
	}
	number := text(reply[0])
	length, _ := reply[2].(int64)
	state := &HistoryState{On: number != "", Number: whole(number), Keep: whole(text(reply[1])), Length: length, Sinks: map[string]string{}}
	for i := 3; i+1 < len(reply); i += 2 {
		state.Sinks[text(reply[i])] = text(reply[i+1])
	}
	return state, nil
}

// BeginHistory has a history begin, or one that there is say again what the queue has, for a sink that has nothing yet. It
// returns the ID of the first entry that such a sink is to take. Transitions go on meanwhile.
func (s *Store) BeginHistory(ctx context.Context, keep int64) (string, error) {
	const doing = "begin the history of"
	reply, err := s.run(ctx, doing, historyScript, []any{"on", number(keep)})
	if err != nil {
		return "", err
	}
	begun, ok := texts(reply)
	if !ok || len(begun) != 2 {
		return "", s.unexpected(doing, reply)
	}
	for _, key := range []string{"workers", "settings", "schedules", "ticks", "jobs", "claims", "links", "times", "unique", "rates", "ended", "endings"} {
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			reply, err := s.run(ctx, doing, historyScript, []any{"walk", key, cursor})
			if err != nil {
				return "", err
			}
			cursor = text(reply[0])
		}
	}
	if err := s.walkProducers(ctx, doing); err != nil {
		return "", err
	}
	_, err = s.run(ctx, doing, historyScript, []any{"walked", begun[1]})
	return begun[0], err
}

// walkProducers has the last calls of producers said again. No key of the queue names them: the server is asked.
func (s *Store) walkProducers(ctx context.Context, doing string) error {
	prefix := Prefix(s.Name) + "producer:"
	pattern := strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "\\", `\\`).Replace(prefix) + "*"
	return s.transport.EachPrimary(ctx, func(ctx context.Context, primary transport.Doer) error {
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			value, err := primary.Do(ctx, transport.Command{Words: []any{"scan", cursor, "match", pattern, "count", 1000}, Within: s.within})
			if err != nil {
				return explain(fmt.Sprintf("%s %q", doing, s.Name), err)
			}
			step, _ := value.([]any)
			if len(step) != 2 {
				return s.unexpected(doing, value)
			}
			keys, _ := texts(step[1])
			for _, key := range keys {
				if _, err := s.as(strings.TrimPrefix(key, prefix)).run(ctx, doing, historyScript, []any{"producer"}); err != nil {
					return err
				}
			}
			cursor = text(step[0])
		}
		return nil
	})
}

// as is the store as another producer has it.
func (s *Store) as(producer string) *Store {
	other := *s
	other.keys = slices.Clone(s.keys)
	other.keys[len(other.keys)-1] = Prefix(s.Name) + "producer:" + producer
	return &other
}

// EndHistory has the queue keep no history any more.
func (s *Store) EndHistory(ctx context.Context) error {
	_, err := s.run(ctx, "end the history of", historyScript, []any{"off"})
	return err
}

// TookHistory says that a sink has all entries up to an ID. What every sink has is removed.
func (s *Store) TookHistory(ctx context.Context, sink, id string) error {
	_, err := s.run(ctx, "acknowledge the history of", historyScript, []any{"took", sink, id})
	return err
}

// ForgetSink keeps nothing for a sink any more. It reports whether it was known.
func (s *Store) ForgetSink(ctx context.Context, sink string) (bool, error) {
	reply, err := s.run(ctx, "forget a sink of", historyScript, []any{"forget", sink})
	return err == nil && len(reply) == 1 && reply[0] == int64(1), err
}

// ReadHistory returns at most n entries from an ID on, that one too.
func (s *Store) ReadHistory(ctx context.Context, from string, n int) ([]Event, error) {
	doing := fmt.Sprintf("read the history of %q", s.Name)
	value, err := s.transport.Do(ctx, transport.Command{
		Words: []any{"xrange", Prefix(s.Name) + "history", from, "+", "count", n}, Key: 1, Within: s.within,
	})
	if err != nil {
		return nil, explain(doing, err)
	}
	list, ok := value.([]any)
	events := make([]Event, len(list))
	for i, one := range list {
		pair, isPair := one.([]any)
		if ok = ok && isPair && len(pair) == 2; !ok {
			break
		}
		var words []string
		if words, ok = texts(pair[1]); !ok || len(words) != 2 {
			ok = false
			break
		}
		events[i] = Event{text(pair[0]), words[1]}
	}
	if !ok {
		return nil, s.unexpected(doing, value)
	}
	return events, nil
}

// AwaitHistory waits for an entry behind an ID, for a while.
func (s *Store) AwaitHistory(ctx context.Context, after string, wait time.Duration) error {
	_, err := s.transport.Do(ctx, transport.Command{
		Words: []any{"xread", "count", 1, "block", int(wait.Milliseconds()), "streams", Prefix(s.Name) + "history", after},
		Key:   6, Within: wait + s.within,
	})
	return explain(fmt.Sprintf("wait for the history of %q", s.Name), err)
}
