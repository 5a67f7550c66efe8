package racelab

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Bounds are where a search ends.
type Bounds struct {
	Clients int `json:"clients"`
	// Faults is how many misfortunes a schedule may hold, Depth how many steps.
	Faults int `json:"faults"`
	Depth  int `json:"depth"`
	// Schedules is how many are run at most, 0 for any number.
	Schedules int `json:"schedules"`
	// Random is how many schedules are drawn besides, with one client and one
	// misfortune more, by Seed.
	Random int    `json:"random"`
	Seed   uint64 `json:"seed"`

	// For tests of the lab: tries everything everywhere; looks for these only.
	awake bool
	only  []Promise
}

// Defaults are the bounds of an algorithm unless somebody says otherwise.
func (a *Algorithm) Defaults() Bounds {
	return Bounds{Clients: a.Clients, Faults: a.FaultsMax, Depth: 60, Schedules: 40_000, Random: 500, Seed: 1}
}

// Report is what a search has found.
type Report struct {
	Algorithm string    `json:"algorithm"`
	Bounds    Bounds    `json:"bounds"`
	Findings  []Finding `json:"findings"`
	// Kept are the promises that nothing was found to break.
	Kept []Promise `json:"kept"`
	// Schedules is how many were run; each state is one that was seen for the
	// first time. Cut are those that were ended by the depth.
	Schedules int `json:"schedules"`
	States    int `json:"states"`
	Cut       int `json:"cut"`
	// Random is how many were drawn besides.
	Random int `json:"random"`
	// Faults is how often each kind was tried.
	Faults map[Fault]int `json:"faults"`
	// Whole says that everything within the bounds was seen.
	Whole bool `json:"whole"`
}

// Finding is a broken promise with the schedule that breaks it.
type Finding struct {
	Violation
	Choices []Choice `json:"choices"`
	Rows    []Row    `json:"rows"`
}

// node is a state of the world, by the schedule that leads there.
type node struct {
	parent *node
	choice Choice
	depth  int
	faults int
	todo   []Choice  // what can happen there and has not been tried
	asleep []sleeper // what was tried elsewhere, with the same end
}

// sleeper is a step that need not be tried: it was, in another order.
type sleeper struct {
	choice Choice
	reach  footprint
}

// place is a state of the world, and how many faults have led there: the fewer,
// the more can follow.
type place struct {
	world  [sha256.Size]byte
	faults int
}

// search sees all states within the bounds, those with few faults first, and
// among these those that few steps lead to. So what breaks a promise first is
// the shortest schedule of those with the fewest faults. A state is reached by
// running its schedule from the beginning. One that was seen is not gone on
// from, and of two steps that do not concern each other one order is enough:
// the second is put to sleep (sleep sets, as Godefroid describes them). Not so for
// clients that a life leads: with sleep sets 4,355 of the 4,422 states of the
// ledger were seen, and why the others were lost is not known.
type search struct {
	world  *world
	bounds Bounds
	report Report
	open   []Promise // not broken yet
	levels [][][]*node
	seen   map[place][]Choice // with what slept there
	tell   func(Report)
}

// Explore searches all schedules of an algorithm within the bounds. tell is
// called now and then with what there is so far; it may be nil.
func Explore(a *Algorithm, b Bounds, tell func(Report)) Report {
	s := &search{
		world: newWorld(a, b.Clients), bounds: b, open: slices.Clone(a.Promises), seen: map[place][]Choice{}, tell: tell,
		report: Report{Algorithm: a.Name, Bounds: b, Findings: []Finding{}, Faults: map[Fault]int{}},
	}
	if b.only != nil {
		s.open = slices.Clone(b.only)
	}
	s.sweep()
	s.chance(a, b.Seed, b.Random)
	s.report.Kept = append([]Promise{}, s.open...)
	return s.report
}

// sweep searches all schedules within the bounds.
func (s *search) sweep() {
	b := s.bounds
	defer s.world.close()
	s.levels = make([][][]*node, b.Faults+1)
	for f := range s.levels {
		s.levels[f] = make([][]*node, b.Depth+1)
	}
	s.world.begin()
	root := &node{choice: Choice{Client: -1}}
	root.todo = s.world.choices(b.Faults > 0)
	s.levels[0][0] = []*node{root}
	s.report.Whole = s.all() && s.report.Cut == 0
}

// progress tells whoever wants to know.
func (s *search) progress() {
	if s.tell != nil {
		s.tell(s.report)
	}
}

// all goes through the states. It is false if it has stopped before the end.
func (s *search) all() bool {
	for f := range s.levels {
		for d := range s.levels[f] {
			for i := 0; i < len(s.levels[f][d]); i++ {
				if !s.expand(s.levels[f][d][i]) {
					return false
				}
				s.levels[f][d][i] = nil
			}
		}
	}
	return true
}

// expand tries all that can happen in a state.
func (s *search) expand(n *node) bool {
	asleep := n.asleep
	for _, choice := range n.todo {
		if slices.ContainsFunc(asleep, func(t sleeper) bool { return t.choice == choice }) {
			continue
		}
		if len(s.open) == 0 || s.bounds.Schedules > 0 && s.report.Schedules >= s.bounds.Schedules {
			return false
		}
		reach := s.try(n, choice, asleep)
		asleep = append(slices.Clip(asleep), sleeper{choice, reach})
	}
	return true
}

// try runs a schedule with one more step than that of n, and returns what the
// step has touched.
func (s *search) try(n *node, choice Choice, asleep []sleeper) footprint {
	w := s.world
	w.begin()
	for _, c := range n.path() {
		w.do(c)
	}
	s.report.Schedules++
	before := w.digest()
	w.probing = true
	w.do(choice)
	w.probing = false
	reach := w.step
	reach.changed = reach.changed || w.digest() != before
	child := &node{parent: n, choice: choice, depth: n.depth + 1, faults: n.faults}
	if choice.IsFault() {
		child.faults++
		s.report.Faults[Fault(choice.Kind)]++
	}
	for _, t := range asleep {
		if !s.bounds.awake && w.algorithm.Life == nil && t.reach.apart(&reach) {
			child.asleep = append(child.asleep, t)
		}
	}
	s.reached(child)
	s.progress()
	return reach
}

// reached looks at a state that a schedule has led to.
func (s *search) reached(child *node) {
	w := s.world
	child.todo = w.choices(child.faults < s.bounds.Faults)
	if w.violation == nil && !s.isNew(child) {
		return
	}
	if w.ended() {
		w.judgeEnd()
	}
	switch {
	case w.violation != nil:
		s.found(child)
	case len(child.todo) == 0:
	case child.depth >= s.bounds.Depth:
		s.report.Cut++
	default:
		s.levels[child.faults][child.depth] = append(s.levels[child.faults][child.depth], child)
	}
}

// isNew says whether there is anything to try in a state that was not tried when
// it was seen before, and leaves only that to do.
func (s *search) isNew(child *node) bool {
	key := place{s.world.key(), child.faults}
	var asleep []Choice
	for _, t := range child.asleep {
		asleep = append(asleep, t.choice)
	}
	slept, seen := s.seen[key]
	if !seen {
		s.report.States++
		s.seen[key] = asleep
		return true
	}
	missed := slices.DeleteFunc(slices.Clone(slept), func(c Choice) bool { return slices.Contains(asleep, c) })
	if len(missed) == 0 {
		return false
	}
	child.todo = slices.DeleteFunc(child.todo, func(c Choice) bool { return !slices.Contains(missed, c) })
	s.seen[key] = slices.DeleteFunc(slices.Clone(slept), func(c Choice) bool { return slices.Contains(missed, c) })
	return len(child.todo) > 0
}

func (s *search) found(n *node) {
	at := slices.Index(s.open, s.world.violation.Promise)
	if at < 0 {
		return
	}
	s.open = slices.Delete(s.open, at, at+1)
	s.report.Findings = append(s.report.Findings, s.world.replay(n.path()))
}

func (n *node) path() []Choice {
	path := make([]Choice, n.depth)
	for ; n.parent != nil; n = n.parent {
		path[n.depth-1] = n.choice
	}
	return path
}

// replay runs a schedule from the beginning and writes it down.
func (w *world) replay(path []Choice) Finding {
	rows := []Row{}
	w.begin()
	w.rows = &rows
	for _, c := range path {
		w.do(c)
	}
	if w.violation == nil && w.ended() {
		w.judgeEnd()
	}
	w.rows = nil
	f := Finding{Choices: path, Rows: rows}
	if w.violation != nil {
		f.Violation = *w.violation
	}
	return f
}

func (w *world) digest() string { return string(w.engine.Do("DEBUG", "DIGEST")) }

// key is the state of the world: two states with the same key have the same future.
func (w *world) key() (key [sha256.Size]byte) {
	sum := sha256.New()
	number := func(n int64) { sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) } //nolint:gosec // a bit pattern
	text := func(t string) { number(int64(len(t))); sum.Write([]byte(t)) }
	text(w.digest())
	number(w.engine.Now().UnixMicro())
	number(int64(w.ticks))
	number(w.newest)
	if w.paused { // no other pause follows
		number(1)
	}
	for _, i := range w.queue {
		number(int64(i))
	}
	for _, c := range w.clients {
		number(int64(c.stop.kind))
		if c.belief.holds {
			number(c.belief.until.UnixMicro())
		}
		if c.tidy() {
			number(5)
		}
		for _, n := range c.notes {
			text(n.what)
			text(n.where)
		}
		if c.stop.kind == atEnd { // how else it came to its end is nothing to anybody
			continue
		}
		if c.led() {
			text(c.life.key())
		} else {
			sum.Write(c.history[:])
		}
		number(int64(c.skew))
		for _, k := range c.conns {
			switch {
			case k.lost || k.round != w.round:
			case k.remote.Disturbed():
				number(2)
			case k.remote.Pending():
				number(3)
			case c.stop.kind == atAnswer && c.stop.conn == k:
				text(string(k.reply))
			default:
				number(4)
			}
		}
		for _, message := range c.mail {
			text(message)
		}
	}
	sum.Sum(key[:0])
	return key
}
