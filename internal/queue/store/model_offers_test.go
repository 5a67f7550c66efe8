package store

import (
	"cmp"
	"strings"
	"time"
)

// What the model knows of offers, reservations and placement. An offered job is one that runs, with a time until which it has to
// be accepted; one that is reserved or was declined has a lane of its own, and a time at which that is over.

// relane names the lane that a job is in.
func (j *modelJob) relane() {
	lane := j.lane
	if j.reserved != "" {
		lane.Tags = append([]string{"\x01" + j.reserved}, lane.Tags...)
		if len(lane.Tags) == 1 {
			lane.Tags = append(lane.Tags, "")
		}
	}
	for i, name := range j.declined {
		if i == 0 {
			lane.Cost = cmp.Or(lane.Cost, "slot=1")
		}
		lane.Cost += ",\x01" + name
	}
	j.laneName = laneName(&lane)
}

// bind has a job be reserved, or be kept from who declined it, until a time; unbind ends both.
func (j *modelJob) bind(until int64) {
	j.bound = until
	j.relane()
}

func (j *modelJob) unbind() {
	j.reserved, j.declined = "", nil
	j.bind(0)
}

// lapse is the end of what bind began.
func (m *model) lapse(j *modelJob) {
	waits := j.state == "w"
	if waits {
		j.state = ""
		m.leaveLane(j, false)
	}
	j.unbind()
	if waits {
		m.enter(j, 0)
	}
}

// shown is the state that is seen of a job: o of one that is offered.
func (j *modelJob) shown() string {
	if j.until > 0 {
		return "o"
	}
	return j.state
}

func (m *model) offered(worker string) (n int) {
	for _, j := range m.heldBy(worker) {
		if j.until > 0 {
			n++
		}
	}
	return n
}

func inboxOf(worker string) string {
	process, _, _ := strings.Cut(worker, "/")
	return process
}

// dueOf adds what the time may have come for with a job.
func (m *model) dueOf(j *modelJob, add func(at int64, what string, do func()) bool) {
	if j.state == "l" {
		add(j.due, "j\t"+j.id, func() { m.enter(j, 0) })
	}
	if j.until > 0 {
		add(j.until, "o\t"+j.id, func() {
			if j.until > 0 {
				m.endOffer(j, "missed")
			}
		})
	}
	if j.bound > 0 {
		add(j.bound, "u\t"+j.id, func() {
			if j.bound > 0 && j.bound <= m.ms() {
				m.lapse(j)
			}
		})
	}
}

// endOffer takes an offer back.
func (m *model) endOffer(j *modelJob, why string) {
	w, kind := m.workers[j.worker], j.lane.Kind
	over := strings.Join([]string{inboxOf(j.worker), "over", j.worker, j.id, j.token, why}, " ")
	m.unclaim(j)
	if w != nil && why == "missed" && !w.stays && w.state == "online" {
		w.state = "missed" // it may say that it is online before it has heard
	}
	if w != nil && (why == "declined" || why == "missed" && w.stays) {
		j.reserved, j.declined = "", append(j.declined, w.name)
		j.bind(m.ms() + 60000)
	}
	if why != "canceled" {
		m.giveBack(j, 0)
	}
	if w != nil {
		m.setIdle(w, w.state == "online" && !w.full(), true)
		w.freed = true
		if why != "declined" {
			m.told = append(m.told, over)
		}
	}
	switch why {
	case "missed", "declined":
		m.count(why, kind)
	default:
		m.count("withdrawn", kind)
	}
}

// accepted has a worker's job be no offer any more. It is false if the time for that is over.
func (m *model) accepted(j *modelJob) bool {
	if j.until == 0 {
		return true
	}
	if j.until <= m.ms() {
		m.endOffer(j, "missed")
		return false
	}
	j.until = 0
	m.count("accepted", j.lane.Kind)
	m.free(j, "c")
	return true
}

// answers takes in what a worker says to an offer. It is false for what is to be dealt with as of any job.
func (m *model) answers(j *modelJob, w *modelWorker, verb string, a *modelAnswer) bool {
	switch {
	case verb == "accept", verb == "done" && w.offer > 0:
		if !m.accepted(j) {
			a.late = append(a.late, j.id)
			return true
		}
		return verb == "accept"
	case verb == "decline":
		m.endOffer(j, "declined")
	case verb == "miss":
		m.endOffer(j, "missed")
	default:
		return false
	}
	return true
}

// withdraws takes back what a worker that says that it is not online has not accepted.
func (m *model) withdraws(w *modelWorker, state string) {
	for _, j := range m.heldBy(w.id) {
		if state != "online" && j.until > 0 {
			m.endOffer(j, "the worker is "+state)
		}
	}
}

// taken is for how long a name is another's, in ms.
func (m *model) taken(r *Report) int64 {
	for _, id := range m.workersByID() {
		w := m.workers[id]
		if m.workers[r.Worker] == nil && r.OfferFor > 0 && w.offer > 0 && w.name == r.Name && w.lease > m.ms() {
			return w.lease - m.ms()
		}
	}
	return 0
}

// setIdle has a worker be handed jobs, or not. Where a placement is set it has a rank: the share of its capacities that is in use, if that
// counts, and since when it is idle. Anew: it was given a job, or has ended one.
func (m *model) setIdle(w *modelWorker, idle, anew bool) {
	placement := m.settings["placement"]
	if idle && placement != "" {
		if anew || !w.idle {
			w.since = m.number()
		}
		used, limit := 0, 0
		for name := range w.room {
			used, limit = used+w.used[name], limit+w.room[name]
		}
		if w.share = 0; placement == "least" {
			w.share = min(used*1000/max(limit, 1), 9999)
		}
	}
	w.idle = idle
}

// misplaced says who should have been given a job instead of a worker, "" if nobody.
func (m *model) misplaced(j *modelJob, w *modelWorker, except string) string {
	if m.settings["placement"] == "" || j.reserved != "" || strings.Contains(j.lane.Cost, "call=0") {
		return "" // who has no call left has no rank for calls, and may do a job that takes none
	}
	for _, id := range m.workersByID() {
		o := m.workers[id]
		if o.idle && id != except && o.can(j) && cmp.Or(cmp.Compare(o.share, w.share), cmp.Compare(o.since, w.since)) < 0 {
			return id
		}
	}
	return ""
}

// Drawing.

// agents are the workers of programs with offers, by what they are: one is given jobs; of two that have the same name one comes
// second; and one stays online if it lets an offer pass.
var agents = map[string]Report{
	"p/1": {Name: "cleo"},
	"p/2": {Name: "anna", OfferFor: 6 * time.Second},
	"p/3": {Name: "bob=2", OfferFor: 6 * time.Second, Stays: true},
	"q/4": {Name: "anna", OfferFor: 6 * time.Second},
}

func (s *system) workerIDs() []string {
	if s.offers {
		return []string{"p/1", "p/2", "p/3", "q/4"}
	}
	return []string{"p/1", "p/2", "p/3"}
}

// drawReserved reserves a job for somebody, perhaps.
func (s *system) drawReserved(i *Item) {
	if s.offers && s.chance(4, "reserved") {
		i.For = s.pick("for", "anna", "bob=2", "cleo", "nobody")
		i.ForWithin = time.Duration(s.draw(1, 60000, "for ms")) * time.Millisecond
	}
}

// drawAnswer draws what a worker says of an offer.
func (s *system) drawAnswer() string {
	return s.pick("answer", "accept", "accept", "accept", "decline", "miss", "done", "back")
}
