package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report is what a worker tells the server in one call.
type Report struct {
	Worker    string
	Call      int64
	Lease     time.Duration
	State     string // online, away, draining, gone
	Room      string // name:limit,…
	Tags      string
	Kinds     string
	Info      string
	Name      string        // what jobs are reserved for
	OfferFor  time.Duration // it is offered jobs, each for so long; 0: it is given them
	Stays     bool          // online, if it lets an offer pass
	Want      int
	Register  bool
	Inventory []string // nil: not told
	Done      []Done
}

// Done is a job that a worker is done with.
type Done struct {
	ID, Token string
	Verb      string // done, retry, dead, snooze, back, cancelled; accept, decline, miss of an offer; note, which is no end
	After     time.Duration
	Text      string
}

// Claim is a job that a worker is to run.
type Claim struct {
	ID, Token string
	Record    Record
}

// Answer is what a worker is told.
type Answer struct {
	Unknown bool          // the lease has ended
	Taken   time.Duration // the name is another's, for so long if that has died; else 0
	More    bool          // the worker holds more than the answer brings: it is to send its inventory
	Next    time.Duration // when to come again; negative: with the next heartbeat
	Late    []string      // what was reported of these does not count: they were others' already
	Claims  []Claim
	Missing []Claim // held already, and not in the inventory: their message or answer was lost, or is on its way
	Cancel  []string
	Lost    []string // of the inventory: others' already
	Ticks   []Tick
}

// Work makes a worker's call.
func (s *Store) Work(ctx context.Context, r *Report) (*Answer, error) {
	reply, err := s.run(ctx, "work", workScript, r.words())
	if err != nil {
		return nil, err
	}
	answer, ok := parseAnswer(reply)
	if !ok {
		return nil, s.unexpected("work", reply)
	}
	return answer, nil
}

// WorkTogether makes the calls of several workers in one, as if they came one after the other at the same moment. The answers
// stand in the order of the reports. One that is nil was refused: a later call of that worker was answered.
func (s *Store) WorkTogether(ctx context.Context, reports []*Report) ([]*Answer, error) {
	args := []any{""}
	for _, r := range reports {
		words := r.words()
		args = append(append(args, len(words)), words...)
	}
	reply, err := s.run(ctx, "work", workScript, args)
	if err != nil {
		return nil, err
	}
	if len(reply) != len(reports) {
		return nil, s.unexpected("work", reply)
	}
	answers := make([]*Answer, len(reply))
	for i, value := range reply {
		words, ok := value.([]any)
		if ok && len(words) == 1 && words[0] == "late" {
			continue
		}
		if answers[i], ok = parseAnswer(words); !ok {
			return nil, s.unexpected("work", reply)
		}
	}
	return answers, nil
}

// words are the arguments of a call.
func (r *Report) words() []any {
	inventory := "-"
	if r.Inventory != nil {
		inventory = strings.Join(r.Inventory, ",")
	}
	register := 0
	if r.Register {
		register = 1
	}
	args := make([]any, 0, 13+5*len(r.Done))
	args = append(args, r.Worker, number(r.Call), seed(r.Call), r.terms(), r.State, r.Room, r.Tags, r.Kinds, r.Info, r.Want,
		register, inventory)
	return doneWords(args, r.Done)
}

// terms are how long the worker is believed in, how it takes jobs, and its name: lease ms, and if there is more TAB offer ms, a
// blank and "stay" TAB name.
func (r *Report) terms() string {
	if r.Name == "" && r.OfferFor == 0 {
		return ms(r.Lease)
	}
	offer := ""
	if r.OfferFor > 0 {
		offer = ms(r.OfferFor)
		if r.Stays {
			offer += " stay"
		}
	}
	return ms(r.Lease) + "\t" + offer + "\t" + r.Name
}

// doneWords adds reports to the arguments of a call. Most say nothing but that a job is done: then two words are enough.
func doneWords(args []any, done []Done) []any {
	simple := !slices.ContainsFunc(done, func(d Done) bool { return d.Verb != "done" || d.After != 0 || d.Text != "" })
	if simple {
		args = append(args, 2)
	} else {
		args = append(args, 5)
	}
	for i := range done {
		d := &done[i]
		if args = append(args, d.ID, d.Token); !simple {
			args = append(args, d.Verb, ms(d.After), d.Text)
		}
	}
	return args
}

func parseAnswer(reply []any) (*Answer, bool) {
	if len(reply) != 8 {
		return nil, false
	}
	next, ok := reply[1].(int64)
	a := &Answer{Unknown: reply[0] == "unknown", More: reply[0] == "more", Next: -1}
	if reply[0] == "taken" {
		a.Taken = max(time.Duration(next)*time.Millisecond, time.Millisecond)
	}
	if next >= 0 {
		a.Next = time.Duration(next) * time.Millisecond
	}
	var lists [6][]string
	for i, value := range reply[2:] {
		list, isList := texts(value)
		lists[i], ok = list, ok && isList
	}
	var claims, missing bool
	a.Claims, claims = ParseClaims(lists[1])
	a.Missing, missing = ParseClaims(lists[4])
	a.Late, a.Cancel, a.Lost = lists[0], lists[2], lists[3]
	var ticks bool
	a.Ticks, ticks = parseTicks(lists[5])
	return a, ok && claims && missing && ticks
}

// ParseClaims reads words that have id, token and record with tabs between them.
func ParseClaims(words []string) ([]Claim, bool) {
	if len(words) == 0 {
		return nil, true
	}
	claims := make([]Claim, len(words))
	for i, word := range words {
		id, rest, _ := strings.Cut(word, "\t")
		token, text, _ := strings.Cut(rest, "\t")
		record, ok := ParseRecord(text)
		if !ok {
			return nil, false
		}
		claims[i] = Claim{id, token, record}
	}
	return claims, true
}

// Record is a job as the server keeps it. It was ready when it was enqueued or, with a delay, when that was over.
type Record struct {
	State     string // w, l, h; of a job that has ended d, x, c
	Order     int64  // µs
	Ready     time.Time
	Attempts  int
	Crashes   int
	Retention time.Duration
	Enqueued  time.Time
	Error     string
	Lane      Lane
	Rest      string
	Note      string   // of its handler, "" without one
	For       string   // the worker that it is reserved for
	Declined  []string // the workers that are not offered it for a while
}

// ParseRecord reads what prelude.lua writes.
func ParseRecord(text string) (Record, bool) {
	header, rest, ok := strings.Cut(text, "\n")
	rest, note, _ := strings.Cut(rest, "\n")
	f, ok := fields(header, ok)
	if !ok {
		return Record{}, false
	}
	var n [6]int64
	for i, field := range []int{1, 3, 4, 5, 8, 2} {
		value, err := strconv.ParseInt(f[field], 10, 64)
		if err != nil {
			return Record{}, false
		}
		n[i] = value
	}
	r := Record{
		State: f[0], Order: n[0], Attempts: int(n[1]), Crashes: int(n[2]), Retention: time.Duration(n[3]) * time.Millisecond,
		Enqueued: time.UnixMilli(n[4]), Error: f[9], Lane: Lane{Kind: f[10], Cost: f[12], Key: f[13]}, Rest: rest, Note: note,
	}
	r.Ready = time.UnixMicro(n[0] + n[5])
	if reserved, ok := strings.CutPrefix(f[11], "\x01"); ok {
		r.For, f[11], _ = strings.Cut(reserved, ",")
	}
	if cost := strings.Split(f[12], ",\x01"); len(cost) > 1 {
		r.Lane.Cost, r.Declined = cost[0], cost[1:]
		if r.Lane.Cost == "slot=1" {
			r.Lane.Cost = ""
		}
	}
	if f[11] != "" {
		r.Lane.Tags = strings.Split(f[11], ",")
	}
	return r, true
}

// fields takes the first line of a record apart.
func fields(header string, ok bool) (f [14]string, _ bool) {
	for i := 0; ok && i < len(f)-1; i++ {
		f[i], header, ok = strings.Cut(header, "\t")
	}
	f[13] = header
	return f, ok && !strings.Contains(header, "\t")
}

// ParseMessage reads a message: its words, each as length, colon, text.
func ParseMessage(text string) ([]string, bool) {
	var words []string
	for text != "" {
		length, rest, ok := strings.Cut(text, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 || n > len(rest) {
			return nil, false
		}
		words, text = append(words, rest[:n]), rest[n:]
	}
	return words, true
}
