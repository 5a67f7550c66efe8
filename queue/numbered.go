package queue

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Jobs that come from a place that keeps them itself: an outbox in a database, a log with offsets. A request is written there
// as bytes (Encode), and read again by whoever enqueues it (DecodeRequest). That place also counts the calls
// (EnqueueNumbered), so that one that is repeated by another process, however much later, counts once.

// MaxCall is how many jobs a numbered call takes.
const MaxCall = store.MostItems

// encoded is a request as it is kept. What an older version would misread is of another version: it is 2 if the job is reserved.
type encoded struct {
	Version  int             `json:"v"`
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	Key      string          `json:"key,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Cost     map[string]int  `json:"cost,omitempty"`
	InMs     int64           `json:"in_ms,omitempty"`
	AtMs     int64           `json:"at_ms,omitempty"`
	Priority int             `json:"priority,omitempty"`
	RetainMs int64           `json:"retain_ms,omitempty"`
	Unique   string          `json:"unique,omitempty"`
	UniqueIn string          `json:"unique_in,omitempty"`
	After    *encodedAfter   `json:"after,omitempty"`
	For      string          `json:"for,omitempty"`
	ForAtMs  int64           `json:"for_at_ms,omitempty"`
	ForInMs  int64           `json:"for_in_ms,omitempty"`
	Job      json.RawMessage `json:"job"`
}

type encodedAfter struct {
	Mode    string   `json:"mode"`
	Failure string   `json:"failure"`
	IDs     []string `json:"ids"`
}

const encodedVersion, reservedVersion = 1, 2

// encoder gives ids to requests that have none.
var (
	encoder    = rand.Text()[:16]
	encodedIDs atomic.Int64
)

// Encode returns the request as bytes, which may be kept for as long as one likes, and the id of the job, which it is given
// now if it has none of its own.
func (r Request) Encode() (id string, data []byte, err error) {
	if r.err != nil {
		return "", nil, r.err
	}
	i := &r.item
	e := encoded{
		Version: encodedVersion, ID: i.ID, Kind: i.Lane.Kind, Key: i.Lane.Key, Tags: i.Lane.Tags,
		InMs: i.Delay.Milliseconds(), Priority: i.Priority, RetainMs: i.Retention.Milliseconds(), Job: json.RawMessage(i.Rest),
	}
	if e.ID == "" {
		e.ID = encoder + strconv.FormatInt(encodedIDs.Add(1), 36)
		e.Unique, e.UniqueIn = i.UniqueField, i.UniqueIn
	}
	if i.Lane.Cost != "" {
		e.Cost = costOf(i.Lane.Cost)
	}
	if !i.At.IsZero() {
		e.AtMs = i.At.UnixMilli()
	}
	if i.After.Mode != "" {
		e.After = &encodedAfter{i.After.Mode, i.After.Failure, i.After.Parents}
	}
	if i.For != "" {
		e.Version, e.For, e.ForInMs = reservedVersion, nameFromServer(i.For), i.ForWithin.Milliseconds()
		if !i.ForUntil.IsZero() {
			e.ForAtMs = i.ForUntil.UnixMilli()
		}
	}
	data, err = json.Marshal(e)
	if err != nil {
		return "", nil, fmt.Errorf("encode a job of kind %q: %w: %w", e.Kind, ErrInvalid, err)
	}
	return e.ID, data, nil
}

// Kind is the job's, "" if something is wrong with the request: its outcome says what.
func (r Request) Kind() string { return r.item.Lane.Kind }

// Key is whose job it is, "" if nobody's: see the option of the same name.
func (r Request) Key() string { return r.item.Lane.Key }

// DecodeRequest reads what Encode has written age ago: a delay counts from then, and so does what is reserved for a while.
func DecodeRequest(data []byte, age time.Duration) (Request, error) {
	var e encoded
	if err := json.Unmarshal(data, &e); err != nil {
		return Request{}, fmt.Errorf("decode a job: %w: %w", ErrInvalid, err)
	}
	t := e.terms()
	t.delay = max(t.delay-age, 0)
	if t.forWithin -= age; t.forUntil.IsZero() && t.forWithin <= 0 {
		t.forWorker = "" // it is anybody's by now
	}
	switch {
	case e.Version != encodedVersion && e.Version != reservedVersion:
		t.refuse("it has version %d, this program reads %d and %d: relay it with one as new as the one that wrote it", e.Version, encodedVersion,
			reservedVersion)
	case !bytes.HasPrefix(bytes.TrimSpace(e.Job), []byte{'{'}): // it is JSON, or there would be an error
		t.refuse("there is no object job in it")
	case len(e.Job) > 2*MaxPayload:
		t.refuse("its job has %d bytes, at most %d are allowed", len(e.Job), 2*MaxPayload)
	}
	t.check("kind", e.Kind, maxNameLen)
	r := t.request(e.Kind, string(e.Job))
	if r.err != nil {
		return Request{}, fmt.Errorf("decode a job: %w", r.err)
	}
	if r.item.ID == "" {
		r.item.ID = e.ID
	}
	return r, nil
}

// terms checks what is written as if it were given as options.
func (e *encoded) terms() *terms {
	t := &terms{}
	options := []Option{In(time.Duration(e.InMs) * time.Millisecond), Priority(e.Priority), Retain(time.Duration(e.RetainMs) * time.Millisecond)}
	if e.AtMs != 0 {
		options = append(options, At(time.UnixMilli(e.AtMs)))
	}
	if e.Key != "" {
		options = append(options, Key(e.Key))
	}
	if len(e.Tags) > 0 {
		options = append(options, Require(e.Tags...))
	}
	for capacity, amount := range e.Cost {
		options = append(options, Cost(capacity, amount))
	}
	if e.ForAtMs != 0 {
		options = append(options, For(e.For, time.UnixMilli(e.ForAtMs)))
	} else if e.For != "" {
		options = append(options, ForWithin(e.For, time.Duration(e.ForInMs)*time.Millisecond))
	}
	options = append(options, ID(e.ID))
	if e.Unique != "" {
		options = append(options, Unique(e.Unique, States(e.UniqueIn)))
	}
	if e.After != nil {
		options = append(options, after(e.After.Mode, ParentFailure(e.After.Failure), e.After.IDs))
	}
	for _, option := range options {
		option(t)
	}
	if e.Unique != "" {
		t.id = "" // it was looked at
	}
	if strings.Trim(e.UniqueIn, string(Alive)) != "" || (e.Unique != "") != (e.UniqueIn != "") {
		t.refuse("it is unique in states %q", e.UniqueIn)
	}
	if a := t.after; a.Mode != "" && (a.Mode != "all" && a.Mode != "any" ||
		!slices.Contains([]ParentFailure{CancelIt, HoldIt, RunIt}, ParentFailure(a.Failure))) {
		t.refuse("it waits for %q of its parents, and then for %q", a.Mode, a.Failure)
	}
	return t
}

// PastError says that a sequence has had a later call, or another one with the same number: nothing was enqueued.
type PastError struct {
	Queue, Sequence string
	Number, Last    int64
}

func (e *PastError) Error() string {
	return fmt.Sprintf("enqueue on %q: call %d of sequence %q comes after call %d, or is another one: nothing was enqueued", e.Queue,
		e.Number, e.Sequence, e.Last)
}

// EnqueueNumbered adds jobs, at most MaxCall, in one call that counts once however often it is made, and by whom: the queue
// remembers the number of a sequence's last call for good. The same number again has to bring the same jobs, and is answered as
// before; a smaller one gets a *PastError. Numbers grow from 1 on and may have gaps. It is for whoever reads jobs from
// a place that keeps its own count, and may die between enqueueing them and noting that. A call without jobs does nothing, and
// takes no number.
//
// When it returns another error, nobody knows whether the jobs were taken in: make the same call again.
func (q *Queue) EnqueueNumbered(ctx context.Context, sequence string, number int64, requests ...Request) ([]ManyOutcome, error) {
	return q.enqueueWrapped(ctx, requests, func(ctx context.Context, requests []Request) ([]ManyOutcome, error) {
		return q.enqueueNumbered(ctx, sequence, number, requests)
	})
}

func (q *Queue) enqueueNumbered(ctx context.Context, sequence string, number int64, requests []Request) ([]ManyOutcome, error) {
	outcomes := make([]ManyOutcome, len(requests))
	if err := q.checkNumbered(sequence, number, requests); err != nil || len(requests) == 0 {
		return outcomes, err
	}
	if err := q.enter(); err != nil {
		return outcomes, err
	}
	defer q.tasks.Done()
	meta := q.observers.meta(ctx)
	items := make([]store.Item, len(requests))
	for i := range requests {
		items[i] = requests[i].item
		items[i].Rest = withMeta(meta, items[i].Rest)
	}
	told, past, err := q.store.EnqueueNumbered(ctx, sequence, number, items)
	if err == nil && past > 0 {
		err = &PastError{q.name, sequence, number, past}
	}
	if err != nil {
		return outcomes, err
	}
	for i, o := range told {
		outcomes[i] = outcomeOf(&items[i], o)
	}
	return outcomes, nil
}

func (q *Queue) checkNumbered(sequence string, number int64, requests []Request) error {
	err := store.CheckName("sequence", sequence, maxNameLen)
	switch {
	case err != nil:
	case number < 1 || number > 1<<53:
		err = fmt.Errorf("%w: call %d of sequence %q: numbers grow from 1 on, to 2^53", ErrInvalid, number, sequence)
	case len(requests) > MaxCall:
		err = fmt.Errorf("%w: %d jobs in a numbered call, at most %d are allowed", ErrInvalid, len(requests), MaxCall)
	}
	for i := 0; err == nil && i < len(requests); i++ {
		if err = requests[i].err; err == nil && requests[i].item.ID == "" {
			err = fmt.Errorf("%w: a job without an id: Encode gives it one", ErrInvalid)
		}
	}
	if err != nil {
		return fmt.Errorf("enqueue on %q: %w", q.name, err)
	}
	return nil
}

// EnqueueNumbered is Queue.EnqueueNumbered with each job in the partition of its key, or else of its id. The call has the
// same number in each of them.
func (p Partitions) EnqueueNumbered(ctx context.Context, sequence string, number int64, requests ...Request) ([]ManyOutcome, error) {
	return p.deal(requests, func(q *Queue, mine []Request) ([]ManyOutcome, error) {
		return q.EnqueueNumbered(ctx, sequence, number, mine...)
	})
}
