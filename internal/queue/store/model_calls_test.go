package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The transitions of the model, one for each script.

// happening is something that the time has come for.
type happening struct {
	at   int64 // ms
	what string
	do   func()
}

func (h *happening) compare(o *happening) int {
	return cmp.Or(cmp.Compare(h.at, o.at), cmp.Compare(h.what, o.what))
}

// due does what the time has come for: first what came first.
func (m *model) due() {
	m.parted, m.saved = false, m.now
	var all []happening
	add := func(at int64, what string, do func()) bool {
		h := happening{at, what, do}
		due := at <= m.ms() && (m.till == nil || h.compare(m.till) <= 0)
		if due {
			all = append(all, h)
		}
		return due
	}
	for _, j := range m.jobs {
		m.dueOf(j, add)
	}
	for _, w := range m.workers {
		if w.lease > 0 { // else this is its first call
			add(w.lease, "w\t"+w.id, func() { m.bury(w, false) })
		}
	}
	m.partings = slices.DeleteFunc(m.partings, func(p parting) bool {
		return add(p.at, "f\t"+p.parent+"\t"+p.state, func() { m.settle(p) })
	})
	slices.SortFunc(all, func(a, b happening) int { return a.compare(&b) })
	for _, h := range all {
		h.do()
	}
	for id, e := range m.ended {
		if e.until <= m.ms() {
			m.free(e.modelJob, "-")
			delete(m.ended, id)
		}
	}
}

// duePartings is what a transition does for the children of what it has ended.
func (m *model) duePartings() {
	if m.parted {
		m.due()
	}
}

// enqueue returns what becomes of items, or false if the call comes late.
func (m *model) enqueue(producer string, call int64, items []Item) ([]Outcome, bool) {
	if last, ok := m.calls[producer]; ok && last.until > m.ms() {
		if last.number == call {
			return last.outcomes, true
		}
		if last.number > call {
			return nil, false
		}
	}
	outcomes := m.takeIn(items)
	m.calls[producer] = modelCall{number: call, until: m.ms() + 900000, outcomes: outcomes}
	return outcomes, true
}

func (m *model) takeIn(items []Item) []Outcome {
	m.due()
	outcomes := make([]Outcome, len(items))
	var lanes []*modelJob
	for i := range items {
		outcomes[i] = m.takeOne(&items[i], &lanes)
	}
	for _, j := range lanes {
		m.enterLane(j)
	}
	m.handOver("")
	return outcomes
}

func (m *model) takeOne(item *Item, lanes *[]*modelJob) Outcome {
	unique := item.UniqueField
	if m.jobs[item.ID] != nil || m.ended[item.ID] != nil {
		return Outcome{Known: true}
	}
	if unique == "id" {
		unique = ""
	} else if unique != "" {
		field := item.Lane.Kind + "\t" + unique
		if other := m.unique[field]; other != "" {
			return Outcome{Other: other}
		}
		m.unique[field] = item.ID
	}
	j := &modelJob{
		id: item.ID, lane: item.Lane, laneName: laneName(&item.Lane), state: "w", retention: item.Retention.Milliseconds(),
		enqueued: m.ms(), uniqueIn: item.UniqueIn, unique: unique,
	}
	if item.For != "" {
		j.reserved = item.For
		j.bind(m.ms() + item.ForWithin.Milliseconds())
	}
	due := m.ms() + item.Delay.Milliseconds()
	base := due * 1000
	if item.Delay == 0 {
		base = m.number()
	}
	j.boost = int64(item.Priority) * m.setting("stepMs", 60000) * 1000
	j.order = base - j.boost
	if item.After.Mode != "" {
		if failed := m.awaitParents(j, item.After); failed != "" {
			m.free(j, "-")
			return Outcome{Parent: failed}
		}
	}
	if j.state == "w" && item.Delay > 0 {
		j.state, j.due = "l", due
	} else if j.state == "w" {
		*lanes = append(*lanes, j)
	}
	m.jobs[j.id] = j
	m.count("enqueued", j.lane.Kind)
	return Outcome{}
}

// awaitParents holds a job back for its parents. It returns the parent whose end is that of the job, too.
func (m *model) awaitParents(j *modelJob, after After) string {
	left, done, failed := 0, 0, ""
	for _, parent := range after.Parents {
		e := m.ended[parent]
		switch {
		case m.jobs[parent] != nil:
			left++
		case e == nil || e.end == "d" || after.Failure == "go":
			done++
		default:
			failed = cmp.Or(failed, parent)
		}
	}
	switch {
	case after.Mode == "all" && failed != "", after.Mode == "any" && done == 0 && left == 0:
		if after.Failure == "cancel" {
			if after.Mode == "any" {
				return after.Parents[0]
			}
			return failed
		}
		j.state, j.err = "h", "failed"
	case after.Mode == "all" && left > 0, after.Mode == "any" && done == 0:
		j.state, j.err, j.left, j.after = "h", fmt.Sprint(after.Mode, " ", left, " ", after.Failure), left, after
		for _, parent := range after.Parents {
			if m.jobs[parent] != nil {
				m.children[parent] = append(m.children[parent], j.id)
			}
		}
	}
	return ""
}

// tick takes the jobs of a schedule in. It is false if somebody else has.
func (m *model) tick(name string, ms, next int64, items []Item) bool {
	t := m.ticks[name]
	if t == nil || t.ms != ms {
		return false
	}
	t.ms, t.asked = next, next
	m.takeIn(items)
	return true
}

// intake takes the jobs of the first lines of a list in, and the lines away. It is false if those are other lines.
func (m *model) intake(lines Lines, items []Item) bool {
	n := len(lines.Text)
	if len(m.lines) < n || !slices.Equal(m.lines[:n], lines.Text) {
		return false
	}
	m.lines = m.lines[n:]
	for _, at := range lines.Bad {
		m.bad = append(m.bad, lines.Text[at])
	}
	m.takeIn(items)
	return true
}

// drain returns what becomes of workers that are to finish what they run, and end.
func (m *model) drain(workers []string) []string {
	m.due()
	outcomes := make([]string, len(workers))
	for i, id := range workers {
		w := m.workers[id]
		if w == nil {
			outcomes[i] = "unknown"
			continue
		}
		outcomes[i], w.drained = "told", true
		m.told = append(m.told, strings.Join([]string{inboxOf(id), "cancel", id, "", "because"}, " "))
	}
	m.duePartings()
	m.handOver("")
	return outcomes
}

// modelAnswer is what a worker is told, in words.
type modelAnswer struct {
	refused, unknown             bool
	late, cancel, missing, ticks []string
	lost                         []string // by id
	claims                       []*modelJob
	taken                        int64 // ms
}

func (m *model) work(r *Report) (a modelAnswer) {
	m.due()
	w := m.workers[r.Worker]
	if w == nil && !r.Register {
		m.handOver("")
		a.unknown = true
		return a
	}
	if a.taken = m.taken(r); a.taken > 0 {
		m.handOver("")
		return a
	}
	if w == nil {
		w = &modelWorker{id: r.Worker, used: map[string]int{}, name: r.Name, offer: r.OfferFor.Milliseconds(), stays: r.Stays}
		m.workers[w.id] = w
		w.drained = m.drains[w.id] > m.ms()
		delete(m.drains, w.id)
	}
	if w.call > r.Call {
		m.handOver("")
		a.refused = true
		return a
	}
	if r.State == "online" && (w.state == "missed" || w.call == r.Call && w.state == "away") {
		means := *r
		means.State, r = "away", &means
	}
	w.describe(r)
	m.reports(w, r, &a)
	m.duePartings()
	m.withdraws(w, r.State)
	m.takeStock(w, r, &a)
	first := w.call == 0
	w.call = r.Call
	if r.State == "gone" {
		a.missing = nil
		m.bury(w, true)
	} else if r.Want > 0 && !first {
		a.claims = m.claim(w, r.Want)
	}
	m.handOver(w.id)
	w.drained = w.drained && r.State != "draining" && r.State != "gone"
	if w.drained {
		a.cancel = append(a.cancel, "")
	}
	for _, j := range m.heldBy(w.id) {
		if j.told {
			a.cancel = append(a.cancel, j.id)
		}
	}
	if seesToTick(r.State) {
		a.ticks = m.ticksFor()
	}
	if r.State != "gone" {
		m.setIdle(w, w.state == "online" && !first && !w.full(), len(a.claims) > 0 || len(r.Done) > 0)
		w.freed = false
		w.lease = m.ms() + r.Lease.Milliseconds()
	}
	return a
}

// describe takes note of what a worker says of itself.
func (w *modelWorker) describe(r *Report) {
	if w.tagsText != r.Tags || w.kindsT != r.Kinds {
		w.idle = false
	}
	w.tagsText, w.kindsT, w.tags, w.kinds = r.Tags, r.Kinds, list(r.Tags), list(r.Kinds)
	w.state, w.info = r.State, r.Info
	room := map[string]int{}
	for _, part := range list(r.Room) {
		name, limit, _ := strings.Cut(part, ":")
		room[name], _ = strconv.Atoi(limit)
	}
	for name := range w.room {
		if _, ok := room[name]; !ok && w.used[name] > 0 {
			room[name] = 0
		}
	}
	w.room = room
}

// reports takes in what a worker has done.
func (m *model) reports(w *modelWorker, r *Report, a *modelAnswer) {
	again := w.call == r.Call
	for _, d := range r.Done {
		j := m.jobs[d.ID]
		if j == nil || j.state != "c" || j.worker != w.id || j.token != d.Token {
			if (!again || d.Verb == "accept") && d.Verb != "note" {
				a.late = append(a.late, d.ID)
			}
			continue
		}
		if d.Verb == "note" {
			m.annotate(j, d.Text)
			continue
		}
		if m.answers(j, w, d.Verb, a) {
			continue
		}
		m.unclaim(j)
		after, kind := d.After.Milliseconds(), j.lane.Kind
		switch d.Verb {
		case "done":
			m.finish(j, "d", d.Text, after)
			m.count("done", kind)
		case "dead":
			j.attempts, j.err = j.attempts+1, d.Text
			m.finish(j, "x", d.Text, after)
			m.count("dead", kind)
		case "cancelled":
			m.finish(j, "k", d.Text, after)
			m.count("cancelled", kind)
		case "retry":
			j.attempts, j.err = j.attempts+1, d.Text
			m.giveBack(j, m.ms()+after)
			m.count("retried", kind)
		case "snooze":
			j.order = (m.ms()+after)*1000 - j.boost
			m.giveBack(j, m.ms()+after)
		default:
			m.giveBack(j, 0)
		}
	}
}

// annotate keeps what a handler says, and tells those who wait for the end.
func (m *model) annotate(j *modelJob, text string) {
	j.note = text
	for _, inbox := range m.waits[j.id] {
		m.told = append(m.told, strings.Join([]string{inbox, "noted", j.id, text}, " "))
	}
}

// takeStock compares what a worker says that it runs with what it holds.
func (m *model) takeStock(w *modelWorker, r *Report, a *modelAnswer) {
	if r.Inventory == nil {
		return
	}
	for _, j := range m.heldBy(w.id) {
		if !slices.Contains(r.Inventory, j.id) {
			a.missing = append(a.missing, j.id+" "+j.token)
		}
	}
	for _, id := range r.Inventory {
		if j := m.jobs[id]; j == nil || j.worker != w.id {
			a.lost = append(a.lost, id)
		}
	}
	slices.Sort(a.lost)
}

// ticksFor are the schedules that somebody is to see to.
func (m *model) ticksFor() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(m.ticks)) {
		if t := m.ticks[name]; t.asked <= m.ms() {
			t.asked = m.ms() + 5000
			list = append(list, fmt.Sprint(name, " ", t.ms))
		}
	}
	return list
}

func (m *model) change(verb, text, states string, changed []string) []string {
	m.due()
	outcomes := make([]string, len(changed))
	for i, id := range changed {
		j, e := m.jobs[id], m.ended[id]
		switch {
		case j == nil && e == nil:
			outcomes[i] = "unknown"
		case j != nil && states != "" && !strings.Contains(states, j.shown()), j == nil && states != "" && !strings.Contains(states, e.end):
			outcomes[i] = "other"
		case j != nil:
			outcomes[i] = m.changeAlive(verb, text, j)
		default:
			outcomes[i] = m.changeEnded(verb, e)
		}
	}
	m.duePartings()
	m.handOver("")
	return outcomes
}

func (m *model) changeAlive(verb, text string, j *modelJob) string {
	withdraw := func() {
		was := j.state
		j.state = ""
		if was == "w" {
			m.leaveLane(j, false)
		}
	}
	switch {
	case verb == "retry" && (j.state == "c" || j.state == "w"):
	case verb == "retry":
		withdraw()
		j.err, j.after.Mode = "", ""
		j.order = min(j.order, m.number()-j.boost)
		m.enter(j, 0)
	case verb == "delete" && j.shown() == "c":
		return "running"
	case j.shown() == "c":
		j.told = true
		m.told = append(m.told, strings.Join([]string{inboxOf(j.worker), "cancel", j.worker, j.id, text}, " "))
		return "told"
	default:
		if j.state == "c" {
			m.endOffer(j, "canceled")
			j.state = "c" // it is in no lane
		}
		withdraw()
		retention := max(j.retention, 60000)
		if verb == "delete" {
			retention = 0
		}
		m.finish(j, "k", text, retention)
		m.count("cancelled", j.lane.Kind)
	}
	return "ok"
}

func (m *model) changeEnded(verb string, e *modelEnded) string {
	j := e.modelJob
	other := m.unique[j.lane.Kind+"\t"+j.unique]
	switch {
	case verb == "cancel":
		return "ended"
	case verb == "retry" && j.unique != "" && other != "" && other != j.id:
		return "unique"
	}
	delete(m.ended, j.id)
	m.free(j, "-")
	if verb == "retry" {
		j.attempts, j.crashes, j.err = 0, 0, ""
		m.jobs[j.id] = j
		m.enter(j, 0)
		m.count("replayed", j.lane.Kind)
	}
	return "ok"
}

func (m *model) configure(pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			delete(m.settings, pairs[i])
		} else {
			m.settings[pairs[i]] = pairs[i+1]
		}
	}
	m.due()
	m.handOver("")
}

// shown is everything that can be seen of the jobs, line by line.
func (m *model) shown() (lines []string) {
	for _, j := range m.jobs {
		lines = append(lines, fmt.Sprint(j.id, " ", j.shown(), " ", j.attempts, " ", j.crashes, " ", j.err, " ", j.worker, " ", max(j.due, j.until), " ",
			j.note, " ", j.reserved, " ", j.declined))
	}
	for id, e := range m.ended {
		lines = append(lines, fmt.Sprint(id, " ", e.end, " ", e.attempts, " ", e.crashes, " ", e.text, " ", e.note))
	}
	for _, w := range m.workers {
		lines = append(lines, fmt.Sprint("worker ", w.id, " ", w.state, " until ", w.lease, " ", w.inUse(), " offered ", m.offered(w.id)))
	}
	slices.Sort(lines)
	return lines
}

func (w *modelWorker) inUse() string {
	var parts []string
	for name, limit := range w.room {
		parts = append(parts, fmt.Sprint(name, ":", w.used[name], ":", limit))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
