package racelab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

// Violation is a broken promise.
type Violation struct {
	Promise Promise `json:"promise"`
	// Why says in words who believes what.
	Why string `json:"why"`
}

// belief is what a client thinks that it has.
type belief struct {
	holds    bool
	until    time.Time // the zero time is for ever
	weight   int       // how many permits
	gaveBack bool      // a release is under way; until still says what was
}

// valid says whether a client holds by its own account, and may.
func (b *belief) valid(now time.Time) bool {
	return b.holds && (b.until.IsZero() || now.Before(b.until))
}

// Has notes that a client has a permit, which lasts for the timeout from since on.
func (c *Client) Has(since time.Time) {
	c.hold(since, c.world.algorithm.Timeout)
	c.holds("HOLDS")
}

// holds notes in the schedule until when.
func (c *Client) holds(what string) {
	if until := c.belief.until; !until.IsZero() {
		what += " until " + clockTime(until.Sub(epoch).Microseconds())
	}
	c.world.believes(c, what)
}

func (c *Client) hold(since time.Time, span time.Duration) {
	c.belief = belief{holds: true, weight: 1}
	if span > 0 {
		c.belief.until = since.Add(span)
	}
	c.world.step.belief = true
}

// Refreshed notes that a refresh has said that the permit lasts on.
func (c *Client) Refreshed(since time.Time) {
	c.hold(since, c.world.algorithm.Timeout)
	c.world.refreshed = c.Name
	c.holds("HOLDS still,")
}

// gaveBack notes that a client sees its permit as given back from now on.
func (c *Client) gaveBack() {
	c.belief.gaveBack, c.belief.holds = c.belief.holds, false
	c.world.step.belief = true
}

// told notes what a call has said that gave no permit.
func (c *Client) told(op string, err error) {
	w, early := c.world, c.belief
	early.holds = early.holds || early.gaveBack
	switch {
	case c.dead:
	case err == nil:
		w.believes(c, map[string]string{"release": "released", "init": "ready"}[op])
	case errors.Is(err, classic.ErrBusy):
		w.believes(c, "refused")
	case errors.Is(err, classic.ErrLost):
		w.believes(c, "LOST")
		if early.valid(w.engine.Now()) {
			w.accuse(Kept, "%s is told that it has lost its permit, which %s", c.Name, w.lasting(early.until))
		}
	default:
		w.believes(c, "does not know")
	}
	if op == "release" || errors.Is(err, classic.ErrLost) {
		c.belief = belief{}
	}
	w.step.belief = true
}

func (w *world) lasting(until time.Time) string {
	if until.IsZero() {
		return "never times out"
	}
	return "times out only in " + until.Sub(w.engine.Now()).String()
}

// accuse notes a violation, the first one of a run.
func (w *world) accuse(p Promise, why string, args ...any) {
	if w.violation == nil && slices.Contains(w.algorithm.Promises, p) {
		w.violation = &Violation{p, fmt.Sprintf(why, args...)}
	}
}

// judge looks at what everybody believes after a step.
func (w *world) judge() {
	now, held := w.engine.Now(), 0
	var holders []string
	for _, c := range w.clients {
		if c.belief.valid(now) {
			holders = append(holders, c.Name)
			held += c.belief.weight
		}
	}
	if held > w.algorithm.Permits {
		all := strings.Join(holders, " and ")
		if w.refreshed != "" && slices.Contains(w.algorithm.Promises, Truth) {
			w.accuse(Truth, "%s is told that it holds still, and now %s hold at the same time; the limit is %d", w.refreshed, all, w.algorithm.Permits)
			return
		}
		w.accuse(Limit, "%s hold at the same time; the limit is %d", all, w.algorithm.Permits)
	}
}

// line is who holds and who waits before a step.
type line struct {
	holders, waiting []string
	tokens           map[string]int64 // of the holders
	token            int64            // the newest
}

func (w *world) lineUp() (l line) {
	if w.algorithm.Line != nil && w.looking() {
		l = w.algorithm.Line(w)
	}
	return l
}

// looking says that a step is new. All before it were looked at when they were.
func (w *world) looking() bool { return w.probing || w.rows != nil }

// judgeServer looks at what the server has after a step.
func (w *world) judgeServer(before line) {
	if !w.looking() {
		return
	}
	if w.algorithm.Judge != nil {
		if p, why := w.algorithm.Judge(w); p != "" {
			w.accuse(p, "%s", why)
		}
	}
	if w.algorithm.AlwaysTimed {
		w.judgeTimeouts("%s has no timeout")
	}
	after := w.lineUp()
	w.judgeTokens(before, after)
	w.judgeTidy(after)
	for _, id := range after.holders {
		if slices.Contains(before.holders, id) {
			continue
		}
		for _, ahead := range before.waiting {
			if ahead == id {
				break
			}
			if slices.Contains(after.waiting, ahead) {
				w.accuse(Order, "%s is granted its permit while %s, who came before it, still waits", id, ahead)
			}
		}
	}
}

// judgeTokens compares the tokens of new leases with all that were there, or that
// somebody has heard of.
func (w *world) judgeTokens(before, after line) {
	known := map[int64]bool{}
	for _, id := range after.holders {
		token := after.tokens[id]
		if known[token] || token != before.tokens[id] && token <= max(before.token, w.newestBefore) {
			w.accuse(Fenced, "%s is granted its permit with token %d, after token %d", id, token, max(before.token, w.newestBefore))
		}
		known[token] = true
	}
}

// judgeTidy looks for what has ended.
func (w *world) judgeTidy(after line) {
	for _, c := range w.clients {
		if c.tidy() && (slices.Contains(after.holders, c.life.id) || slices.Contains(after.waiting, c.life.id)) {
			w.accuse(Tidy, "%s has ended, and is on the server still", c.life.id)
		}
	}
}

// judgeTimeouts looks for keys that would stay for ever.
func (w *world) judgeTimeouts(why string) {
	for _, key := range bulks(w.engine.Do("KEYS", "*")) {
		if ttl := string(w.engine.Do("PTTL", key)); ttl == ":-1\r\n" {
			w.accuse(Timed, why, key)
		}
	}
}

// ended says whether all clients that have begun have come to their end. Those
// that have not need never come.
func (w *world) ended() bool {
	return !slices.ContainsFunc(w.clients, func(c *Client) bool { return c.stop.kind != atEnd && c.begins > 0 })
}

// judgeEnd judges what a run leaves behind. It changes the world: a run ends here.
func (w *world) judgeEnd() {
	if w.violation == nil && slices.Contains(w.algorithm.Promises, Timed) {
		w.judgeTimeouts("all clients have ended, and %s stays for ever")
	}
	if w.violation == nil && slices.Contains(w.algorithm.Promises, Freed) && !w.letsIn() {
		w.accuse(Freed, "all clients have ended and all timeouts have passed, and nobody gets in any more")
	}
}

// letsIn says whether a visitor gets in, which hangs on the keys and the time
// alone.
func (w *world) letsIn() bool {
	state := w.digest() + w.engine.Now().String()
	let, known := w.visits[state]
	if !known {
		let = w.visit()
		w.visits[state] = let
	}
	return let
}

// visit lets all timeouts pass and somebody else come, who must be let in. He may
// try a second time, after another timeout: algorithms may repair.
func (w *world) visit() bool {
	const tries = 2
	crowd, rows := w.clients, w.rows
	defer func() { w.clients, w.rows = crowd, rows }()
	w.clients, w.rows = []*Client{w.visitor}, nil
	for range tries {
		w.pass(2*max(w.algorithm.Timeout, time.Second) + time.Minute)
		w.enter(w.visitor)
		for w.visitor.stop.kind != atEnd && !w.visitor.belief.holds && len(w.choices(false)) > 0 {
			w.do(w.choices(false)[0])
		}
		let := w.visitor.belief.holds
		if w.visitor.stop.kind != atEnd {
			w.crash(w.visitor)
		}
		if let {
			return true
		}
	}
	return false
}

// collect brings what the engine has sent to where clients find it.
func (w *world) collect() {
	for i, c := range w.clients {
		if c.stop.kind == atBlocked && !c.served && c.stop.conn.remote.Pending() {
			c.served = true
			if !w.step.clock { // else it is told that its time is up
				w.judgeServed(i)
			}
			w.step.woke = append(w.step.woke, i)
		}
		if c.listen != nil && !c.dead && c.stop.kind != atEnd {
			w.collectNotices(i, c)
		}
		if c.inbox == nil || c.dead || !c.inbox.Pending() {
			continue
		}
		w.step.woke = append(w.step.woke, i)
		c.mail = append(c.mail, messages(c.inbox.Received())...)
	}
}

// judgeServed looks at who of those who block was answered.
func (w *world) judgeServed(client int) {
	for _, ahead := range w.queue {
		if ahead == client {
			return
		}
		if c := w.clients[ahead]; !c.served && !c.dead {
			w.accuse(Order, "%s is served while %s, who came before it, still waits", w.clients[client].Name, c.Name)
		}
	}
}

// leaveQueue takes a client out of the queue of those who wait.
func (w *world) leaveQueue(client int) {
	w.queue = slices.DeleteFunc(w.queue, func(i int) bool { return i == client })
}
