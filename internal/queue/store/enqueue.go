package store

import (
	"context"
	"crypto/sha1" //nolint:gosec // as below
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// Lane is what decides whether a job may run.
type Lane struct {
	Kind string
	Tags []string // sorted: what its worker has to have
	Cost string   // "call=1,chat=2", by name; "" is one slot
	Key  string
}

// Item is a job to enqueue.
type Item struct {
	ID          string
	Lane        Lane
	Delay       time.Duration
	At          time.Time // instead of a delay
	Priority    int
	Retention   time.Duration
	UniqueIn    string // the letters of the states in which the unique field is taken
	UniqueField string // "id": the id is the caller's own
	After       After
	For         string // the worker for which it is reserved, until ForUntil or for ForWithin
	ForUntil    time.Time
	ForWithin   time.Duration
	Rest        string // what workers read
}

// After is what a job waits for.
type After struct {
	Mode    string // all, any; "" if there is nothing to wait for
	Failure string // of a parent: cancel, hold, go
	Parents []string
}

// Outcome is what became of an item. At most one field is set; none means that it is new.
type Outcome struct {
	Known  bool   // the id is there already
	Other  string // the job that has its unique field
	Parent string // the job that it was to wait for, which has failed
}

// Enqueue takes in at most MostItems. Calls of one process come one after the other, with growing numbers; the same number
// again after an error is the same call.
func (s *Store) Enqueue(ctx context.Context, call int64, items []Item) ([]Outcome, error) {
	outcomes, _, err := s.enqueue(ctx, call, Tick{}, 0, items)
	return outcomes, err
}

// Tick is a schedule at the time when it is to make a job.
type Tick struct {
	Name string
	Ms   int64
	Text string // what the client wrote
}

// EnqueueTick takes in the jobs of a tick and sets the next. It reports false if somebody else has.
func (s *Store) EnqueueTick(ctx context.Context, tick Tick, nextMs int64, items []Item) (bool, error) {
	_, done, err := s.enqueue(ctx, 0, tick, nextMs, items)
	return done, err
}

func (s *Store) enqueue(ctx context.Context, call int64, tick Tick, nextMs int64, items []Item) ([]Outcome, bool, error) {
	args := make([]any, 0, 6+4*len(items))
	args = append(args, number(call), seed(call), tick.Name, number(tick.Ms), number(nextMs))
	reply, err := s.run(ctx, "enqueue", enqueueScript, words(args, items))
	if err != nil {
		return nil, false, err
	}
	if past, _ := texts(reply[0]); len(past) == 1 && past[0] == "past" {
		return nil, false, nil
	}
	outcomes, err := s.outcomes(reply, len(items))
	return outcomes, err == nil, err
}

// EnqueueNumbered is Enqueue in a sequence, whose calls anybody makes who knows what their numbers are: see enqueue.lua.
// Past is the number of the sequence's last call if this one was not taken in, else 0.
func (s *Store) EnqueueNumbered(ctx context.Context, sequence string, call int64, items []Item) (outcomes []Outcome, past int64, err error) {
	ids := sha256.New()
	for i := range items {
		_, _ = ids.Write([]byte(items[i].ID + "\n")) // it never fails
	}
	args := make([]any, 0, 6+4*len(items))
	args = words(append(args, number(call), seed(call), "", "sequence", hex.EncodeToString(ids.Sum(nil)[:8])), items)
	reply, err := s.as("sequence:"+sequence).run(ctx, "enqueue", enqueueScript, args)
	if err != nil {
		return nil, 0, err
	}
	if told, _ := texts(reply[0]); len(told) == 2 && told[0] == "past" {
		past, err = strconv.ParseInt(told[1], 10, 64)
		return nil, past, err
	}
	outcomes, err = s.outcomes(reply, len(items))
	return outcomes, 0, err
}

func (s *Store) outcomes(reply []any, n int) ([]Outcome, error) {
	told, ok := texts(reply[0])
	if !ok || len(told) != n {
		return nil, s.unexpected("enqueue", reply)
	}
	outcomes := make([]Outcome, n)
	for i, text := range told {
		switch text[:min(1, len(text))] {
		case "n":
		case "s":
			outcomes[i].Known = true
		case "u":
			outcomes[i].Other = text[1:]
		case "p":
			outcomes[i].Parent = text[1:]
		default:
			return nil, s.unexpected("enqueue", reply)
		}
	}
	return outcomes, nil
}

// words adds items to the arguments of a call. Many have the same lane: their words are one string.
func words(args []any, items []Item) []any {
	plain := len(args)
	args = append(args, "1")
	var lane any
	for i := range items {
		item := &items[i]
		if i == 0 || !item.Lane.equal(&items[i-1].Lane) {
			lane = item.Lane.text()
		}
		terms := item.terms()
		switch terms {
		case "":
		case ownID:
			if args[plain] == "1" {
				args[plain] = "2"
			}
		default:
			args[plain] = "0"
		}
		args = append(args, item.ID, lane, terms, "\n"+item.Rest)
	}
	return args
}

func (l *Lane) equal(other *Lane) bool {
	return l.Kind == other.Kind && l.Key == other.Key && l.Cost == other.Cost && slices.Equal(l.Tags, other.Tags)
}

func (l *Lane) text() string {
	return l.Kind + "\t" + strings.Join(l.Tags, ",") + "\t" + l.Cost + "\t" + l.Key
}

// ownID is the terms of an item that has none but an id of the caller's.
var ownID = (&Item{UniqueField: "id"}).terms()

// terms are what makes an item another than one that may run at once, and is forgotten when it has.
func (i *Item) terms() string {
	if i.Delay <= 0 && i.At.IsZero() && i.Priority == 0 && i.Retention == 0 && i.UniqueIn == "" && i.UniqueField == "" && i.After.Mode == "" && i.For == "" {
		return ""
	}
	delay := ms(max(i.Delay, 0))
	if !i.At.IsZero() {
		delay = "@" + number(i.At.UnixMilli())
	}
	after := ""
	if i.For != "" {
		after = "\t\t"
	}
	if i.After.Mode != "" {
		after = i.After.Mode + "\t" + i.After.Failure + "\t" + strings.Join(i.After.Parents, ",")
	}
	terms := []string{delay, strconv.Itoa(i.Priority), ms(i.Retention), i.UniqueIn, i.UniqueField, after}
	if i.For != "" {
		until := ms(i.ForWithin)
		if !i.ForUntil.IsZero() {
			until = "@" + number(i.ForUntil.UnixMilli())
		}
		terms = append(terms, i.For, until)
	}
	return strings.Join(terms, "\t")
}

// Lines are the first lines of a list that anybody may push to. The list has the hash tag of the queue, in a Cluster.
type Lines struct {
	List string
	Text []string
	Bad  []int // which of them are no jobs: they go to the list with ":bad" behind its name
}

// Intake takes the jobs of lines in and the lines away, in one transition. It reports false if the list has changed.
func (s *Store) Intake(ctx context.Context, lines Lines, items []Item) (bool, error) {
	bad := make([]string, len(lines.Bad))
	for i, at := range lines.Bad {
		bad[i] = strconv.Itoa(at)
	}
	sum := sha1.Sum([]byte(strings.Join(lines.Text, "\n"))) //nolint:gosec // it tells texts apart, and guards nothing
	args := make([]any, 0, 6+4*len(items))
	args = append(args, 0, seed(time.Now().UnixNano()), strings.Join(bad, ","), len(lines.Text), hex.EncodeToString(sum[:]))
	with := *s
	with.keys = append(slices.Clone(s.keys), lines.List, lines.List+":bad")
	reply, err := with.run(ctx, "take jobs in to", enqueueScript, words(args, items))
	if err != nil {
		return false, err
	}
	past, _ := texts(reply[0])
	return len(past) != 1 || past[0] != "past", nil
}

// Peek waits for lines in a list for a while, and returns the first of them.
func (s *Store) Peek(ctx context.Context, list string, wait time.Duration) ([]string, error) {
	doing := fmt.Sprintf("read the list %q", list)
	// Taken from the head and put back there: it waits, and changes nothing.
	move := transport.Command{Words: []any{"blmove", list, list, "left", "left", int(wait.Seconds())}, Key: 1, Within: wait + s.within}
	value, err := s.transport.Do(ctx, move)
	if err != nil || value == nil {
		return nil, explain(doing, err)
	}
	value, err = s.transport.Do(ctx, transport.Command{Words: []any{"lrange", list, 0, MostClaims - 1}, Key: 1, Within: s.within})
	if err != nil {
		return nil, explain(doing, err)
	}
	lines, ok := texts(value)
	if !ok {
		return nil, s.unexpected(doing, value)
	}
	return lines, nil
}

func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	return ledger.Explain(doing, err)
}
