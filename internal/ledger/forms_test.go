package ledger

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The two forms of a state, and those of other versions: what transitions answer and leave behind does not depend on it.

// shape is one resource on an engine with a clock of its own.
type shape struct {
	*clockedLedger
}

func newShape(t *testing.T) shape { return shape{newClockedLedger(t)} }

// run runs a transition and returns its reply as the protocol has it.
func (s shape) run(text string, args ...any) string {
	s.Helper()
	words := []string{"EVAL", text, "4"}
	words = append(words, s.resource.Keys()...)
	for _, arg := range args {
		words = append(words, fmt.Sprint(arg))
	}
	return string(s.engine.Do(words...))
}

func (s shape) line() string {
	return string(s.engine.Do("HGET", s.resource.Keys()[0], "clock"))
}

func (s shape) isCompact() bool { return strings.Contains(s.line(), "\r\n3c ") }

// holds is everything the keys hold, whichever the form is.
func (s shape) holds() string { return s.run(Probe, "read") }

func (s shape) acquire(id string, weight int) {
	s.Helper()
	if reply := s.run(acquireScript.text.(string), id, weight, 6, 10000, 0, 3000, "-", "me\tlabel"); !strings.HasPrefix(reply, "*3\r\n:1\r\n") {
		s.Fatalf("%s was not granted: %q", id, reply)
	}
}

// compactStates are how the compact form can come to be, but for tokens and times.
var compactStates = map[string]func(s shape){
	"never used": func(shape) {},
	"idle": func(s shape) {
		s.acquire("p:1", 1)
		s.run(releaseScript.text.(string), "p:1")
	},
	"one":   func(s shape) { s.acquire("p:1", 1) },
	"heavy": func(s shape) { s.acquire("p:1", 6) },
	"two":   func(s shape) { s.acquire("q:1", 2); s.acquire("p:1", 3) },
	"four": func(s shape) {
		for i, id := range []string{"q:1", "p:1", "p:2", "r:1"} {
			s.acquire(id, 1)
			s.engine.Advance(time.Duration(i) * time.Second)
		}
	},
	"one of two has expired": func(s shape) {
		s.acquire("q:1", 2)
		s.engine.Advance(9 * time.Second)
		s.acquire("p:1", 3)
		s.engine.Advance(2 * time.Second)
	},
	"all have expired": func(s shape) {
		s.acquire("q:1", 2)
		s.acquire("p:1", 3)
		s.engine.Advance(11 * time.Second)
	},
	"renewed": func(s shape) {
		s.acquire("p:1", 1)
		s.engine.Advance(5 * time.Second)
		s.run(renewScript.text.(string), "p:1", 10000, 0)
		s.engine.Advance(6 * time.Second)
	},
	"the clock went back": func(s shape) {
		s.acquire("p:1", 2)
		s.engine.Advance(-time.Hour)
	},
}

var formCalls = map[string][][]any{
	"acquire": {
		{"p:1", 1, 6, 10000, 0, 3000, "-", "me"},
		{"n:1", 1, 6, 10000, 0, 3000, "-", "me"},
		{"n:1", 6, 6, 10000, 0, 3000, "-", "me"},
		{"n:1", 6, 6, 10000, 5000, 3000, "-", "me"},
		{"n:1", 7, 6, 10000, 5000, 3000, "-", "me"},
		{"n:1", 2, 2, 10000, 5000, 3000, "-", "me"},
		{"n:1", 1, 6, 20000000, 5000, 3000, "-", "me\nyou"},
		{"n:1", 1, 6, 10000, 5000, 3000, "c1000,h1000,p1000000:1,b3,n", "me"},
		{"n:1", 6, 6, 10000, 5000, 3000, "n", "me"},
	},
	"acquire_group": {{"p:1", 1, 6, 10000, 0, 3000, "me"}, {"n:1", 1, 6, 10000, 5000, 3000, "me"}, {"n:1", 6, 6, 10000, 5000, 3000, "me"}},
	"release":       {{"p:1"}, {"q:1"}, {"n:1"}},
	"renew":         {{"p:1", 20000, 0}, {"n:1", 20000, 0}, {"p:1", 5000, 1000, "q:1", 10000, 0, "n:1", 1, 0}, {"q:1", 20000000, 0}},
	"cancel":        {{"p:1", 5000, 0}, {"p:1", 5000, 1}, {"n:1", 5000, 0}},
	"heartbeat":     {{3000, "p:1", "n:1"}, {"3000,p", "p:1"}},
	"still":         {{3000, "p", 1}},
	"resize":        {{3}, {0}},
	"inspect":       {{100}, {1}, {0}},
	"force":         {{"p:1", 5000}, {"", 5000}, {"n:1", 5000}},
	"reweigh":       {{"p:1", 2, 6, 1}, {"p:1", 6, 6, 1}, {"p:1", 1, 6, 1}, {"n:1", 1, 6, 1}},
	"raise":         {{"p:1", 1}, {"p:1", 3000000000000000}, {"n:1", 1}},
	"watch":         {{5000}},
}

// Every transition answers the same, and leaves the same, whether it finds the compact form or the full one; and so does
// the one that comes after it.
func TestFormsAreTheSame(t *testing.T) {
	t.Parallel()
	for _, f := range library {
		calls := formCalls[f.name]
		if calls == nil && strings.Contains(f.script.text.(string), "STATE, LEASES") {
			t.Errorf("how is %s called?", f.name)
		}
		compact, full := newShape(t), newShape(t)
		for _, args := range calls {
			for state, reach := range compactStates {
				for _, s := range []shape{compact, full} {
					s.engine.Reset(time.UnixMilli(1_700_000_000_000))
					reach(s)
				}
				if compact.line() != "$-1\r\n" && !compact.isCompact() {
					t.Errorf("%s: the form is %q", state, compact.line())
				}
				full.run(renewScript.text.(string), "nobody:1", 1, 0, "nobody:2", 1, 0)
				before := full.holds()
				if full.isCompact() && strings.Contains(full.line(), " L ") {
					t.Fatalf("%s: the form is %q", state, full.line())
				}
				if !strings.Contains(state, "expired") {
					same(t, state, compact.holds(), before)
				}
				for step, next := range [][]any{args, args} {
					got, want := compact.run(f.script.text.(string), next...), full.run(f.script.text.(string), next...)
					what := fmt.Sprintf("%s %v on %q, step %d", f.name, next, state, step)
					expect(t, what, got, want)
					if step == 1 || f.name != "inspect" {
						compact.run(inspectScript.text.(string), 0)
					}
					full.run(inspectScript.text.(string), 0)
					same(t, what, compact.holds(), full.holds())
					compact.engine.Advance(time.Second)
					full.engine.Advance(time.Second)
				}
			}
		}
	}
}

// same compares what the keys hold. Leases may stand in another order.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	sorted := func(text string) string {
		words := strings.Split(text, "\r\n")
		for i := range words {
			for j := i + 1; j < len(words); j++ {
				if words[j] < words[i] {
					words[i], words[j] = words[j], words[i]
				}
			}
		}
		return strings.Join(words, "|")
	}
	expect(t, "what is left of "+what, sorted(got), sorted(want))
}

// A lock that is taken and given back again and again is one key, whoever waited before, once that is some time ago.
func TestTheFormFoldsBack(t *testing.T) {
	t.Parallel()
	c := newShape(t)
	c.ask("p:1")
	c.ask("p:2")
	for _, id := range []string{"p:1", "p:2"} {
		if hold, err := c.Release(t.Context(), c.resource, id); hold != Held || err != nil {
			t.Fatal(hold, err)
		}
	}
	c.engine.Advance(10 * time.Second)
	for i := range 20 {
		id := fmt.Sprint("p:", 10+i)
		c.ask(id)
		if i == 19 && !c.isCompact() {
			t.Errorf("the form is %q", c.line())
		}
		if hold, err := c.Release(t.Context(), c.resource, id); hold != Held || err != nil {
			t.Fatal(hold, err)
		}
		c.engine.Advance(time.Second)
	}
	expect(t, "keys", string(c.engine.Do("KEYS", "*")), "*1\r\n$17\r\nsignalbox:{clock}\r\n")
}

// A line that was cut by hand counts as a lease of all there is, with a name that says so, until its key would have expired.
func TestACutLineHoldsEverything(t *testing.T) {
	t.Parallel()
	for cut := 1; ; cut += 3 {
		c := newShape(t)
		c.acquire("p:1", 1)
		line := strings.TrimSuffix(c.line()[strings.Index(c.line(), "\r\n")+2:], "\r\n")
		if cut >= len(line) {
			return
		}
		for _, torn := range []string{line[:cut], line[cut:], line[:len(line)-1], ""} {
			c.engine.Do("HSET", c.resource.Keys()[0], "clock", torn)
			if answer := c.ask("n:1"); answer.Outcome == Granted {
				t.Fatalf("granted beside %q", torn)
			}
			state, err := c.Inspect(t.Context(), c.resource, 10)
			must(t, err)
			if len(state.Holders) != 1 || !strings.Contains(state.Holders[0].Owner, "cut off") {
				t.Fatalf("holders after %q: %+v", torn, state.Holders)
			}
			c.engine.Do("FLUSHALL")
			c.acquire("p:1", 1)
		}
	}
}

// A lease that was granted in the compact form is repaired for as long as it had, though one that ends before it came with
// the full form.
func TestALostLeaseLastsAsLongWhateverTheFormWas(t *testing.T) {
	t.Parallel()
	c := newShape(t)
	c.acquire("p:1", 6)
	for i := range 3 {
		c.run(acquireScript.text.(string), "q:1", 1, 7, 1000+i, 0, 3000, "n", "me")
		c.engine.Do("DEL", c.resource.Keys()[1])
		c.run(inspectScript.text.(string), 0)
		c.engine.Advance(3 * time.Second)
		if answer := c.ask("n:1"); answer.Outcome == Granted {
			t.Fatalf("granted %d s after a lease of ten", 3*(i+1))
		}
		c.run(cancelScript.text.(string), "n:1", 1, 0)
		expect(t, "renew", c.run(renewScript.text.(string), "p:1", 10000, 0), "*1\r\n:1\r\n")
	}
}

// What is cut by hand, or taken out, is no reason for an error, or for a key that stays.
func TestACutFieldStopsNothing(t *testing.T) {
	t.Parallel()
	terms := "c1000,p1000000:9,n"
	for _, test := range []struct{ field, value string }{
		{"p:1", "L 1 17"},
		{"p:1", "L 1"},
		{"p:1", ""},
		{"w:1", "W 1 6"},
		{"w:1", ""},
		{"pace", ""},
		{"watched", ""},
		{"queue", "1 2"},
		{"queue", ""},
		{"clock", "3 17000"},
		{"clock", ""},
	} {
		for _, taken := range []bool{false, true} {
			c := newShape(t)
			c.run(acquireScript.text.(string), "p:1", 1, 6, 10000, 0, 3000, terms, "me")
			c.run(acquireScript.text.(string), "w:1", 6, 6, 10000, 3000, 3000, terms, "me")
			c.run(watchScript.text.(string), 5000)
			if taken {
				c.engine.Do("HDEL", c.resource.Keys()[0], test.field)
			} else {
				c.engine.Do("HSET", c.resource.Keys()[0], test.field, test.value)
			}
			for _, call := range [][]any{
				{acquireScript, "n:1", 1, 6, 10000, 3000, 3000, terms, "me"},
				{acquireScript, "p:1", 1, 6, 10000, 3000, 3000, terms, "me"},
				{renewScript, "p:1", 10000, 0},
				{releaseScript, "p:1"},
				{cancelScript, "w:1", 5000, 0},
				{cancelScript, "n:1", 5000, 0},
				{inspectScript, 10},
				{forceScript, "", 5000},
			} {
				if reply := c.run(call[0].(*script).text.(string), call[1:]...); strings.HasPrefix(reply, "-") {
					t.Errorf("%q is %q, taken out %t: %v: %s", test.field, test.value, taken, call[1:], reply)
				}
			}
			c.engine.Advance(time.Hour)
			expect(t, "keys after "+test.field, string(c.engine.Do("KEYS", "*")), "*0\r\n")
		}
	}
}

// A line that is lost where nothing else of the state is of use takes its key with it: the new one expires too.
func TestAStateThatBeginsAnewExpires(t *testing.T) {
	t.Parallel()
	c := newShape(t)
	c.run(cancelScript.text.(string), "p:1", 100, 0)
	c.engine.Advance(time.Second)
	c.engine.Do("HDEL", c.resource.Keys()[0], "clock")
	c.acquire("p:2", 1)
	c.engine.Advance(time.Minute)
	expect(t, "keys", string(c.engine.Do("KEYS", "*")), "*0\r\n")
}

// Leases that are lost leave a key that expires, though nobody looks at it any more.
func TestLeasesThatBeginAnewExpire(t *testing.T) {
	t.Parallel()
	for name, call := range map[string][]any{
		"acquire": {acquireScript, "p:7", 1, 7, 10000, 0, 3000, "-", "me"},
		"release": {releaseScript, "p:5"},
	} {
		c := newShape(t)
		for i := range 6 {
			c.run(acquireScript.text.(string), fmt.Sprint("p:", i), 1, 6, 10000, 0, 3000, "-", "me")
		}
		c.run(acquireScript.text.(string), "w:1", 1, 6, 10000, 3000, 3000, "-", "me")
		c.run(releaseScript.text.(string), "p:0")
		c.run(acquireScript.text.(string), "w:2", 1, 6, 10000, 3000, 3000, "-", "me")
		leases := c.resource.Keys()[1]
		c.engine.Do("ZREM", leases, "w:1", "p:1", "p:2", "p:3", "p:4")
		if name == "acquire" {
			c.engine.Do("DEL", leases)
			c.engine.Do("DEL", c.resource.Keys()[2])
		}
		c.run(call[0].(*script).text.(string), call[1:]...)
		if ttl := string(c.engine.Do("PTTL", leases)); ttl == ":-1\r\n" {
			t.Errorf("%s leaves %q for ever", name, c.engine.Do("ZRANGE", leases, "0", "-1"))
		}
	}
}

// An id is one id whatever is in it: what does not fit into a line is put down in full.
func TestAnIDIsOneIDWhateverIsInIt(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"p:1\x00a", "p\x00:1", "p: 1", "p:\n1", "p:\t", "p:\x85", "p:\xa0", "p:%s", ""} {
		c := newShape(t)
		c.acquire(id, 1)
		c.acquire("p:1", 1)
		c.acquire(id, 1)
		state, err := c.Inspect(t.Context(), c.resource, 10)
		must(t, err)
		expect(t, fmt.Sprintf("held beside %q", id), fmt.Sprint(state.Held, state.Leases), "2 2")
		expect(t, fmt.Sprintf("renew %q", id), c.run(renewScript.text.(string), id, 10000, 0), "*1\r\n:1\r\n")
		expect(t, fmt.Sprintf("release %q", id), c.run(releaseScript.text.(string), id), ":1\r\n")
		expect(t, fmt.Sprintf("release %q again", id), c.run(releaseScript.text.(string), id), ":0\r\n")
	}
}

// The state of a later version is left alone.
func TestALaterVersionIsRefused(t *testing.T) {
	t.Parallel()
	c := newShape(t)
	c.engine.Do("HSET", c.resource.Keys()[0], "clock", "4 1700000000 and what it will be")
	_, err := c.Release(t.Context(), c.resource, "p:1")
	if err == nil || !strings.Contains(err.Error(), "VERSION 4") || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("release: %v", err)
	}
	expect(t, "the line", c.line(), "$32\r\n4 1700000000 and what it will be\r\n")
}

// A client of version 2 is on its way with held locks and waiters when the first of version 3 comes. This one goes on from
// there; the other is refused, and changes nothing.
func TestVersion2IsTakenOver(t *testing.T) {
	t.Parallel()
	file := func(name string) string {
		text, err := os.ReadFile("testdata/version2/" + name + ".lua")
		must(t, err)
		return string(text)
	}
	include := strings.NewReplacer("--@include prelude.lua\n", file("prelude"), "--@include functions.lua\n", file("functions"))
	old := func(name string) string { return include.Replace(file(name)) }
	c := newShape(t)
	first := c.run(old("acquire"), "p:1", 1, 1, 10000, 0, 3000, "-", "me")
	c.run(old("acquire"), "q:1", 1, 1, 10000, 5000, 3000, "-", "you")
	before := c.holds()
	hold, err := c.RenewAll(t.Context(), []RenewRequest{{Resource: c.resource, Leases: []Renewal{{ID: "p:1", TTL: 10 * time.Second}}}})[0].Holds, error(nil)
	expect(t, "renew", fmt.Sprint(hold, err), "[3] <nil>")
	if before == c.holds() || !strings.Contains(c.line(), "3 1700000000 ") {
		t.Errorf("the state is %q", c.line())
	}
	now := c.holds()
	for _, call := range [][]any{
		{"acquire", "r:1", 1, 1, 10000, 5000, 3000, "-", "me"},
		{"acquire", "p:1", 1, 1, 10000, 0, 3000, "-", "me"},
		{"release", "p:1"},
		{"renew", "p:1", 10000, 0},
	} {
		if reply := c.run(old(call[0].(string)), call[1:]...); !strings.HasPrefix(reply, "-") {
			t.Errorf("version 2: %v: %q", call, reply)
		}
	}
	expect(t, "the state after it", c.holds(), now)
	if answer := c.ask("p:1"); answer.Outcome != Granted || !strings.Contains(first, fmt.Sprint(answer.Token)) {
		t.Errorf("the lease of before: %+v, it was %q", answer, first)
	}
	released, err := c.Release(t.Context(), c.resource, "p:1")
	expect(t, "release", fmt.Sprint(released, err), "1 <nil>")
	expect(t, "who is granted", c.holder(), "q:1")

	// Over the compact form it is refused too.
	c.engine.Do("FLUSHALL")
	c.acquire("p:1", 1)
	now = c.holds()
	for _, reply := range []string{
		c.run(old("acquire"), "r:1", 1, 1, 10000, 5000, 3000, "-", "me"), c.run(old("release"), "p:1"), c.run(old("renew"), "p:1", 10000, 0),
	} {
		if !strings.HasPrefix(reply, "-") {
			t.Errorf("version 2 over the compact form: %q", reply)
		}
	}
	expect(t, "the compact form after it", c.holds(), now)
}
