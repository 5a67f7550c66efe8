package store

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// Long random programs, run by the scripts and by the model (model_test.go). A program that shows a difference is made as
// short as it can be. Two transitions are a millisecond apart, and no two jobs of a program have the same order, so that
// nothing is left to chance but which of several idle workers is handed a job.

// ground is a server whose time passes when the test says so, and whose messages are kept.
type ground interface {
	transport.Transport
	raw(words ...string) (any, error)
	messages() ([][]string, error) // each with the inbox first
	now() int64                    // µs
	pass(d time.Duration)
}

// system is the queue under test with its model.
type system struct {
	ground
	*Store
	t        *rapid.T
	m        *model
	name     string
	producer int64
	sent     []Item // of the producer's last call
	numbered map[string]*sequence
	items    int
	seen     []string // lines of the plain list that somebody has seen
	calls    map[string]int64
	last     map[string]*Report
	token    string // the largest that was given out
	back     int64  // by how much the server's clock has gone back
	rates    bool   // of kinds: then nobody is late, see settle
	copies   int
	replay   *Replay           // nil: there is no history yet
	present  map[string]string // workers, by the history: what each is at
	offers   bool              // some workers are asked before they are given jobs
}

func (s *system) agree(what string, got, want any, err error) {
	s.t.Helper()
	s.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Logf("%s (-model +queue):\n%s", what, diff)
		s.t.Fatal(what) // nothing of the program is in it, or rapid takes a shorter one for another failure
	}
}

func (s *system) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// tick goes on by a millisecond, and sets the model's time.
func (s *system) tick() {
	s.pass(time.Millisecond)
	s.read()
	if s.rates {
		s.settle()
	}
}

func (s *system) read() {
	given := max(s.m.saved, s.m.numbers)
	now := s.now() + s.back
	if now < given-1000000 {
		s.back += given - now
		now = given
	}
	s.m.now, s.m.told, s.m.wrong = max(now, given), nil, ""
}

// settle has somebody look at what is due. After a kind's rate has let it go on, a call leaves what else is due to the
// next one.
func (s *system) settle() {
	for {
		value, err := s.raw("ZRANGEBYSCORE", Prefix(s.name)+"times", "-inf", fmt.Sprint(s.m.ms()), "WITHSCORES")
		s.must(err)
		due, _ := texts(value)
		if len(due) == 0 {
			return
		}
		for i := 0; i < len(due) && s.m.till == nil; i += 2 {
			if strings.HasPrefix(due[i], "r") {
				s.m.till = &happening{at: whole(due[i+1]), what: due[i]}
			}
		}
		s.must(s.Configure(s.ctx()))
		s.told(func() { s.m.configure(nil) })
		s.m.till = nil
	}
}

func (s *system) ctx() context.Context { return context.Background() }

// told gives what was handed over to the model, has it do the same, and compares all messages.
func (s *system) told(transition func()) {
	s.t.Helper()
	messages, err := s.messages()
	s.must(err)
	var heard []string
	s.m.gifts = nil
	for _, words := range messages {
		switch words[1] {
		case "jobs":
			claims, ok := ParseClaims(words[3:])
			if !ok {
				s.t.Fatalf("claims that do not parse: %q", words)
			}
			s.fenced(claims)
			s.m.gifts = append(s.m.gifts, gift{words[2], claims})
		case "wake":
		default:
			heard = append(heard, strings.Join(words, " "))
		}
	}
	transition()
	if s.m.wrong != "" {
		s.t.Log(s.m.wrong)
		s.t.Fatal("what is handed over is not what the model says")
	}
	slices.Sort(heard)
	slices.Sort(s.m.told)
	s.agree("messages", heard, s.m.told, nil)
	s.m.told = nil
}

// fenced wants tokens to be larger than all before.
func (s *system) fenced(claims []Claim) {
	for _, c := range claims {
		if c.Token <= s.token {
			s.t.Fatalf("Q2: %s is claimed with token %s after %s", c.ID, c.Token, s.token)
		}
		s.token = c.Token
	}
}

func (s *system) enqueue(*rapid.T) {
	s.tick()
	number := s.producer + 1
	items := s.drawItems(4)
	switch {
	case len(items) == 0:
		return
	case s.chance(10, "again") && s.producer > 0:
		number, items = s.producer, s.sent
	case s.chance(20, "late") && s.producer > 1:
		number = s.producer - 1
	}
	got, err := s.Enqueue(s.ctx(), number, items)
	var outcomes []Outcome
	var ok bool
	s.told(func() { outcomes, ok = s.m.enqueue("producer", number, items) })
	if !ok {
		if err == nil || !strings.Contains(err.Error(), "LATE") {
			s.t.Fatalf("a call that comes late: %v", err)
		}
		return
	}
	s.agree("Q10: outcomes", got, outcomes, err)
	s.producer, s.sent = number, items
}

func (s *system) work(*rapid.T) {
	s.tick()
	id := s.pick("worker", s.workerIDs()...)
	r := s.drawReport(id)
	switch {
	case s.chance(10, "again") && s.last[id] != nil:
		r = s.last[id]
	case s.chance(15, "late") && r.Call > 2:
		r.Call -= 2
	}
	answer, err := s.Work(s.ctx(), r)
	var a modelAnswer
	if err == nil {
		s.fenced(answer.Claims)
	}
	s.told(func() { a = s.m.work(r) })
	if a.refused {
		if err == nil || !strings.Contains(err.Error(), "LATE") {
			s.t.Fatalf("a call that comes late: %v", err)
		}
		return
	}
	s.agree("unknown", answer != nil && answer.Unknown, a.unknown, err)
	s.agree("the name is taken for ms", answer.Taken.Milliseconds(), a.taken, nil)
	if a.taken > 0 {
		return
	}
	if a.unknown || r.State == "gone" {
		s.calls[id], s.last[id] = 0, nil
	} else {
		s.calls[id], s.last[id] = r.Call, r
	}
	if !a.unknown {
		s.answered(answer, &a)
	}
}

func (s *system) answered(answer *Answer, a *modelAnswer) {
	s.m.tokens(a.claims, answer.Claims)
	var missing, ticks []string
	for _, c := range answer.Missing {
		missing = append(missing, c.ID+" "+c.Token)
	}
	for _, t := range answer.Ticks {
		ticks = append(ticks, fmt.Sprint(t.Name, " ", t.Ms))
	}
	slices.Sort(ticks)
	slices.Sort(answer.Lost)
	s.agree("claims", ids(answer.Claims), jobIDs(a.claims), nil)
	s.agree("late", fmt.Sprint(answer.Late), fmt.Sprint(a.late), nil)
	s.agree("to cancel", fmt.Sprintf("%q", answer.Cancel), fmt.Sprintf("%q", a.cancel), nil)
	s.agree("missing", fmt.Sprint(missing), fmt.Sprint(a.missing), nil)
	s.agree("lost", fmt.Sprint(answer.Lost), fmt.Sprint(a.lost), nil)
	s.agree("ticks", fmt.Sprint(ticks), fmt.Sprint(a.ticks), nil)
}

func (s *system) change(*rapid.T) {
	s.tick()
	verb := s.pick("change", "cancel", "delete", "retry")
	states := s.pick("states", "", "", "wl", "x")
	var changed []string
	for range s.draw(1, 3, "jobs") {
		id := s.drawID()
		j := s.m.jobs[id]
		if verb == "retry" && j != nil && s.clashes(s.m.now-j.boost) || slices.Contains(changed, id) {
			continue
		}
		changed = append(changed, id)
	}
	if len(changed) == 0 {
		return
	}
	got, err := s.Change(s.ctx(), verb, "because", states, changed)
	var want []string
	s.told(func() { want = s.m.change(verb, "because", states, changed) })
	s.agree(verb, got, want, err)
}

func (s *system) drain(*rapid.T) {
	s.tick()
	workers := s.workerIDs()[s.draw(0, 2, "the first"):]
	got, err := s.Change(s.ctx(), "drain", "because", "", workers)
	var want []string
	s.told(func() { want = s.m.drain(workers) })
	s.agree("drain", got, want, err)
	if s.chance(3, "nobody hears it") {
		s.goOn(16 * time.Second)
	}
}

// push has any program push to the plain list.
func (s *system) push(*rapid.T) {
	words := []string{"RPUSH", s.list()}
	for range s.draw(1, 3, "lines") {
		words = append(words, s.pick("line", "a", "b", ""))
	}
	_, err := s.raw(words...)
	s.must(err)
	s.m.lines = append(s.m.lines, words[2:]...)
}

func (s *system) list() string { return "{" + s.name + "}lines" }

// takeIn takes lines in, as they are, or as another worker has seen them before.
func (s *system) takeIn(*rapid.T) {
	s.tick()
	seen := s.m.lines
	if s.chance(4, "another's lines") {
		seen = s.seen
	}
	if len(seen) == 0 {
		return
	}
	s.seen = slices.Clone(seen)
	lines := Lines{List: s.list(), Text: slices.Clone(seen[:s.draw(1, len(seen), "lines")])}
	items := s.drawItems(len(lines.Text))
	for at := len(items); at < len(lines.Text); at++ {
		lines.Bad = append(lines.Bad, at)
	}
	got, err := s.Intake(s.ctx(), lines, items)
	var want bool
	s.told(func() { want = s.m.intake(lines, items) })
	s.agree("Q10: lines are taken in", got, want, err)
}

func (s *system) configure(*rapid.T) {
	s.tick()
	if s.m.settings["placement"] != "" {
		s.set("crashes", s.pick("crashes", "", "1", "2")) // what may not run at all has no turn
		return
	}
	of := s.pick("of", "", "\tk\tnote", "\ty\ta", "\ty\tb", eachKey)
	if ofKeys := of == eachKey || strings.HasPrefix(of, "\ty"); ofKeys && s.m.settings["turns"] != "" {
		of = "\tk\tmail" // a lane that its key holds up has another turn after that
	}
	var pair []string
	switch s.draw(0, 3, "what") {
	case 0:
		pair = []string{"limit" + of, s.pick("limit", "", "0", "1", "2")}
	case 1:
		if !s.rates && of != eachKey && !strings.HasPrefix(of, "\ty") {
			return
		}
		pair = []string{"rate" + of, s.pick("rate", "", "1400002 1", "700001 2")} // as long, and never over when a transition is made
	case 2:
		if of == eachKey {
			return
		}
		pair = []string{"pause" + of, s.pick("pause", "", "1")}
	default:
		pair = []string{"crashes", s.pick("crashes", "", "1", "2")}
	}
	s.set(pair...)
}

func (s *system) set(pairs ...string) {
	s.must(s.Configure(s.ctx(), pairs...))
	s.told(func() { s.m.configure(pairs) })
}

func (s *system) wait(*rapid.T) {
	s.tick()
	id, inbox := s.drawID(), s.pick("inbox", "q", "r")
	sight, err := s.Look(s.ctx(), id, inbox)
	j, e := s.m.jobs[id], s.m.ended[id]
	state := ""
	if e != nil {
		state = e.end
	} else if j != nil {
		state = j.shown()
		if !slices.Contains(s.m.waits[id], inbox) {
			s.m.waits[id] = append(s.m.waits[id], inbox)
		}
	}
	s.must(err)
	got := ""
	if sight != nil {
		got = sight.State
	}
	s.agree("state", got, state, nil)
}

func (s *system) schedule(*rapid.T) {
	s.tick()
	name := s.pick("schedule", "daily", "hourly")
	t := s.m.ticks[name]
	switch s.draw(0, 3, "schedule does") {
	case 0:
		tick := Tick{name, s.m.ms() + int64(s.draw(1, 20000, "in ms")), s.pick("text", "one", "other")}
		s.must(s.SetSchedule(s.ctx(), tick))
		if t == nil || t.text != tick.Text {
			s.m.saved = s.m.now
			s.m.ticks[name] = &modelTick{tick.Ms, tick.Ms, tick.Text}
		}
	case 1:
		removed, err := s.RemoveSchedule(s.ctx(), name)
		s.agree("removed", removed, t != nil, err)
		if removed {
			s.m.saved = s.m.now
		}
		delete(s.m.ticks, name)
	default:
		tick := Tick{Name: name, Ms: s.m.ms()}
		if t != nil {
			tick.Ms = t.ms - int64(s.draw(0, 4, "early")/4)
		}
		next := s.m.ms() + int64(s.draw(1, 20000, "next in ms"))
		items := s.drawItems(2)
		if s.chance(2, "a tick that was there before") {
			items[0].ID = name + "@1"
		}
		done, err := s.EnqueueTick(s.ctx(), tick, next, items)
		var want bool
		s.told(func() { want = s.m.tick(name, tick.Ms, next, items) })
		s.agree("Q10: a tick is taken", done, want, err)
	}
	s.told(func() {})
}

// passes lets some time go by.
func (s *system) passes(t *rapid.T) {
	s.goOn(time.Duration(rapid.IntRange(1, 20000).Draw(t, "ms")) * time.Millisecond)
}

func (s *system) goOn(span time.Duration) {
	for end := s.now() + span.Microseconds(); s.rates && s.now() < end; {
		next := end
		value, err := s.raw("ZRANGE", Prefix(s.name)+"times", "0", "0", "WITHSCORES")
		s.must(err)
		if first, _ := texts(value); len(first) == 2 {
			ms, err := strconv.ParseInt(first[1], 10, 64)
			s.must(err)
			next = min(end, max(s.now()+1000, ms*1000+500-s.back))
		}
		s.pass(time.Duration(next-s.now()) * time.Microsecond)
		s.read()
		s.settle()
	}
	if !s.rates {
		s.pass(span)
	}
}

func (s *system) clockGoesBack(*rapid.T) {
	if s.back > 0 || s.producer == 0 {
		return
	}
	// The rates that were used up long ago are forgotten by then, and the queue's time goes back to when it was last kept.
	kept, err := s.raw("EXISTS", Prefix(s.name)+"rates")
	s.must(err)
	if kept == int64(0) {
		clear(s.m.rates)
	}
	s.pass(-time.Hour)
	s.read()
	s.must(s.Configure(s.ctx())) // else the next call that changes nothing forgets how far
	s.told(func() { s.m.configure(nil) })
}

// check compares everything that can be seen.
func (s *system) check(*rapid.T) {
	found, err := s.Check(s.ctx(), false, 15*time.Second)
	s.agree("findings", fmt.Sprint(found), "[]", err)
	var lines []string
	for _, ended := range []bool{false, true} {
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			sights, next, err := s.Scan(s.ctx(), ended, cursor, &Sieve{})
			s.must(err)
			for _, sight := range sights {
				lines = append(lines, showSight(sight, ended))
			}
			cursor = next
		}
	}
	workers, _, err := s.Workers(s.ctx(), "0")
	s.must(err)
	for _, w := range workers {
		var room []string
		for _, r := range w.Room {
			room = append(room, fmt.Sprint(r.Name, ":", r.Used, ":", r.Limit))
		}
		slices.Sort(room)
		lines = append(lines, fmt.Sprint("worker ", w.ID, " ", w.State, " until ", w.Lease.UnixMilli(), " ", strings.Join(room, ","), " offered ", w.Offered))
	}
	slices.Sort(lines)
	s.agree("Q1: what is seen", slices.Compact(lines), s.m.shown(), nil)
	s.followHistory()
	s.checkSequences()
	stats, err := s.Stats(s.ctx())
	s.must(err)
	s.agree("counters", stats.Counters, counted(s.m.counters), nil)
	s.agree("jobs", stats.Jobs, len(s.m.jobs), nil)
	for list, want := range map[string][]string{s.list(): s.m.lines, s.list() + ":bad": s.m.bad} {
		value, err := s.raw("LRANGE", list, "0", "-1")
		got, _ := texts(value)
		s.agree("the plain list, or what was no job of it", fmt.Sprintf("%q", got), fmt.Sprintf("%q", want), err)
	}
}

func counted(counters map[string]int) map[string]string {
	text := map[string]string{}
	for name, n := range maps.All(counters) {
		text[name] = strconv.Itoa(n)
	}
	return text
}

func showSight(s *Sight, ended bool) string {
	if ended {
		return fmt.Sprint(s.ID, " ", s.State, " ", s.Record.Attempts, " ", s.Record.Crashes, " ", s.Result, " ", s.Record.Note)
	}
	due := int64(0)
	if s.State == "l" || s.State == "o" {
		due = s.Due.UnixMilli()
	}
	return fmt.Sprint(s.ID, " ", s.State, " ", s.Record.Attempts, " ", s.Record.Crashes, " ", s.Record.Error, " ", s.Worker, " ", due, " ", s.Record.Note, " ", s.Record.For, " ",
		s.Record.Declined)
}

// begin draws what an operator has set before all else.
func (s *system) begin() {
	s.read()
	if s.offers && s.chance(2, "with a placement") {
		s.rates = false
		s.set("placement", s.pick("placement", "longest", "least"))
		return
	}
	pairs := []string{"limit\tk\tnote", s.pick("limit of note", "", "1", "2")}
	if s.chance(2, "turns") {
		pairs = append(pairs, "turns", "1")
	} else {
		pairs = append(pairs, "limit"+eachKey, s.pick("limit of keys", "", "1"), "rate\ty\ta", s.pick("rate of a", "", "1400002 1"))
	}
	if s.rates {
		pairs = append(pairs, "rate\tk\tmail", s.pick("rate of mail", "", "700001 2"), "rate", s.pick("rate of all", "", "700001 2"))
	}
	s.set(pairs...)
}

// soak is how many times longer than usual random programs are tried: `make soak-queue`.
var soak, _ = strconv.Atoi(os.Getenv("SIGNALBOX_QUEUE_SOAK")) // 0 without it

// programs sets how many are tried, unless somebody said so on the command line. Without a soak they are the same ones
// every time, so that the tests of a change fail by that change alone.
func programs(t *testing.T, n int) {
	t.Helper()
	set := func(name, value string) {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Value.Set(f.DefValue) }) // the value that it had
		}
	}
	set("rapid.checks", strconv.Itoa(cases.Count(n)*max(1, soak)))
	if soak == 0 {
		set("rapid.seed", "1")
	}
}

func agreesWithModel(t *testing.T, make func(name string) ground) {
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		name := fmt.Sprint("model ", run)
		g := make(name)
		s := &system{
			ground: g, t: t, name: name, m: newModel(), calls: map[string]int64{}, last: map[string]*Report{},
			numbered: map[string]*sequence{},
		}
		var err error
		s.Store, err = New(g, name, "producer", time.Second)
		s.must(err)
		s.rates = rapid.Bool().Draw(t, "rates of kinds")
		s.offers = rapid.Bool().Draw(t, "offers")
		s.begin()
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": s.enqueue, "enqueue more": s.enqueue, "enqueue numbered": s.enqueueNumbered, "forget a sequence": s.forget,
			"work": s.work, "work on": s.work, "work again": s.work,
			"work more": s.work, "change": s.change, "configure": s.configure, "wait": s.wait, "schedule": s.schedule,
			"drain": s.drain, "push": s.push, "take in": s.takeIn, "history": s.beginHistory,
			"rebuild": s.rebuild,
			"pass":    s.passes, "clock goes back": s.clockGoesBack, "": s.check,
		})
	})
}
