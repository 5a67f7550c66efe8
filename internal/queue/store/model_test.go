package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The model is the queue as one would write it without a server: maps, loops, and a sort wherever something has an order.
// Random transitions go to both (model_system_test.go); every answer, every message and, after each, everything that can be
// seen must agree. It knows nothing of lanes that are parked, of an index, or of what a call may look at in vain: a job runs
// when it may, and that is Q7.
//
// What it leaves open is which of several idle workers is handed a job. It is told who was, and says whether that worker was
// one of those, and what it had to be given.

// What transitions are about to be told otherwise: the name of settings for every key that has none of its own, and which
// workers see to ticks.
var (
	eachKey    = map[bool]string{true: "\te", false: "\ty\t*"}[strings.Contains(prelude, `'limit\te'`)]
	seesToTick = func(state string) bool {
		return state == "online" || state != "gone" && strings.Contains(workText, "if state ~= 'gone' then\n    for _, name")
	}
)

// modelJob is a job that has not ended.
type modelJob struct {
	id, laneName, state string // w, l, h, c
	lane                Lane
	order, boost        int64 // µs
	attempts, crashes   int
	retention, enqueued int64 // ms
	uniqueIn, unique    string
	err                 string
	due                 int64 // ms
	left                int   // parents that have not ended, of one that is held back
	after               After
	worker, token       string
	told                bool // it is to be canceled
	note                string
	until               int64  // ms until which it may be accepted; 0: it is no offer
	reserved            string // for whom
	declined            []string
	bound               int64 // ms until which these two hold
}

// modelEnded is what is kept of one that has.
type modelEnded struct {
	*modelJob
	end, text string
	until     int64 // ms
}

type modelWorker struct {
	id, state, info  string
	call, lease      int64 // lease: ms at which it ends
	idle, drained    bool  // drained: it is to, and has not heard
	tags, kinds      []string
	room, used       map[string]int
	tagsText, kindsT string
	name             string
	offer            int64 // ms; 0: it is given jobs
	stays            bool
	since            int64 // its rank, where there is a placement
	share            int
	freed            bool // an offer of its has ended: it is told, and makes a call for what it has room for
}

// parting is the end of a job that others wait for.
type parting struct {
	at            int64 // ms
	parent, state string
}

// gift is a message that hands jobs over.
type gift struct {
	worker string
	claims []Claim
}

// model is one queue.
type model struct {
	now      int64 // µs
	saved    int64 // the last of now that the server keeps
	jobs     map[string]*modelJob
	ended    map[string]*modelEnded
	unique   map[string]string // kind TAB fingerprint -> id
	workers  map[string]*modelWorker
	settings map[string]string
	rates    map[string]int64 // µs until which a rate is used up
	children map[string][]string
	partings []parting
	parted   bool // in this transition
	waits    map[string][]string
	turns    map[string]int64 // of lanes
	numbers  int64
	counters map[string]int
	ticks    map[string]*modelTick
	told     []string // messages of the last transition, but for those that hand over or wake
	gifts    []gift   // what the server handed over in it
	wrong    string   // with what was handed over
	calls    map[string]modelCall
	lines    []string // of a plain list, and those of it that were no jobs
	bad      []string
	drains   map[string]int64 // workers that have lost their lease before they heard, and the ms until which they may
	till     *happening       // what comes after it is left to the next transition
}

type modelTick struct {
	ms, asked int64
	text      string
}

// modelCall is the last call of a producer.
type modelCall struct {
	number, until int64
	outcomes      []Outcome
	ids           string // of a sequence's
}

func newModel() *model {
	return &model{
		jobs: map[string]*modelJob{}, ended: map[string]*modelEnded{}, unique: map[string]string{},
		workers: map[string]*modelWorker{}, settings: map[string]string{}, rates: map[string]int64{},
		children: map[string][]string{}, waits: map[string][]string{}, turns: map[string]int64{},
		counters: map[string]int{}, ticks: map[string]*modelTick{}, calls: map[string]modelCall{}, drains: map[string]int64{},
	}
}

func (m *model) ms() int64 { return m.now / 1000 }

// number is one that is larger than all before.
func (m *model) number() int64 {
	m.numbers = max(m.numbers+1, m.now)
	return m.numbers
}

func (m *model) setting(field string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(m.settings[field], 10, 64); err == nil {
		return n
	}
	return otherwise
}

func (m *model) count(what, kind string) { m.counters[what+"\t"+kind]++ }

func laneName(l *Lane) string {
	return l.Kind + "\t" + strings.Join(l.Tags, ",") + "\t" + l.Cost + "\t" + l.Key
}

// Limits and rates.

// running counts the jobs that run, of all, of a kind or of a key.
func (m *model) running(of func(*modelJob) bool) (n int64) {
	for _, j := range m.jobs {
		if j.state == "c" && of(j) {
			n++
		}
	}
	return n
}

// scopes are what a job runs under: the queue, its kind and its key, each as its name, its settings and who else counts.
func (m *model) scopes(j *modelJob) []modelScope {
	all := []modelScope{
		{"q", m.settings["limit"], m.settings["rate"], m.settings["pause"], func(*modelJob) bool { return true }},
		m.scope("k", j.lane.Kind, func(o *modelJob) bool { return o.lane.Kind == j.lane.Kind }),
	}
	if j.lane.Key != "" {
		s := m.scope("y", j.lane.Key, func(o *modelJob) bool { return o.lane.Key == j.lane.Key })
		s.limit = cmp.Or(s.limit, m.settings["limit"+eachKey])
		s.rate = cmp.Or(s.rate, m.settings["rate"+eachKey])
		all = append(all, s)
	}
	return all
}

type modelScope struct {
	name, limit, rate, pause string
	counts                   func(*modelJob) bool
}

func (m *model) scope(what, name string, counts func(*modelJob) bool) modelScope {
	of := "\t" + what + "\t" + name
	return modelScope{what + "\t" + name, m.settings["limit"+of], m.settings["rate"+of], m.settings["pause"+of], counts}
}

// open says whether a job may start now, whoever runs it.
func (m *model) open(j *modelJob) bool {
	for _, s := range m.scopes(j) {
		limit, err := strconv.ParseInt(s.limit, 10, 64)
		switch every, burst := rateOf(s.rate); {
		case s.pause != "", err == nil && m.running(s.counts) >= limit:
			return false
		case every > 0 && max(m.rates[s.name], m.now)-m.now > (burst-1)*every:
			return false
		}
	}
	return true
}

func rateOf(text string) (every, burst int64) {
	if n, _ := fmt.Sscan(text, &every, &burst); n != 2 {
		return 0, 0
	}
	return every, burst
}

// Claiming.

func costOf(text string) map[string]int {
	cost := map[string]int{}
	for _, part := range strings.Split(cmp.Or(text, "slot=1"), ",") {
		name, amount, _ := strings.Cut(part, "=")
		cost[name], _ = strconv.Atoi(amount)
	}
	return cost
}

func (w *modelWorker) occupy(j *modelJob, by int) {
	for name, n := range costOf(j.lane.Cost) {
		w.used[name] += by * n
	}
}

func (w *modelWorker) full() bool {
	for name := range w.room {
		if w.used[name] < w.room[name] {
			return false
		}
	}
	return true
}

// can says whether a worker is one for a job, and has room for it.
func (w *modelWorker) can(j *modelJob) bool {
	if w.state != "online" || !slices.Contains(w.kinds, j.lane.Kind) {
		return false
	}
	for _, tag := range j.lane.Tags {
		if !slices.Contains(w.tags, tag) {
			return false
		}
	}
	if j.reserved != "" && j.reserved != w.name || slices.Contains(j.declined, w.name) {
		return false
	}
	for name, n := range costOf(j.lane.Cost) {
		if room, ok := w.room[name]; !ok || n > 0 && w.used[name]+n > room {
			return false
		}
	}
	return true
}

// ready are the jobs whose turn comes next, in order: by age, or one of each lane by the lanes' turns.
func (m *model) ready() []*modelJob {
	var all []*modelJob
	for _, j := range m.jobs {
		if j.state == "w" {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.laneName, b.laneName), cmp.Compare(a.id, b.id))
	})
	if m.settings["turns"] == "" {
		return all
	}
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(j *modelJob) bool {
		was := seen[j.laneName]
		seen[j.laneName] = true
		return was
	})
	slices.SortFunc(all, func(a, b *modelJob) int { return cmp.Compare(m.turns[a.laneName], m.turns[b.laneName]) })
	return all
}

// next is the job that a worker is to be given, nil if there is none.
func (m *model) next(w *modelWorker) *modelJob {
	for _, j := range m.ready() {
		if w.can(j) && m.open(j) {
			return j
		}
	}
	return nil
}

// claim gives a worker what it has room for.
func (m *model) claim(w *modelWorker, n int) (taken []*modelJob) {
	for len(taken) < n {
		j := m.next(w)
		if j == nil {
			break
		}
		for _, s := range m.scopes(j) {
			if every, _ := rateOf(s.rate); every > 0 {
				m.rates[s.name] = max(m.rates[s.name], m.now) + every
			}
		}
		j.state, j.worker = "c", w.id
		m.number()
		w.occupy(j, 1)
		m.leaveLane(j, true)
		taken = append(taken, j)
	}
	for _, j := range taken {
		if w.offer > 0 {
			j.until = m.ms() + w.offer
			m.count("offered", j.lane.Kind)
		} else {
			m.free(j, "c")
		}
	}
	return taken
}

// handOver gives what has become ready to idle workers. Which of them is first is the server's choice.
func (m *model) handOver(except string) {
	for ; len(m.gifts) > 0 && m.wrong == ""; m.gifts = m.gifts[1:] {
		m.accept(m.gifts[0], except)
	}
	for _, w := range m.workers {
		if j := m.next(w); w.idle && !w.freed && w.id != except && j != nil && m.wrong == "" {
			m.wrong = fmt.Sprintf("Q7: %s waits, and %s is idle", j.id, w.id)
		}
	}
}

// accept takes a gift in, if it is what an idle worker has to be given.
func (m *model) accept(g gift, except string) {
	w := m.workers[g.worker]
	if w == nil || !w.idle || w.id == except {
		m.wrong = fmt.Sprintf("%s is handed %q, and is not idle", g.worker, ids(g.claims))
		return
	}
	if first := m.next(w); first != nil && !w.freed {
		if other := m.misplaced(first, w, except); other != "" {
			m.wrong = fmt.Sprintf("%s is handed %s, and it is %s's turn", w.id, first.id, other)
			return
		}
	}
	taken := m.claim(w, MostClaims)
	m.setIdle(w, !w.full(), true)
	if got, want := ids(g.claims), jobIDs(taken); got != want {
		m.wrong = fmt.Sprintf("%s is handed %q, the model says %q", w.id, got, want)
	}
	m.tokens(taken, g.claims)
}

// tokens notes those that were given out.
func (m *model) tokens(taken []*modelJob, claims []Claim) {
	for i := range min(len(taken), len(claims)) {
		taken[i].token = claims[i].Token
	}
}

func jobIDs(jobs []*modelJob) string {
	var list []string
	for _, j := range jobs {
		list = append(list, j.id)
	}
	return strings.Join(list, " ")
}

// Lanes, which matter where they take turns.

func (m *model) enterLane(j *modelJob) {
	if m.turns[j.laneName] == 0 {
		m.turns[j.laneName] = m.number()
	}
}

func (m *model) leaveLane(j *modelJob, served bool) {
	for _, other := range m.jobs {
		if other.state == "w" && other.laneName == j.laneName {
			if served {
				m.turns[j.laneName] = m.number()
			}
			return
		}
	}
	delete(m.turns, j.laneName)
}

// What becomes of jobs.

func (m *model) free(j *modelJob, state string) {
	field := j.lane.Kind + "\t" + j.unique
	if j.unique != "" && !strings.Contains(j.uniqueIn, state) && m.unique[field] == j.id {
		delete(m.unique, field)
	}
}

// enter makes a job wait, for its time or for its turn.
func (m *model) enter(j *modelJob, due int64) {
	if field := j.lane.Kind + "\t" + j.unique; j.unique != "" && m.unique[field] == "" {
		m.unique[field] = j.id
	}
	j.worker, j.token, j.told, j.due = "", "", false, due
	j.state = "w"
	if due > m.ms() {
		j.state = "l"
		return
	}
	j.due = 0
	m.enterLane(j)
}

func (m *model) finish(j *modelJob, end, text string, retention int64) {
	delete(m.jobs, j.id)
	m.free(j, end)
	j.unbind()
	j.worker, j.token = "", ""
	if retention > 0 {
		m.ended[j.id] = &modelEnded{j, end, text, m.ms() + retention}
	}
	for _, inbox := range m.waits[j.id] {
		m.told = append(m.told, strings.Join([]string{inbox, "ended", j.id, end, text}, " "))
	}
	delete(m.waits, j.id)
	if len(m.children[j.id]) > 0 {
		m.partings = append(m.partings, parting{m.ms(), j.id, end})
		m.parted = true
	}
}

// settle tells the children of a job that it has ended.
func (m *model) settle(p parting) {
	children := m.children[p.parent]
	delete(m.children, p.parent)
	slices.Sort(children)
	for _, id := range children {
		j := m.jobs[id]
		if j == nil || j.state != "h" || j.after.Mode == "" {
			continue
		}
		j.left--
		good := p.state == "d" || j.after.Failure == "go"
		switch {
		case good && (j.after.Mode == "any" || j.left == 0):
			j.err, j.after.Mode = "", ""
			m.enter(j, (j.order+j.boost)/1000)
		case good || j.after.Mode == "any" && j.left > 0:
			j.err = fmt.Sprint(j.after.Mode, " ", j.left, " ", j.after.Failure)
		case j.after.Failure == "hold":
			j.err, j.after.Mode = "failed", ""
		default:
			m.finish(j, "k", "a job that it waited for did not succeed: "+p.parent, 86400000)
			m.count("cancelled", j.lane.Kind)
		}
	}
}

// unclaim takes a job from its worker.
func (m *model) unclaim(j *modelJob) {
	if w := m.workers[j.worker]; w != nil {
		w.occupy(j, -1)
	}
	j.state, j.until = "w", 0
}

func (m *model) giveBack(j *modelJob, due int64) {
	if j.told {
		m.finish(j, "k", "canceled", max(j.retention, 60000))
		m.count("cancelled", j.lane.Kind)
		return
	}
	m.enter(j, due)
}

// bury returns the jobs of a worker that has died, or has left.
func (m *model) bury(w *modelWorker, left bool) {
	for _, j := range m.heldBy(w.id) {
		left := left || j.until > 0 // it has not died over what it was only offered
		m.unclaim(j)
		if !left {
			j.crashes++
			m.count("crashed", j.lane.Kind)
		}
		if !left && !j.told && int64(j.crashes) >= m.setting("crashes", 3) {
			m.finish(j, "x", fmt.Sprintf("its workers died: %d times", j.crashes), 90*86400000)
			m.count("dead", j.lane.Kind)
			continue
		}
		m.giveBack(j, 0)
	}
	if w.drained && !left {
		m.drains[w.id] = m.ms() + 3600000
	}
	delete(m.workers, w.id)
}

func (m *model) workersByID() []string { return slices.Sorted(maps.Keys(m.workers)) }

// heldBy are the jobs of a worker, by id.
func (m *model) heldBy(worker string) (held []*modelJob) {
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if m.jobs[id].worker == worker {
			held = append(held, m.jobs[id])
		}
	}
	return held
}
