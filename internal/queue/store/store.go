// Package store is what a queue is on the server: its keys, and the transitions between their states. Each transition is one
// script (*.lua, over prelude.lua, which describes the keys), atomic and timed by the server's clock; this file calls them
// and turns words into values. It knows nothing of goroutines, handlers or types of arguments: that is package queue.
//
// A transition is repeated after a lost reply by calling it again with the same number: see enqueue.lua and work.lua.
package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// InboxPrefix stands before the name of a process in the channel that its messages go to.
const InboxPrefix = "signalbox:queue-inbox:"

// Inbox is the channel that the messages to a process go to. One of a Cluster hears in the slot of the queue.
func Inbox(queue, process string) string {
	if strings.HasPrefix(process, ledger.Sharded) {
		return InboxPrefix + "{" + encodeName.Replace(queue) + "}" + process
	}
	return InboxPrefix + process
}

// Bounds of one call.
const (
	MostItems   = 500
	MostChanges = 500
	MostClaims  = 100
)

// keyNames are the keys of a queue, in the order in which the scripts take them.
var keyNames = []string{
	"jobs", "waiting", "index", "lanes", "claims", "links", "times", "counts", "rates", "workers", "settings", "unique",
	"ended", "endings", "stats", "clock", "schedules", "ticks", "history", neverName,
}

// keyTypes are the types of the keys, and of the producer's behind them.
var keyTypes = []string{
	"hash", "zset", "zset", "hash", "hash", "zset", "zset", "hash", "hash", "hash", "hash", "hash",
	"hash", "zset", "hash", "string", "hash", "zset", "stream", "string", "string",
}

// neverName is a key that never exists. The nodes of a Cluster send a script away as long as one of its keys is not there
// and their slot moves. With all of them there a script would begin, and be stopped in its middle at the key that it has
// emptied.
const neverName = "never"

var encodeName = strings.NewReplacer("%", "%25", "}", "%7D")

// Prefix is what the keys of a queue begin with.
func Prefix(queue string) string { return "signalbox:queue:{" + encodeName.Replace(queue) + "}:" }

// Store is one queue on one server.
type Store struct {
	Name      string
	transport transport.Transport
	within    time.Duration
	keys      []any // the last is the producer's
}

// New returns the store of a queue for a process, whose name is unique. Within is how long a server may take to answer.
func New(t transport.Transport, queue, process string, within time.Duration) (*Store, error) {
	if err := CheckName("queue", queue, 256); err != nil {
		return nil, err
	}
	s := &Store{Name: queue, transport: t, within: within}
	for _, name := range keyNames {
		s.keys = append(s.keys, Prefix(queue)+name)
	}
	s.keys = append(s.keys, Prefix(queue)+"producer:"+process)
	return s, nil
}

// CheckName refuses what cannot be the name of something: it is UTF-8 without control characters, and not too long.
func CheckName(what, name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name of a %s is empty", ledger.ErrInvalid, what)
	case len(name) > most:
		return fmt.Errorf("%w: %s %.40q… has %d bytes, at most %d are allowed", ledger.ErrInvalid, what, name, len(name), most)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %s %.40q is not valid UTF-8", ledger.ErrInvalid, what, name)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%w: %s %.40q has a control character in it", ledger.ErrInvalid, what, name)
	}
	return nil
}

// run calls a transition, by digest and, if the server does not know it, with its text.
func (s *Store) run(ctx context.Context, verb string, sc *script, args []any) ([]any, error) {
	value, err := s.transport.Do(ctx, s.command("evalsha", sc.digest, args))
	if err != nil && transport.HasPrefix(err, "NOSCRIPT") {
		value, err = s.transport.Do(ctx, s.command("eval", sc.text, args))
	}
	if err != nil {
		if transport.HasPrefix(err, "WRONGTYPE") {
			err = s.foreign(ctx, err)
		}
		return nil, ledger.Explain(fmt.Sprintf("%s %q", verb, s.Name), err)
	}
	list, ok := value.([]any)
	if !ok {
		return nil, s.unexpected(verb, value)
	}
	return list, nil
}

// foreign says which key of the queue is another program's.
func (s *Store) foreign(ctx context.Context, err error) error {
	for i, key := range s.keys {
		value, failed := s.transport.Do(ctx, transport.Command{Words: []any{"type", key}, Key: 1, Within: s.within})
		if found := fmt.Sprint(value); failed == nil && found != "none" && found != keyTypes[i] {
			return fmt.Errorf("%w: %v is a %s of another program, where Signalbox keeps a %s: rename or remove it, or give the queue another name",
				ledger.ErrWrongType, key, found, keyTypes[i])
		}
	}
	return fmt.Errorf("%w: look at the keys %s* and remove the one that is not ours: %w", ledger.ErrWrongType, Prefix(s.Name), err)
}

func (s *Store) command(name string, script any, args []any) transport.Command {
	words := make([]any, 0, 3+len(s.keys)+len(args))
	words = append(append(append(words, name, script, len(s.keys)), s.keys...), args...)
	return transport.Command{Words: words, Key: 3, Within: s.within}
}

func (s *Store) unexpected(verb string, reply any) error {
	return fmt.Errorf("%s %q: %w: an answer that no version of Signalbox gives: %.200q", verb, s.Name, ledger.ErrServer,
		fmt.Sprint(reply))
}

// texts reads a list of strings; anything else in it is a mistake of the server's.
func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	out := make([]string, len(list))
	for i, v := range list {
		if out[i], ok = v.(string); !ok {
			return nil, false
		}
	}
	return out, ok
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func ms(d time.Duration) string { return number(d.Milliseconds()) }

// Seed has those who are handed jobs take turns.
func seed(n int64) string {
	return strconv.FormatUint(uint64(n)*0x9e3779b97f4a7c15>>4, 36)
}
