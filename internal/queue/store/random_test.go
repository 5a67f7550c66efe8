package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/cases"
)

// Random runs of everything that a queue can be told. After each step Check finds nothing, and what is seen from outside
// keeps the promises: limits hold (Q4), what was acknowledged is not claimed again and tokens grow (Q2), and no job waits
// that an idle worker could run (Q7). SIGNALBOX_QUEUE_SEEDS runs more of them.

type chance struct {
	*lab
	r        *rand.Rand
	n        int
	held     map[string][]Claim // by worker
	reported map[string]bool    // tokens that do not count any more
	over     map[string]bool    // acknowledged, but for those that are run again by hand
	token    string
	limits   map[string]int // by key
	kinds    map[string]int
	steps    []string
}

func TestRandomRuns(t *testing.T) {
	seeds := cases.Count(12)
	if n, err := strconv.Atoi(os.Getenv("SIGNALBOX_QUEUE_SEEDS")); err == nil {
		seeds = n
	}
	randomRuns(t, seeds, newLab)
}

func randomRuns(t *testing.T, seeds int, newLab func(testing.TB) *lab) {
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := &chance{
				lab: newLab(t), r: rand.New(rand.NewPCG(uint64(seed), 1)), held: map[string][]Claim{}, reported: map[string]bool{},
				over: map[string]bool{}, limits: map[string]int{}, kinds: map[string]int{},
			}
			if seed%3 == 0 {
				c.configure("turns", "1")
			}
			for range 120 {
				c.step()
				if t.Failed() {
					t.Fatalf("after:\n%s", strings.Join(c.steps[max(0, len(c.steps)-12):], "\n"))
				}
			}
		})
	}
}

func (c *chance) say(format string, args ...any) {
	c.steps = append(c.steps, fmt.Sprintf(format, args...))
}

func (c *chance) pick(of ...string) string { return of[c.r.IntN(len(of))] }

func (c *chance) step() {
	switch c.r.IntN(12) {
	case 0, 1, 2:
		c.enqueueSome()
	case 3, 4, 5, 6, 7:
		c.callOf(c.pick("p/1", "p/2", "p/3"))
	case 8:
		d := time.Duration(c.r.IntN(4000)) * time.Millisecond
		c.say("%v pass", d)
		c.pass(d)
	case 9:
		c.operate()
	default:
		c.limit()
	}
	c.hear()
	c.judge()
}

func (c *chance) enqueueSome() {
	var items []Item
	for range 1 + c.r.IntN(4) {
		c.n++
		i := Item{ID: fmt.Sprint("j", c.n), Lane: Lane{Kind: c.pick("note", "other"), Key: c.pick("", "a", "b", "c")}}
		i.Priority = c.r.IntN(5) - 2
		if c.r.IntN(4) == 0 {
			i.Lane.Tags = []string{c.pick("x", "y")}
		}
		if c.r.IntN(4) == 0 {
			i.Lane.Cost = c.pick("slot=2", "call=1")
		}
		if c.r.IntN(4) == 0 {
			i.Delay = time.Duration(c.r.IntN(3000)) * time.Millisecond
		}
		if c.r.IntN(5) == 0 {
			i.UniqueField, i.UniqueIn = c.pick("u", "v"), c.pick("wlh", "wlhc")
		}
		if c.r.IntN(5) == 0 && c.n > 3 {
			i.After = After{c.pick("all", "any"), c.pick("cancel", "hold", "go"), []string{fmt.Sprint("j", c.n-1), fmt.Sprint("j", c.n-2)}}
		}
		i.Retention = time.Duration(c.r.IntN(2)) * time.Minute
		items = append(items, i)
	}
	c.say("enqueue %+v", items)
	c.enqueue(items...)
}

func (c *chance) callOf(id string) {
	r := &Report{
		Worker: id, Lease: 5 * time.Second, State: "online", Room: "slot:3,call:1", Kinds: "note,other", Info: "{}", Want: MostClaims,
		Tags: map[string]string{"p/1": "", "p/2": "x", "p/3": "x,y"}[id],
	}
	if c.r.IntN(20) == 0 {
		r.State = c.pick("draining", "gone")
	}
	held := c.held[id]
	for len(held) > 0 && c.r.IntN(3) > 0 {
		at := c.r.IntN(len(held))
		d := Done{ID: held[at].ID, Token: held[at].Token, Verb: c.pick("done", "done", "done", "retry", "dead", "snooze", "back", "cancelled")}
		d.After = time.Duration(c.r.IntN(2)*c.r.IntN(3000)) * time.Millisecond
		if c.r.IntN(10) == 0 {
			d.Token = "1" // it is not its token
		} else {
			held = slices.Delete(slices.Clone(held), at, at+1)
		}
		r.Done = append(r.Done, d)
	}
	c.held[id] = held
	r.Inventory = []string{}
	for _, h := range held {
		r.Inventory = append(r.Inventory, h.ID)
	}
	for i, d := range r.Done {
		if !slices.Contains(r.Inventory, d.ID) && slices.IndexFunc(r.Done, func(e Done) bool { return e.ID == d.ID }) == i && d.Token == "1" {
			r.Inventory = append(r.Inventory, d.ID)
		}
	}
	c.calls[id]++
	r.Call = c.calls[id]
	r.Register = r.Call == 1
	c.say("%s: %s %+v", id, r.State, r.Done)
	if c.r.IntN(8) == 0 && r.Call > 2 {
		late := *r
		late.Call, late.Done = r.Call-2, nil
		if _, err := c.Work(c.t.Context(), &late); err != nil && !strings.Contains(err.Error(), "LATE") {
			c.t.Error(err)
		}
		c.hear()
	}
	times := 1 + c.r.IntN(10)/9 // the reply is lost, and the call made again
	var answer *Answer
	var err error
	for range times {
		answer, err = c.Work(c.t.Context(), r)
		must(c.t, err)
		if answer.Unknown {
			c.held[id], c.calls[id] = nil, 0
			return
		}
		if times == 1 {
			c.claimed(id, answer.Claims)
		}
	}
	if r.State == "gone" {
		c.held[id], c.calls[id] = nil, 0
	}
	for _, d := range r.Done {
		if (d.Verb == "done" || d.Verb == "dead") && d.Token != "1" && !slices.Contains(answer.Late, d.ID) && times == 1 {
			c.over[d.ID] = true
		}
	}
	c.held[id] = slices.DeleteFunc(c.held[id], func(h Claim) bool { return slices.Contains(answer.Lost, h.ID) })
	if times > 1 {
		c.messages()
		c.found(id, answer.Missing)
		c.claimed(id, answer.Claims)
		return
	}
	c.found(id, answer.Missing)
}

// found takes in what a worker holds and does not know of.
func (c *chance) found(id string, claims []Claim) {
	for _, f := range claims {
		if !slices.ContainsFunc(c.held[id], func(h Claim) bool { return h.Token == f.Token }) {
			c.held[id] = append(c.held[id], f)
		}
	}
}

func (c *chance) claimed(id string, claims []Claim) {
	for _, f := range claims {
		if c.over[f.ID] {
			c.t.Errorf("Q2: %s was acknowledged, and is claimed again", f.ID)
		}
		if f.Token <= c.token {
			c.t.Errorf("Q2: token %s after %s", f.Token, c.token)
		}
		c.token = f.Token
	}
	c.found(id, claims)
}

func (c *chance) hear() {
	for _, words := range c.messages() {
		if words[0] == "jobs" {
			claims, _ := ParseClaims(words[2:])
			c.found(words[1], claims)
			for _, f := range claims {
				if c.token = max(c.token, f.Token); c.over[f.ID] {
					c.t.Errorf("Q2: %s was acknowledged, and is handed over again", f.ID)
				}
			}
		}
	}
}

func (c *chance) operate() {
	verb, id := c.pick("cancel", "delete", "retry"), fmt.Sprint("j", 1+c.r.IntN(c.n+1))
	c.say("%s %s", verb, id)
	if verb == "retry" {
		delete(c.over, id)
	}
	_, err := c.Change(c.t.Context(), verb, "", "", []string{id})
	must(c.t, err)
}

func (c *chance) limit() {
	of, n := c.pick("a", "b", "c"), 1+c.r.IntN(3)
	switch c.r.IntN(4) {
	case 0:
		c.say("no limit for %s", of)
		delete(c.limits, of)
		c.configure("limit\ty\t"+of, "")
	case 1:
		c.say("limit of note %d", n)
		c.kinds["note"] = n
		c.configure("limit\tk\tnote", strconv.Itoa(n))
	case 2:
		c.say("no limit of note")
		delete(c.kinds, "note")
		c.configure("limit\tk\tnote", "")
	default:
		c.say("limit for %s %d", of, n)
		c.limits[of] = n
		c.configure("limit\ty\t"+of, strconv.Itoa(n))
	}
}

// judge looks at everything from outside.
func (c *chance) judge() {
	c.t.Helper()
	if found := c.check(false); found != "" {
		c.t.Errorf("torn: %s", found)
	}
	running := map[string]int{}
	claims, _ := texts(c.raw("HVALS", c.key("claims")))
	for _, text := range claims {
		f := strings.Split(text, "\t")
		running["k"+f[3]]++
		running["y"+f[6]]++
	}
	waiting, _ := texts(c.raw("ZRANGE", c.key("waiting"), "0", "-1"))
	due, _ := texts(c.raw("ZRANGE", c.key("times"), "0", "-1", "WITHSCORES"))
	now := c.engine.Now().UnixMilli()
	leases := map[string]bool{}
	for i := 0; i < len(due); i += 2 {
		at, _ := strconv.ParseInt(due[i+1], 10, 64)
		if at <= now {
			return // somebody is to call
		}
		leases[due[i]] = true
	}
	workers, _ := texts(c.raw("HGETALL", c.key("workers")))
	for _, entry := range waiting {
		f := strings.Split(entry, "\t")
		if n, ok := c.limits[f[3]]; ok && f[3] != "" && running["y"+f[3]] >= n {
			continue
		}
		if n, ok := c.kinds[f[0]]; ok && running["k"+f[0]] >= n {
			continue
		}
		for i := 0; i < len(workers); i += 2 {
			if workers[i] != "" && leases["w\t"+workers[i]] && c.calls[workers[i]] > 1 && hasRoom(strings.Split(workers[i+1], "\t"), f) {
				c.t.Errorf("Q7: %q waits, and %s has room: %q", entry, workers[i], workers[i+1])
			}
		}
	}
}

func hasRoom(w, job []string) bool {
	if w[1] != "online" || job[1] != "" && !slices.Contains(strings.Split(w[4], ","), job[1]) {
		return false
	}
	name, amount, _ := strings.Cut(job[2], "=")
	need, _ := strconv.Atoi(amount)
	if job[2] == "" {
		name, need = "slot", 1
	}
	for _, part := range strings.Split(w[3], ",") {
		f := strings.Split(part, ":")
		used, _ := strconv.Atoi(f[1])
		limit, _ := strconv.Atoi(f[2])
		if f[0] == name && limit-used >= need {
			return true
		}
	}
	return false
}
