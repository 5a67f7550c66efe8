package ledger

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/stepped"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// What depends on the server's clock to the ms, on an engine whose clock the test moves.

// clocked is a transport to such an engine.
type clocked struct {
	transport.Transport // nothing else is called
	*stepped.Engine
}

func (c clocked) Do(_ context.Context, command transport.Command) (any, error) {
	words := make([]string, len(command.Words))
	for i, word := range command.Words {
		words[i] = fmt.Sprint(word)
	}
	return readReply(bufio.NewReader(bytes.NewReader(c.Engine.Do(words...))))
}

func (c clocked) Pipeline(ctx context.Context, commands []transport.Command) (replies []transport.Reply) {
	for _, command := range commands {
		value, err := c.Do(ctx, command)
		replies = append(replies, transport.Reply{Value: value, Err: err})
	}
	return replies
}

func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	n, _ := strconv.ParseInt(text, 10, 64) // 0 for what is no number
	switch {
	case kind == '-':
		return nil, &transport.ServerError{Text: text}
	case kind == ':':
		return n, nil
	case kind == '+':
		return text, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		data := make([]byte, n+2)
		_, err := r.Read(data)
		return string(data[:n]), err
	case kind == '*':
		elements := make([]any, n)
		for i := range elements {
			var failed error
			elements[i], failed = readReply(r)
			err = errors.Join(err, failed)
		}
		return elements, err
	}
	return nil, fmt.Errorf("a reply that begins with %q", kind)
}

// clockedLedger is one resource on an engine of its own.
type clockedLedger struct {
	*testing.T
	*Ledger
	engine   *stepped.Engine
	resource *Resource
}

func newClockedLedger(t *testing.T) *clockedLedger {
	t.Helper()
	e := stepped.New(time.UnixMilli(1_700_000_000_000))
	t.Cleanup(e.Close)
	resource, err := NewResource("clock")
	must(t, err)
	return &clockedLedger{t, New(clocked{Engine: e}), e, resource}
}

// ask asks for one permit of one, for ten seconds, and waits if it has to.
func (c *clockedLedger) ask(id string) AcquireAnswer {
	c.Helper()
	answer, err := c.Acquire(c.Context(), &AcquireRequest{
		Resource: c.resource, ID: id, Weight: 1, Limit: 1, TTL: 10 * time.Second, Wait: 3 * time.Second, Claim: 3 * time.Second,
	})
	must(c.T, err)
	return answer
}

func (c *clockedLedger) heartbeat(ids ...string) HeartbeatResult {
	c.Helper()
	request := HeartbeatRequest{Resource: c.resource, IDs: ids, Claim: 3 * time.Second}
	result := c.HeartbeatAll(c.Context(), []HeartbeatRequest{request})[0]
	must(c.T, result.Err)
	return result
}

// within is a transport that counts commands by how long their answer may take.
type within struct {
	clocked
	count map[time.Duration]int
}

func (w within) Do(ctx context.Context, command transport.Command) (any, error) {
	w.count[command.Within]++
	return w.clocked.Do(ctx, command)
}

func (w within) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	for _, command := range commands {
		w.count[command.Within]++
	}
	return w.clocked.Pipeline(ctx, commands)
}

func TestCommandsSayWithinWhatTime(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	count := make(map[time.Duration]int)
	all := New(within{clocked{Engine: c.engine}, count})
	hurried := all.Within(time.Second)
	releases := []ReleaseRequest{{Resource: c.resource, ID: "p:1"}, {Resource: c.resource, ID: "p:2", Bar: time.Second}}
	for i, hold := range []Hold{Held, Lost} {
		c.ask("p:1")
		result := hurried.ReleaseAll(t.Context(), releases)[i]
		must(t, result.Err)
		expect(t, releases[i].ID, fmt.Sprint(result.Hold), fmt.Sprint(hold))
	}
	c.ask("p:3")
	cancels := hurried.CancelAll(t.Context(), []CancelRequest{{c.resource, "p:4", time.Second}, {c.resource, "p:3", time.Second}})
	expect(t, "cancels", fmt.Sprint(cancels), fmt.Sprint([]CancelResult{{WasUnknown, nil}, {WasHeld, nil}}))
	// Of two kinds of script one each was not known the first time.
	expect(t, "commands", fmt.Sprint(count), fmt.Sprint(map[time.Duration]int{time.Second: 8}))
	_, err := all.Inspect(t.Context(), c.resource, 1)
	must(t, err)
	expect(t, "commands in no hurry", fmt.Sprint(count[0]), "2")
}

func TestHeartbeatKeepsAllWaitersAlive(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.ask("p:1")
	c.ask("p:2")
	c.ask("p:3")
	for i := range 9 {
		for range 2 { // in one ms
			got := c.heartbeat("p:3", "p:2", "p:1")
			want := HeartbeatResult{
				NowMs: c.engine.Now().UnixMilli(), Next: time.Duration(10-i) * time.Second, Head: 1, Gone: []int{2},
			}
			expect(t, "heartbeat", fmt.Sprint(got), fmt.Sprint(want))
		}
		c.engine.Advance(time.Second)
	}
	c.engine.Advance(time.Second)
	got := c.heartbeat("p:3", "p:2")
	expect(t, "when the lease has expired", fmt.Sprint(got.Head, got.Gone), "0 [1]")
	if answer := c.ask("p:2"); answer.Outcome != Granted {
		t.Errorf("who was granted asks: %+v", answer)
	}
	c.engine.Advance(3 * time.Second)
	got = c.heartbeat("p:3")
	expect(t, "after the claim time", fmt.Sprint(got.Head, got.Gone), "-1 [0]")
}

// name is a heartbeat of a process that goes on with still.
func (c *clockedLedger) name(process string, ids ...string) int64 {
	c.Helper()
	request := HeartbeatRequest{Resource: c.resource, IDs: ids, Claim: 3 * time.Second, Process: process}
	result := c.HeartbeatAll(c.Context(), []HeartbeatRequest{request})[0]
	must(c.T, result.Err)
	expect(c.T, "who is gone", fmt.Sprint(result.Gone), "[]")
	return result.Version
}

func (c *clockedLedger) still(process string, version int64) bool {
	c.Helper()
	result := c.StillAll(c.Context(), []StillRequest{{Resource: c.resource, Process: process, Claim: 3 * time.Second, Version: version}})[0]
	must(c.T, result.Err)
	return result.Same
}

func TestAProcessSpeaksForItsWaiters(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.ask("holder:1")
	for _, id := range []string{"p:1", "p:2", "q:1"} {
		c.ask(id)
	}
	version := c.name("p", "p:1", "p:2")
	for range 9 {
		c.engine.Advance(time.Second)
		c.name("q", "q:1")
		if !c.still("p", version) {
			t.Fatal("something has changed")
		}
	}
	hold, err := c.Release(t.Context(), c.resource, "holder:1")
	expect(t, "release", fmt.Sprint(hold, err), fmt.Sprint(Held, nil))
	if c.still("p", version) {
		t.Error("p is not told that one of its waiters was granted")
	}
	if version = c.name("p", "p:2"); !c.still("p", version) {
		t.Error("something has changed")
	}
	if hold, err := c.Release(t.Context(), c.resource, "p:1"); hold != Held || err != nil {
		t.Error(hold, err)
	}
	expect(t, "who is granted", c.holder(), "p:2")
}

func (c *clockedLedger) holder() string {
	c.Helper()
	state, err := c.Inspect(c.Context(), c.resource, 10)
	must(c.T, err)
	if len(state.Holders) != 1 {
		return ""
	}
	return state.Holders[0].ID
}

// Waiters whose process has died hold nobody up, however many they are, though each of them was named not long ago.
func TestWaitersOfADeadProcessAreSkipped(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.ask("holder:1")
	var ids []string
	for i := range 500 {
		ids = append(ids, fmt.Sprint("p:", i))
		c.ask(ids[i])
	}
	c.ask("q:1")
	c.name("p", ids...)
	for range 4 {
		c.engine.Advance(time.Second)
		c.heartbeat("q:1")
	}
	if hold, err := c.Release(t.Context(), c.resource, "holder:1"); hold != Held || err != nil {
		t.Error(hold, err)
	}
	expect(t, "who is granted", c.holder(), "q:1")
}

// A waiter whose cancel was lost is not named any more, and is gone in time though its process lives.
func TestWhoIsNotNamedAnyMoreIsForgotten(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	_, err := c.Acquire(t.Context(), &AcquireRequest{Resource: c.resource, ID: "holder:1", Weight: 1, Limit: 1, TTL: time.Minute})
	must(t, err)
	c.ask("p:1")
	c.ask("p:2")
	c.name("p", "p:1", "p:2")
	for range 10 {
		c.engine.Advance(3 * time.Second)
		c.engine.Advance(-time.Millisecond)
		c.still("p", c.name("p", "p:2"))
	}
	c.engine.Advance(time.Second)
	c.name("p", "p:2")
	state, err := c.Inspect(t.Context(), c.resource, 10)
	must(t, err)
	if len(state.Queue) != 1 || state.Queue[0].ID != "p:2" {
		t.Errorf("who waits: %+v", state.Queue)
	}
}

func TestWhatIsLostIsTold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(c *clockedLedger){
		"all":   func(c *clockedLedger) { c.engine.Do("FLUSHALL") },
		"state": func(c *clockedLedger) { c.engine.Do("DEL", c.resource.Keys()[0]) },
		"queue": func(c *clockedLedger) { c.engine.Do("DEL", c.resource.Keys()[2]) },
		"seen":  func(c *clockedLedger) { c.engine.Do("DEL", c.resource.Keys()[3]) },
		"force": func(c *clockedLedger) {
			if n, err := c.Force(c.Context(), c.resource, "p:2", time.Minute); n != 1 || err != nil {
				c.Error(n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClockedLedger(t)
			c.ask("holder:1")
			c.ask("p:1")
			c.ask("p:2")
			version := c.name("p", "p:1", "p:2")
			if !c.still("p", version) {
				t.Error("something has changed")
			}
			lose(c)
			if c.still("p", version) {
				t.Error("p is not told")
			}
		})
	}
}

// Who asks for itself, as one that is near the head does, is as alive as before.
func TestWhoAsksItselfGoesOnToCount(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.ask("holder:1")
	c.ask("p:1")
	version := c.name("p", "p:1")
	c.ask("p:1")
	for range 8 {
		c.engine.Advance(time.Second)
		if !c.still("p", version) {
			t.Fatal("something has changed")
		}
	}
	if hold, err := c.Release(t.Context(), c.resource, "holder:1"); hold != Held || err != nil {
		t.Error(hold, err)
	}
	expect(t, "who is granted", c.holder(), "p:1")
}

// A QUEUE that is lost leaves its waiters in SEEN. They are told to ask, and have places again.
func TestHeartbeatNoticesALostQueue(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.ask("p:1")
	c.ask("p:2")
	c.ask("p:3")
	c.engine.Do("DEL", c.resource.Keys()[2])
	expect(t, "who is gone", fmt.Sprint(c.heartbeat("p:2", "p:3").Gone), "[0 1]")
	c.ask("q:1")
	expect(t, "who is gone now", fmt.Sprint(c.heartbeat("p:2", "p:3").Gone), "[0 1]")
	c.ask("p:3")
	rounds := 0
	for !slices.Equal(c.heartbeat("p:2", "p:3").Gone, []int{0}) {
		if c.engine.Advance(time.Microsecond); rounds == 2 {
			t.Fatal("p:2 is not told")
		}
		rounds++
	}
}

// A Downgrade that is late, behind the Upgrade that came after it, lets nobody in.
func TestReweighsHaveAnOrder(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	ctx := t.Context()
	_, err := c.Acquire(ctx, &AcquireRequest{
		Resource: c.resource, ID: "p:1", Weight: 3, Limit: 3, TTL: time.Minute, Terms: Terms{Notice: true, Cool: time.Minute},
	})
	must(t, err)
	reweigh := func(number int64, weight int) string {
		answer, err := c.Reweigh(ctx, c.resource, "p:1", number, weight, 3)
		must(t, err)
		return fmt.Sprintf("%d stale %t busy %t", answer.Weight, answer.Stale, answer.Busy)
	}
	expect(t, "down", reweigh(1, 1), "1 stale false busy false")
	expect(t, "up", reweigh(2, 3), "3 stale false busy false")
	expect(t, "down, late", reweigh(1, 1), "3 stale true busy false")
	expect(t, "up, again", reweigh(2, 3), "3 stale false busy false")
	expect(t, "down", reweigh(3, 1), "1 stale false busy false")
	_, err = c.Acquire(ctx, &AcquireRequest{Resource: c.resource, ID: "p:2", Weight: 2, Limit: 3, TTL: time.Minute})
	must(t, err)
	expect(t, "up, not now", reweigh(4, 3), "0 stale false busy true")
	if hold, err := c.Release(ctx, c.resource, "p:2"); hold != Held || err != nil {
		t.Fatal(hold, err)
	}
	expect(t, "up, tried again", reweigh(4, 3), "3 stale false busy false")
	record := string(c.engine.Do("HGET", c.resource.Keys()[0], "p:1"))
	if !strings.Contains(record, " c60000,n,r4 ") {
		t.Errorf("the record is %q", record)
	}
}

// An hour that the server's clock goes back keeps nothing from its end.
func TestClockThatGoesBackKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	first := c.ask("p:1")
	c.ask("p:2") // dies
	c.engine.Advance(-time.Hour)
	if answer := c.ask("p:3"); answer.Outcome != Waiting || answer.Ahead != 1 || answer.Next != 10*time.Second {
		t.Fatalf("at once: %+v", answer)
	}
	for range 4 {
		c.engine.Advance(2 * time.Second)
		c.heartbeat("p:3")
	}
	c.engine.Advance(-time.Hour)
	c.heartbeat("p:3")
	c.engine.Advance(2 * time.Second)
	answer := c.ask("p:3")
	if answer.Outcome != Granted || answer.Token <= first.Token {
		t.Fatalf("when the lease is over: %+v, the token before was %d", answer, first.Token)
	}
	state, err := c.Inspect(t.Context(), c.resource, 10)
	must(t, err)
	if len(state.Holders) != 1 || state.Waiters != 0 || state.Holders[0].Deadline.Sub(state.Now) != 10*time.Second {
		t.Errorf("at the end: %+v", state)
	}
}

// What remembers the last token is there until the server's clock has passed it, however far that went back, and whoever
// raised it.
func TestTokensIncreaseThoughTheClockIsBehindThem(t *testing.T) {
	t.Parallel()
	for name, fallBehind := range map[string]func(c *clockedLedger, token int64) int64{
		"the clock went back": func(c *clockedLedger, token int64) int64 {
			c.engine.Advance(-time.Hour)
			return token
		},
		"another server's token": func(c *clockedLedger, token int64) int64 {
			token += time.Hour.Microseconds()
			hold, err := c.Raise(c.Context(), c.resource, "p:0", token)
			expect(c.T, "raise", fmt.Sprint(hold, err), "1 <nil>")
			return token
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClockedLedger(t)
			last := fallBehind(c, c.ask("p:0").Token)
			if hold, err := c.Release(t.Context(), c.resource, "p:0"); hold != Held || err != nil {
				t.Fatal(hold, err)
			}
			for i := range 100 {
				c.engine.Advance(time.Minute)
				answer := c.ask(fmt.Sprint("p:", i+1))
				if answer.Outcome != Granted || answer.Token <= last {
					t.Fatalf("after %d minutes: %+v, the token before was %d", i+1, answer, last)
				}
				last = answer.Token
			}
			c.engine.Advance(2 * time.Hour)
			expect(t, "keys in the end", string(c.engine.Do("KEYS", "*")), "*0\r\n")
		})
	}
}

// A barrier remembers its last round until the server's clock has passed it, as a state does its last token.
func TestRoundsIncreaseThoughTheClockWentBack(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	last := int64(0)
	for i := range 20 {
		for party := range 2 {
			id := fmt.Sprintf("p:%d", 2*i+party)
			answer, err := c.Arrive(t.Context(), c.resource, id, 2, 3*time.Second)
			must(t, err)
			if party == 1 {
				if answer.Round <= last {
					t.Fatalf("round %d after %d", answer.Round, last)
				}
				last = answer.Round
			}
		}
		if i == 0 {
			c.engine.Advance(-time.Hour)
		}
		c.engine.Advance(5 * time.Minute)
	}
	c.engine.Advance(time.Hour)
	expect(t, "keys in the end", string(c.engine.Do("KEYS", "*")), "*0\r\n")
}

// A still of a process that no heartbeat named, or whose mark was lost, leaves no key that never expires.
func TestStillOfAStrangerLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.ask("p:1")
	c.ask("q:1")
	if hold, err := c.Release(t.Context(), c.resource, "p:1"); hold != Held || err != nil {
		t.Fatal(hold, err)
	}
	c.ask("q:2") // which is believed in by its record
	request := HeartbeatRequest{Resource: c.resource, IDs: []string{"r:1"}, Claim: 3 * time.Second, Process: "r"}
	result := c.HeartbeatAll(t.Context(), []HeartbeatRequest{request})[0]
	expect(t, "who is gone", fmt.Sprint(result.Gone, result.Err), "[0] <nil>")
	if c.still("r", result.Version) {
		t.Error("r is not told that none of it waits")
	}
	expect(t, "expiry of seen", string(c.engine.Do("PTTL", c.resource.Keys()[3])), ":-2\r\n")
}

// A party that gave up is not counted by an arrive of it that comes late.
func TestBarrierDoesNotCountWhoLeft(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.arrives("p:1", "{false false 0 1}")
	if _, err := c.Depart(t.Context(), c.resource, "p:1", 2, time.Second); err != nil {
		t.Fatal(err)
	}
	c.arrives("p:1", "{false true 0 0}")
	c.arrives("p:2", "{false false 0 1}")
	c.engine.Advance(10*time.Second - time.Millisecond)
	c.arrives("p:1", "{false true 0 0}")
	c.engine.Advance(time.Second)
	if left := c.engine.Do("EXISTS", c.resource.Keys()[0]+":left"); string(left) != ":0\r\n" {
		t.Errorf("the bar never expires")
	}
}

// arrives has one of two parties arrive.
func (c *clockedLedger) arrives(id, want string) {
	c.Helper()
	answer, err := c.Arrive(c.Context(), c.resource, id, 2, time.Second)
	must(c.T, err)
	expect(c.T, id+" arrives", fmt.Sprint(answer), want)
}

func TestClockThatGoesBackKeepsNoDeadParty(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	c.arrives("dead:1", "{false false 0 1}")
	c.engine.Advance(-time.Hour)
	c.arrives("p:2", "{false false 0 1}")
	c.engine.Advance(time.Second / 3)
	c.arrives("p:2", "{false false 0 1}")
}

func TestClockThatGoesBackKeepsTheRate(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	request := LimitRequest{Resource: c.resource, Interval: time.Second, Burst: 2, Cost: 1}
	take := func(want string) LimitAnswer {
		t.Helper()
		answer, err := c.Limit(t.Context(), &request)
		must(t, err)
		expect(t, "taken, delay", fmt.Sprint(answer.Taken, answer.Delay), want)
		return answer
	}
	take("true 0s")
	take("true 0s")
	take("false 1s")
	c.engine.Advance(-time.Hour)
	take("false 1s")
	c.engine.Advance(time.Second)
	answer := take("true 0s")
	back, err := c.Refund(t.Context(), &request, answer.Mark)
	must(t, err)
	expect(t, "given back", fmt.Sprint(back), "true")
	c.engine.Advance(-time.Hour)
	take("true 0s")
	take("false 1s")

	// What the version before left.
	ahead := c.engine.Now().Add(2 * time.Second).UnixMicro()
	c.engine.Do("SET", c.resource.Keys()[0]+":rate", fmt.Sprint(ahead), "PX", "2000")
	take("false 1s")
	c.engine.Advance(time.Second)
	take("true 0s")
}

// The pace and what is held at least go on too.
func TestClockThatGoesBackKeepsThePace(t *testing.T) {
	t.Parallel()
	c := newClockedLedger(t)
	take := func(id string) AcquireAnswer {
		answer, err := c.Acquire(t.Context(), &AcquireRequest{
			Resource: c.resource, ID: id, Weight: 1, Limit: 1, TTL: 10 * time.Second,
			Terms: Terms{Pace: 2 * time.Second, Burst: 1, Hold: time.Second},
		})
		must(t, err)
		return answer
	}
	expect(t, "first", fmt.Sprint(take("p:1").Outcome), fmt.Sprint(Granted))
	c.engine.Advance(-time.Hour)
	hold, err := c.Release(t.Context(), c.resource, "p:1")
	must(t, err)
	expect(t, "release", fmt.Sprint(hold), fmt.Sprint(Held))
	expect(t, "held at least for", fmt.Sprint(take("p:2").Next), "1s")
	c.engine.Advance(time.Second)
	expect(t, "the pace allows it in", fmt.Sprint(take("p:2").Next), "1s")
	c.engine.Advance(time.Second)
	expect(t, "second", fmt.Sprint(take("p:2").Outcome), fmt.Sprint(Granted))
}
