package racelab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// The task queue: its scripts and the Go that calls them, unchanged. What a client does is what the library does: a call
// that failed is made again under its number, a worker whose lease has ended begins anew, heartbeats say what is held. All
// messages are lost: they are hints. That what crashed is replaced (Q5) and that nothing stands still (Q7) is seen by
// whoever comes last, and is Freed.

const queueLease = 3 * time.Second

// The promises of the queue, by their numbers in docs/queue/promises.md.
const (
	inOnePlace    Promise = "Q1: a job is in exactly one state"
	endsOnce      Promise = "Q2: a job whose end was acknowledged never runs again"
	neverLost     Promise = "Q3: a job whose enqueue was acknowledged is never lost"
	withinLimits  Promise = "Q4: what runs under a limit never exceeds it"
	leavesNothing Promise = "Q8: an idle queue leaves no key without an expiry"
	existsOnce    Promise = "Q10: a schedule's tick, a unique job and the job of a line exist once"
)

var queueFaults = []Fault{Crash, LoseRequest, LoseReply, Pause}

// queueKeys is what the keys of the queue begin with, queueList a list that it takes lines from.
var (
	queueKeys = store.Prefix("race")
	queueList = "lines"
)

// queueLimit has clients that enqueue a job each, run whatever they are given, and leave. One of a key runs at a time.
var queueLimit = queueOf("queue", "the task queue of Signalbox: a limit of one for a key", 1, func(r *racer) { r.live() },
	Limit, Freed, inOnePlace, endsOnce, neverLost, withinLimits, leavesNothing)

// queueOnce has clients that enqueue the same unique job, and the job of the same tick.
var queueOnce = queueOf("queue-once", "the task queue of Signalbox: unique jobs and ticks", 2, func(r *racer) { r.makeOnce() },
	inOnePlace, existsOnce, neverLost)

// queueLines has clients that push a line each to a plain list, and take in what they find there.
var queueLines = queueOf("queue-list", "the task queue of Signalbox: lines of a plain list", 2, func(r *racer) { r.pushAndTake() },
	inOnePlace, existsOnce, neverLost)

func queueOf(name, summary string, faults int, life func(*racer), promises ...Promise) *Algorithm {
	return &Algorithm{
		Name: name, Summary: summary, Permits: 1, Timeout: queueLease * 9 / 10, Clients: 2, FaultsMax: faults, Timeless: true,
		Promises: promises, Faults: queueFaults, Pauses: []time.Duration{queueLease + time.Second},
		Life: func(c *Client) { life(newRacer(c)) }, Judge: judgeQueue,
	}
}

// racer is one client: a producer and a worker.
type racer struct {
	c      *Client
	s      *store.Store
	lives  int // of the worker
	worker string
	call   int64
	held   map[string]string // token of each job
	done   []store.Done
	tries  int // that are left
}

func newRacer(c *Client) *racer {
	s, err := store.New(goredis.New(c.Redis), "race", c.Name, time.Minute)
	if err != nil {
		panic(err) // the laboratory's own names
	}
	return &racer{c: c, s: s, tries: 6}
}

// begin stops before the next call. It is false if the client is to end.
func (r *racer) begin(op string) bool {
	r.tries--
	return r.tries >= 0 && r.c.Begin(op)
}

func (r *racer) live() {
	item := store.Item{ID: r.c.Name, Lane: store.Lane{Kind: "note", Key: "x"}, Rest: "{}"}
	if !r.enqueue(item) {
		return
	}
	r.reborn()
	for r.work("online") {
		for id, token := range r.held {
			r.done = append(r.done, store.Done{ID: id, Token: token, Verb: "done"})
		}
		if len(r.done) > 0 && !r.work("gone") {
			return
		}
		if r.call == 0 {
			return
		}
	}
}

// enqueue sets the limit and takes a job in, again until it is answered.
func (r *racer) enqueue(item store.Item) bool {
	for r.begin("enqueue") {
		// Two requests, of which the first may be repeated as one likes.
		if err := r.s.Configure(background, "limit\ty\tx", "1"); err != nil {
			continue
		}
		if _, err := r.s.Enqueue(background, 1, []store.Item{item}); err == nil {
			r.c.note("enqueued", item.ID)
			return true
		}
	}
	return false
}

func (r *racer) reborn() {
	r.lives++
	r.worker, r.call, r.held, r.done = fmt.Sprintf("%s/%d", r.c.Name, r.lives), 0, map[string]string{}, nil
}

// work makes a call until it is answered. It is false if the client is to end.
func (r *racer) work(state string) bool {
	for r.begin("work") {
		report := &store.Report{
			Worker: r.worker, Call: r.call + 1, Lease: queueLease, State: state, Room: "slot:1", Kinds: "note", Info: "{}", Want: 1,
			Register: r.call == 0, Inventory: []string{}, Done: r.done,
		}
		for _, d := range r.done {
			r.c.note("reported", d.ID)
			r.c.gaveBack()
		}
		answer, err := r.s.Work(background, report)
		if err != nil {
			continue
		}
		if answer.Unknown {
			r.c.told("release", nil)
			r.reborn()
			continue
		}
		r.answered(report, answer)
		return true
	}
	return false
}

func (r *racer) answered(report *store.Report, answer *store.Answer) {
	for _, d := range report.Done {
		if len(answer.Late) == 0 {
			r.c.note("ended", d.ID)
		}
		r.c.told("release", nil)
	}
	r.call, r.held, r.done = report.Call, map[string]string{}, nil
	if report.State == "gone" {
		r.call = 0
	}
	for _, c := range append(answer.Claims, answer.Missing...) {
		r.held[c.ID] = c.Token
		r.c.note("claimed", c.ID)
		r.c.Has(r.c.begun)
	}
}

func (r *racer) makeOnce() {
	tick := store.Tick{Name: "daily", Ms: 1, Text: "{}"}
	for r.begin("schedule") {
		if r.s.SetSchedule(background, tick) == nil {
			break
		}
	}
	for r.begin("tick") {
		item := store.Item{ID: "tick " + r.c.Name, Lane: store.Lane{Kind: "tick"}, Rest: "{}"}
		if _, err := r.s.EnqueueTick(background, tick, 1<<45, []store.Item{item}); err == nil {
			break
		}
	}
	for r.begin("enqueue") {
		item := store.Item{ID: r.c.Name, Lane: store.Lane{Kind: "once"}, UniqueField: "u", UniqueIn: "wlhc", Rest: "{}"}
		outcomes, err := r.s.Enqueue(background, 1, []store.Item{item})
		if err != nil {
			continue
		}
		if outcomes[0].Other == "" {
			r.c.note("enqueued", item.ID)
		}
		return
	}
}

// pushAndTake pushes a line once, since nobody knows what became of a push that was not answered.
func (r *racer) pushAndTake() {
	if !r.begin("push") {
		return
	}
	if err := r.c.Redis.RPush(background, queueList, r.c.Name).Err(); err == nil {
		r.c.note("pushed", r.c.Name)
	}
	for r.begin("take in") {
		lines, err := r.s.Peek(background, queueList, time.Second)
		if err != nil {
			continue
		}
		var items []store.Item
		for _, line := range lines {
			id := fmt.Sprintf("%s of %s %d", line, r.c.Name, r.tries)
			items = append(items, store.Item{ID: id, Lane: store.Lane{Kind: "line", Key: line}, Rest: "{}"})
		}
		if done, err := r.s.Intake(background, store.Lines{List: queueList, Text: lines}, items); err == nil && done {
			return
		}
	}
}

// note keeps something for judgeQueue, until the run is over.
func (c *Client) note(what, where string) {
	c.notes = append(c.notes, note{what, where})
	c.learn('n', []byte(what+" "+where))
}

// note is something that a client has seen.
type note struct{ what, where string }

// stocktaking is what is there of the queue.
type stocktaking struct {
	w       *world
	jobs    map[string][]string // the head of each record
	claimed []string
	lines   []string
	notes   []note // of all clients
}

// judgeQueue looks at the keys. It returns the promise that is broken, "" if none is, and why.
func judgeQueue(w *world) (Promise, string) {
	s := &stocktaking{w: w, jobs: map[string][]string{}}
	for flat := s.read("HGETALL", "jobs"); len(flat) > 1; flat = flat[2:] {
		head, _, _ := strings.Cut(flat[1], "\n")
		s.jobs[flat[0]] = strings.Split(head, "\t")
	}
	s.claimed, s.lines = s.read("HKEYS", "claims"), bulks(w.engine.Do("LRANGE", queueList, "0", "-1"))
	for _, c := range w.clients {
		s.notes = append(s.notes, c.notes...)
	}
	for _, judge := range []func() (Promise, string){s.places, s.acknowledged, s.once, s.left} {
		if p, why := judge(); p != "" {
			return p, why
		}
	}
	return "", ""
}

func (s *stocktaking) read(words ...string) []string {
	words[1] = queueKeys + words[1]
	return bulks(s.w.engine.Do(words...))
}

func (s *stocktaking) places() (Promise, string) {
	places := map[string]int{}
	for _, entry := range s.read("ZRANGE", "waiting", "0", "-1") {
		places[entry[strings.LastIndex(entry, "\t")+1:]]++
	}
	for _, id := range s.claimed {
		places[id]++
	}
	for id := range s.jobs {
		if places[id] != 1 {
			return inOnePlace, fmt.Sprintf("%s is in %d places", id, places[id])
		}
	}
	if len(places) > len(s.jobs) {
		return inOnePlace, fmt.Sprintf("%d jobs stand in places, of %d", len(places), len(s.jobs))
	}
	if len(s.claimed) > 1 {
		return withinLimits, fmt.Sprintf("%d jobs of one key are claimed", len(s.claimed))
	}
	return "", ""
}

// acknowledged compares the jobs that are there with what clients were told.
func (s *stocktaking) acknowledged() (Promise, string) {
	for _, n := range s.notes {
		_, there := s.jobs[n.where]
		switch {
		case n.what == "enqueued" && !there && !slices.Contains(s.notes, note{"reported", n.where}):
			return neverLost, n.where + " was enqueued, nobody has reported its end, and it is not there"
		case n.what == "pushed" && !slices.Contains(s.lines, n.where) && s.count(13, n.where) == 0:
			return neverLost, n.where + " was pushed, and there is neither a line nor a job of it"
		case n.what == "ended" && there:
			return endsOnce, "the end of " + n.where + " was acknowledged, and it is there"
		}
	}
	return "", ""
}

// count is of how many jobs a field of the head has a value.
func (s *stocktaking) count(field int, value string) (n int) {
	for _, head := range s.jobs {
		if head[field] == value {
			n++
		}
	}
	return n
}

// once counts unique jobs, those of the tick and those of each line.
func (s *stocktaking) once() (Promise, string) {
	if ticks, unique := s.count(10, "tick"), s.count(10, "once"); ticks > 1 || unique > 1 {
		return existsOnce, fmt.Sprintf("there are %d jobs of one tick, and %d of one fingerprint", ticks, unique)
	}
	for _, c := range s.w.clients {
		jobs, there := s.count(13, c.Name), slices.Contains(s.lines, c.Name)
		if jobs > 1 || jobs == 1 && there {
			return existsOnce, fmt.Sprintf("there are %d jobs of the line %s, which is in the list: %v", jobs, c.Name, there)
		}
	}
	return "", ""
}

// left looks for what an idle queue leaves.
func (s *stocktaking) left() (Promise, string) {
	if len(s.jobs) > 0 {
		return "", ""
	}
	for _, key := range bulks(s.w.engine.Do("KEYS", "*")) {
		name := strings.TrimPrefix(key, queueKeys)
		set := name == "settings" || name == "schedules" || name == "ticks" || name == queueList
		if !set && string(s.w.engine.Do("PTTL", key)) == ":-1\r\n" {
			return leavesNothing, "there are no jobs, and " + name + " stays for ever"
		}
	}
	return "", ""
}
