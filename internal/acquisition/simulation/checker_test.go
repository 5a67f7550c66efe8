package simulation

import (
	"slices"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// What must always hold, by the numbers of docs/invariants.md.

// believed is how many permits a life believes in now.
func (l *life) believed() int {
	c := l.client
	if s := l.machine.State(); c.crashed || s != acquisition.Held && s != acquisition.Reweighing {
		return 0
	}
	if c.instant(c.world.now) >= l.machine.Deadline() {
		return 0
	}
	return l.machine.Weight()
}

// judgeBelief is L1, as holders see it: what they believe in at one time is never more than there is. It can only become more
// with a step.
func (w *world) judgeBelief(l *life) {
	if l.believed() == 0 {
		return
	}
	for _, p := range l.places {
		sum := 0
		for id, other := range p.resource.alive {
			if p.resource.sure[id] == w.epoch {
				sum += other.believed()
			}
		}
		if sum > p.resource.limit {
			w.accuse("L1", "%d permits of %q are believed in, of %d", sum, p.resource.name, p.resource.limit)
		}
	}
}

func (w *world) snapshots(l *life) []snapshot {
	all := make([]snapshot, len(l.places))
	for i, p := range l.places {
		all[i] = w.server.snapshot(p.resource)
	}
	return all
}

// judgeServer looks at what a request has done. L3: who was granted has left nobody behind that was there before. L7: what is
// over does not come back.
func (w *world) judgeServer(l *life, before []snapshot) {
	for i, p := range l.places {
		after := w.server.snapshot(p.resource)
		for _, id := range after.leases {
			if slices.Contains(before[i].leases, id) || id[0] == '!' { // which rests, and is nobody's
				continue
			}
			ahead := before[i].queue
			if at := slices.Index(ahead, id); at >= 0 {
				ahead = ahead[:at]
			}
			for _, other := range ahead {
				if slices.Contains(after.queue, other) {
					w.accuse("L3", "%s was granted before %s", id, other)
				}
			}
			w.judgeComing(p.resource, id)
		}
		for _, id := range after.queue {
			if !slices.Contains(before[i].queue, id) {
				w.judgeComing(p.resource, id)
			}
		}
	}
}

func (w *world) judgeComing(r *resource, id string) {
	l := r.alive[id]
	if l != nil && l.over && !w.forward && !l.client.crashed && l.verdict.Why != acquisition.Failure {
		w.accuse("L7", "%s is over, and came to %q", id, r.name)
	}
}

// note notes a token, of an answer or a message.
func (w *world) noteToken(r *resource, token int64) {
	if !r.known[token] {
		r.fresh, r.known[token] = append(r.fresh, token), true
	}
}

// judgeTokens is L2. A call may grant several, which it tells of in any order: all are larger than those before.
func (w *world) judgeTokens(l *life) {
	for _, p := range l.places {
		r := p.resource
		slices.Sort(r.fresh)
		for _, token := range r.fresh {
			if token <= r.token {
				w.accuse("L2", "token %d of %q after %d", token, r.name, r.token)
			}
			r.token = token
		}
		r.fresh = r.fresh[:0]
	}
}

// noteMessage notes the token of a grant by message.
func (w *world) noteMessage(message string) {
	verb, id, n := fields(message)
	if verb != "grant" {
		return
	}
	for _, r := range w.resources {
		if r.alive[id] != nil {
			w.noteToken(r, n[0])
			r.sure[id] = w.epoch
		}
	}
}

// noteAnswer notes those of answers, and that the server is sure of a lease.
func (w *world) noteAnswer(l *life, call acquisition.Call, o *outcome) {
	said := o.answer.Outcome
	granted := call == acquisition.CallAcquire && said == acquisition.Granted
	renewed := call == acquisition.CallRenew && (said == acquisition.Kept || said == acquisition.KeptWanted)
	for i, p := range l.places {
		switch {
		case o.err != nil:
		case granted && l.terms.Passing:
			w.noteToken(p.resource, o.tokens[i])
		case granted, call == acquisition.CallReweigh && said == acquisition.Kept:
			w.noteToken(p.resource, o.answer.Token)
		}
		if granted || renewed {
			p.resource.sure[p.id] = w.epoch
		}
	}
}

// judgeDone is L7 at the moment when a life says that nothing of it is left. A lease that was lost ends there by itself; one
// that a clock set forward has ended early may be asked for anew by a late request.
func (w *world) judgeDone(l *life, a *acquisition.Action) {
	if w.forward || l.terms.Passing && len(l.children) > 0 || a.Why == acquisition.Failure || a.Why == acquisition.Unrenewed {
		return
	}
	for _, p := range l.places {
		if w.server.knows(p) {
			w.accuse("L7", "%s is over, and something of it is left at %q", p.id, p.resource.name)
		}
	}
}

// judgeEndOfLease is that nobody loses a lease that was granted when nothing was wrong any more.
func (w *world) judgeEndOfLease(l *life, a *acquisition.Action) {
	if l.calm && (a.Why == acquisition.Unrenewed || a.Why == acquisition.HadExpired) {
		w.accuse("L5", "%s has lost its lease, and nothing was wrong", l.name)
	}
}

// judgeEnd is L5: when there are no more events, everybody has got through; and L6: after a while nothing is left.
func (w *world) judgeEnd() {
	for _, c := range w.clients {
		for _, l := range c.lives {
			if !c.crashed && !l.over {
				w.accuse("L5", "%s does not end: %v", l.name, l.machine.State())
			}
		}
	}
	w.now += time.Minute
	w.server.look()
	if keys := texts(w.server.do("KEYS", "*")); len(keys) > 0 {
		w.accuse("L6", "left are %v", keys)
	}
}
