package store

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// What operators see. These scripts read, and change nothing: what has come due since somebody last called shows as it was.

// Sight is what there is to know of one job.
type Sight struct {
	ID     string
	State  string // w, l, h; c: it runs; o: it is offered; of one that has ended d, x, k
	Record Record
	Worker string    // whose it is
	Info   string    // what that worker says of itself, "" if the server does not know it any more
	Lease  time.Time // when the worker's lease ends
	Since  time.Time // when it was claimed, or when it ended
	Due    time.Time // of a delayed one, and of one that is offered: until when
	Bound  time.Time // until when it is reserved, or kept from who declined it
	Result string    // of one that has ended
	Parked bool      // its lane is held up by its key
	Before int       // jobs before it in its lane
	Ahead  int       // lanes of its class before its own
	Scopes [3]Scope  // the queue, its kind, its key
	Now    time.Time
}

// Scope is what stands in the way of all jobs of a queue, a kind or a key.
type Scope struct {
	Paused  bool
	Limit   int // -1 without one
	Running int
	Until   time.Time // when its rate lets the next one start; zero if it may
}

// Look reads what there is to know of a job, and has its end told to an inbox, if one is given. It returns nil if there is
// no such job.
func (s *Store) Look(ctx context.Context, id, inbox string) (*Sight, error) {
	reply, err := s.run(ctx, "look at", lookScript, []any{id, inbox})
	if err != nil {
		return nil, err
	}
	var sight *Sight
	ok := false
	switch {
	case len(reply) == 1 && reply[0] == "unknown":
		return nil, nil
	case len(reply) == 3 && reply[0] == "ended":
		if sight, ok = ParseEnded(text(reply[1])); ok {
			sight.Now = moment(reply[2])
		}
	default:
		sight, ok = parseSight(reply)
	}
	if !ok {
		return nil, s.unexpected("look at", reply)
	}
	sight.ID = id
	return sight, nil
}

// ParseEnded reads what is kept of a job that has ended.
func ParseEnded(kept string) (*Sight, bool) {
	header, rest, ok := strings.Cut(kept, "\n")
	f := strings.Split(header, "\t")
	if !ok || len(f) != 3 {
		return nil, false
	}
	length, err := strconv.Atoi(f[2])
	if err != nil || length < 0 || length > len(rest) {
		return nil, false
	}
	record, ok := ParseRecord(rest[length:])
	return &Sight{State: f[0], Record: record, Since: moment(f[1]), Result: rest[:length]}, ok
}

func parseSight(reply []any) (*Sight, bool) {
	if len(reply) != 12 {
		return nil, false
	}
	before, okBefore := reply[4].(int64)
	ahead, okAhead := reply[5].(int64)
	s := &Sight{
		State: text(reply[0]), Parked: reply[3] == "parked", Before: int(before), Ahead: int(ahead), Due: moment(reply[6]),
		Now: moment(reply[7]), Info: text(reply[9]), Lease: moment(reply[10]), Bound: moment(reply[11]),
	}
	s.claimed(text(reply[2]))
	words, ok := texts(reply[8])
	if !ok || len(words) != 4*len(s.Scopes) || !okBefore || !okAhead {
		return nil, false
	}
	for i := range s.Scopes {
		w := words[4*i : 4*i+4]
		s.Scopes[i] = Scope{Paused: w[0] != "", Limit: -1, Running: int(whole(w[2]))}
		if w[1] != "" {
			s.Scopes[i].Limit = int(whole(w[1]))
		}
		if w[3] != "0" {
			s.Scopes[i].Until = moment(w[3])
		}
	}
	s.Record, ok = ParseRecord(text(reply[1]))
	return s, ok
}

func (s *Sight) claimed(claim string) {
	if f := strings.SplitN(claim, "\t", 4); len(f) == 4 {
		s.Worker, s.Since = f[0], moment(f[2])
	}
}

// Sieve says which jobs are looked for; what is empty or zero is no matter.
type Sieve struct {
	States, Kind, Key, Tag, Error string
	Since, Until                  time.Time // of the time at which it was enqueued
	Brief                         bool      // without arguments and results
}

// Scan makes one step through the jobs, or through what is kept of those that have ended. It begins and ends with the cursor
// "0". A job may be found twice.
func (s *Store) Scan(ctx context.Context, hasEnded bool, cursor string, f *Sieve) (found []*Sight, next string, err error) {
	where, brief := "jobs", "0"
	if hasEnded {
		where = "ended"
	}
	if f.Brief {
		brief = "1"
	}
	since, until := "", ""
	if !f.Since.IsZero() {
		since = number(f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		until = number(f.Until.UnixMilli())
	}
	reply, err := s.run(ctx, "list", scanScript, []any{where, cursor, f.States, f.Kind, f.Key, f.Tag, f.Error, since, until, brief})
	if err != nil {
		return nil, "", err
	}
	if len(reply) < 2 {
		return nil, "", s.unexpected("list", reply)
	}
	words, ok := texts(reply[2:])
	if !ok || len(words)%6 != 0 {
		return nil, "", s.unexpected("list", reply)
	}
	for i := 0; i < len(words); i += 6 {
		sight, ok := parseFound(words[i:i+6], hasEnded)
		if !ok {
			return nil, "", s.unexpected("list", reply)
		}
		sight.Now = moment(reply[1])
		found = append(found, sight)
	}
	return found, text(reply[0]), nil
}

func parseFound(w []string, hasEnded bool) (*Sight, bool) {
	if hasEnded {
		sight, ok := ParseEnded(w[2])
		if ok {
			sight.ID = w[0]
		}
		return sight, ok
	}
	record, ok := ParseRecord(w[2])
	sight := &Sight{ID: w[0], State: w[1], Record: record, Info: w[4]}
	if sight.claimed(w[3]); sight.State == "c" {
		sight.Lease = moment(w[5])
	} else {
		sight.Due = moment(w[5])
	}
	return sight, ok
}

// Stats is what there is, counted.
type Stats struct {
	Now                          time.Time
	Jobs, Waiting, Running, Kept int
	Offered                      int // of Running
	Settings                     map[string]string
	Counters                     map[string]string // what TAB kind
	Kinds                        []KindStats
}

// KindStats are those of one kind.
type KindStats struct {
	Kind             string
	Waiting, Running int
	Next             time.Time // when the job was enqueued that is next; zero if none may run
}

// Stats counts what there is, in one call whose work does not grow with the backlog.
func (s *Store) Stats(ctx context.Context) (*Stats, error) {
	reply, err := s.run(ctx, "count", statsScript, nil)
	if err != nil {
		return nil, err
	}
	offered, isNumber := int64(0), len(reply) == 9
	if isNumber {
		offered, isNumber = reply[8].(int64)
	}
	if !isNumber {
		return nil, s.unexpected("count", reply)
	}
	out := &Stats{Now: moment(reply[0]), Offered: int(offered)}
	for i, n := range []*int{&out.Jobs, &out.Waiting, &out.Running, &out.Kept} {
		value, _ := reply[1+i].(int64)
		*n = int(value)
	}
	var ok [3]bool
	out.Settings, ok[0] = pairs(reply[5])
	out.Counters, ok[1] = pairs(reply[6])
	var words []string
	words, ok[2] = texts(reply[7])
	if ok != [3]bool{true, true, true} || len(words)%4 != 0 {
		return nil, s.unexpected("count", reply)
	}
	for i := 0; i < len(words); i += 4 {
		k := KindStats{Kind: words[i], Waiting: int(whole(words[i+1])), Running: int(whole(words[i+2]))}
		if words[i+3] != "0" {
			k.Next = moment(words[i+3])
		}
		out.Kinds = append(out.Kinds, k)
	}
	return out, nil
}

// WorkerSight is what the server knows of a worker.
type WorkerSight struct {
	ID, State, Info string
	Kinds, Tags     []string
	Room            []Room
	OfferFor        time.Duration // 0: it is given jobs, not offered
	Offered         int           // jobs that it has not accepted yet
	Lease           time.Time     // when it ends
	Now             time.Time
}

// Room is how much of a capacity is used.
type Room struct {
	Name        string
	Used, Limit int
}

// Workers makes one step through the workers. It begins and ends with the cursor "0".
func (s *Store) Workers(ctx context.Context, cursor string) (found []WorkerSight, next string, err error) {
	reply, err := s.run(ctx, "list the workers of", workersScript, []any{cursor})
	if err != nil {
		return nil, "", err
	}
	if len(reply) < 2 || len(reply)%4 != 2 {
		return nil, "", s.unexpected("list the workers of", reply)
	}
	for i := 2; i < len(reply); i += 4 {
		w, ok := parseWorker(text(reply[i]), text(reply[i+1]))
		offered, isNumber := reply[i+3].(int64)
		if !ok || !isNumber {
			return nil, "", s.unexpected("list the workers of", reply)
		}
		w.Lease, w.Now, w.Offered = moment(reply[i+2]), moment(reply[1]), int(offered)
		found = append(found, w)
	}
	return found, text(reply[0]), nil
}

// parseWorker reads what the prelude keeps of a worker.
func parseWorker(id, kept string) (WorkerSight, bool) {
	f := strings.Split(kept, "\t")
	if len(f) < 7 {
		return WorkerSight{}, false
	}
	w := WorkerSight{ID: id, State: f[1], Info: f[6], Tags: list(f[4]), Kinds: list(f[5])}
	if len(f) > 7 {
		offer, _, _ := strings.Cut(f[7], " ")
		w.OfferFor = time.Duration(whole(offer)) * time.Millisecond
	}
	for _, part := range list(f[3]) {
		if r := strings.Split(part, ":"); len(r) == 3 {
			w.Room = append(w.Room, Room{r[0], int(whole(r[1])), int(whole(r[2]))})
		}
	}
	return w, true
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func text(value any) string {
	t, _ := value.(string)
	return t
}

// whole reads a number that a script wrote; 0 if it is none.
func whole(text string) int64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return int64(n)
}

// moment reads a time in ms; zero if there is none.
func moment(value any) time.Time {
	switch v := value.(type) {
	case int64:
		return time.UnixMilli(v)
	case string:
		if v != "" {
			return time.UnixMilli(whole(v))
		}
	}
	return time.Time{}
}
