package exec_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// replica replays what a machine propagates.
type replica struct {
	t     testing.TB
	m     *exec.Machine
	nowUs int64
}

func newReplica(t testing.TB, nowUs int64) *replica {
	m := exec.New(exec.Options{Seed: 2}, nowUs)
	t.Cleanup(m.Close)
	return &replica{t: t, m: m, nowUs: nowUs}
}

// replay runs a stream of requests.
func (r *replica) replay(stream []byte) {
	r.t.Helper()
	for _, words := range requestsOf(r.t, stream) {
		if err := r.m.Replay(r.nowUs, argsOf(words...)); err != nil {
			r.t.Fatalf("%q: %v", words, err)
		}
	}
}

// ask runs a request on a session of its own and returns the reply as text.
func ask(t testing.TB, m *exec.Machine, nowUs int64, words ...string) string {
	t.Helper()
	s := m.ConnectLocal(nowUs)
	defer m.Disconnect(s)
	m.Step(nowUs, s, argsOf(words...))
	value, _, err := resp.Parse(s.Out.Bytes())
	if err != nil {
		t.Fatalf("%q answers %q: %v", words, s.Out.Bytes(), err)
	}
	return value.String()
}

// hazards are requests whose effects do not follow from their words: they depend on
// chance, on the time, or on who waits.
var hazards = []string{
	"SPOP set:$n", "SPOP set:$n 2", "SADD set:$n a b c d e f g", "XADD stream:$n * f v", "XADD stream:$n MAXLEN ~ 3 * f v",
	"XGROUP CREATE stream:$n g 0 MKSTREAM", "XREADGROUP GROUP g c COUNT 2 STREAMS stream:$n >", "XAUTOCLAIM stream:$n g d 0 - COUNT 1",
	"BLPOP list:0 list:1 list:2 0", "BLMOVE list:$n list:0 LEFT RIGHT 0", "BZPOPMIN zset:$n 0", "BLMPOP 0 1 list:$n RIGHT COUNT 2",
	"XREADGROUP GROUP g e BLOCK 0 STREAMS stream:$n >", "RPUSH list:$n a b c", "ZADD zset:$n 1 a 2 b",
	"SET str:$n v PX $ms", "PEXPIRE list:$n $ms", "PEXPIRE set:$n $ms", "PEXPIRE hash:$n $ms XX", "GETEX str:$n PX $ms", "PSETEX str:$n $ms v",
	"RANDOMKEY", "SELECT 1", "SELECT 0", "SELECT 0", "FLUSHDB", "MULTI", "EXEC", "EXEC",
	"EVAL redis.call('SADD',KEYS[1],1,2,3)redis.call('SPOP',KEYS[1])redis.call('PEXPIRE',KEYS[2],5)return(redis.call('INCR',KEYS[3])) 3 set:$n list:$n str:$n",
}

// TestReplayIsTheSameData: whatever is run, a second machine that replays what the first
// one propagates has the same data.
func TestReplayIsTheSameData(t *testing.T) {
	t.Parallel()
	const streams, requests, compareEvery = 12, 3000, 100
	for seed := range uint64(streams) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			play := newPlay(t, seed)
			for i := range requests {
				play.step()
				if i%compareEvery == 0 {
					play.compare()
				}
			}
			play.compare()
			if play.replica.m.Replayed() {
				t.Error("the log ends inside a transaction")
			}
			play.compareLife()
		})
	}
}

// play is a machine with some clients, and its replica.
type play struct {
	t        testing.TB
	m        *exec.Machine
	replica  *replica
	rand     *rand.Rand
	next     func() []string
	sessions []*exec.Session
	nowUs    int64
	log      []string // the requests since the last comparison
}

func newPlay(t testing.TB, seed uint64) *play {
	const clients, startUs = 5, 1_700_000_000_000_000
	next, stop := iter.Pull(difftest.Requests(seed))
	t.Cleanup(stop)
	p := &play{
		t: t, m: exec.New(exec.Options{Seed: seed}, startUs), replica: newReplica(t, startUs),
		rand: rand.New(rand.NewPCG(seed, 3)), next: func() []string {
			words, _ := next()
			return words
		}, nowUs: startUs,
	}
	t.Cleanup(p.m.Close)
	p.m.Propagate(true)
	for range clients {
		p.sessions = append(p.sessions, p.m.ConnectLocal(startUs))
	}
	return p
}

// step lets some time pass and one client do something. Where all are blocked, one loses
// its patience.
func (p *play) step() {
	p.nowUs += p.rand.Int64N(2000)
	if p.rand.IntN(10) == 0 {
		p.m.Tick(p.nowUs)
	}
	s := p.sessions[p.rand.IntN(len(p.sessions))]
	if number, _, blocked := s.Blocked(); blocked {
		if p.rand.IntN(3) == 0 {
			p.m.Timeout(p.nowUs, s, number)
		}
		return
	}
	words := p.next()
	if p.rand.IntN(3) == 0 {
		form := hazards[p.rand.IntN(len(hazards))]
		form = strings.ReplaceAll(form, "$n", strconv.Itoa(p.rand.IntN(3)))
		words = strings.Fields(strings.ReplaceAll(form, "$ms", strconv.Itoa(1+p.rand.IntN(20))))
	}
	p.log = append(p.log, fmt.Sprintf("%d %q", s.ID, words))
	p.m.Step(p.nowUs, s, argsOf(words...))
	s.Out.Reset()
	if p.rand.IntN(5) == 0 {
		p.take()
	}
}

func (p *play) take() {
	p.t.Helper()
	p.replica.nowUs = p.nowUs
	p.replica.replay(p.m.TakeEffects().Propagate)
}

func (p *play) compare() {
	p.t.Helper()
	p.take()
	want, got := ask(p.t, p.m, p.nowUs, "DEBUG", "DIGEST"), ask(p.t, p.replica.m, p.nowUs, "DEBUG", "DIGEST")
	if want != got {
		p.t.Fatalf("the data differ after\n%s", strings.Join(p.log, "\n"))
	}
	p.log = p.log[:0]
}

// compareLife compares what both machines hold once the replica lives on its own.
func (p *play) compareLife() {
	p.t.Helper()
	p.nowUs += 1_000_000
	for _, words := range [][]string{{"DEBUG", "DIGEST"}, {"FUNCTION", "LIST"}} {
		if want, got := ask(p.t, p.m, p.nowUs, words...), ask(p.t, p.replica.m, p.nowUs, words...); want != got {
			p.t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

// TestReplayKnowsHowFarGroupsHaveRead: Redis's log does not say how many entries were read,
// but it follows from it.
func TestReplayKnowsHowFarGroupsHaveRead(t *testing.T) {
	const nowUs = 1_700_000_000_000_000
	m, r := exec.New(exec.Options{}, nowUs), newReplica(t, nowUs)
	defer m.Close()
	m.Propagate(true)
	for _, request := range []string{
		"XGROUP CREATE x g 0 MKSTREAM", "XADD x 1-1 f v", "XADD x 1-2 f v", "XADD x 1-3 f v", "XADD x 1-4 f v", "XADD x 1-5 f v",
		"XREADGROUP GROUP g c COUNT 2 STREAMS x >", "XDEL x 1-3", "XGROUP CREATE x h 1-1", "XREADGROUP GROUP h c COUNT 1 STREAMS x >",
		"XREADGROUP GROUP g c NOACK COUNT 1 STREAMS x >", "XGROUP CREATE x i 0", "XREADGROUP GROUP i c COUNT 3 STREAMS x >",
		"XACK x i 1-1", "XCLAIM x i d 0 1-2", "XCLAIM x i d 0 1-4 LASTID 1-5",
	} {
		ask(t, m, nowUs, strings.Fields(request)...)
		r.replay(m.TakeEffects().Propagate)
		r.m.Replayed() // until then it is loading
		want, got := ask(t, m, nowUs, "XINFO", "GROUPS", "x"), ask(t, r.m, nowUs, "XINFO", "GROUPS", "x")
		if want != got {
			t.Errorf("after %s: %s, want %s", request, got, want)
		}
	}
	want, got := ask(t, m, nowUs, "XINFO", "STREAM", "x", "FULL"), ask(t, r.m, nowUs, "XINFO", "STREAM", "x", "FULL")
	if want != got {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestExpiredAndEvictedKeysArePropagated: those that expire while nobody looks, and those
// that are evicted, which come before the request that needs the room.
func TestExpiredAndEvictedKeysArePropagated(t *testing.T) {
	const startUs = 1_700_000_000_000_000
	m := exec.New(exec.Options{Seed: 1}, startUs)
	defer m.Close()
	m.Propagate(true)
	ask(t, m, startUs, "SET", "a", "v", "PX", "1")
	ask(t, m, startUs, "SET", "b", "v", "PX", "1")
	m.TakeEffects()
	m.Tick(startUs + 2000)
	if got := requestsOf(t, m.TakeEffects().Propagate); len(got) != 2 || got[0][0] != "DEL" || got[1][0] != "DEL" {
		t.Errorf("expired: %q", got)
	}
	ask(t, m, startUs, "CONFIG", "SET", "lazyfree-lazy-eviction", "yes", "maxmemory-policy", "allkeys-random")
	ask(t, m, startUs, "SET", "c", strings.Repeat("v", 100_000))
	ask(t, m, startUs, "CONFIG", "SET", "maxmemory", "50000")
	m.TakeEffects()
	ask(t, m, startUs, "SET", "d", "v")
	got := propagated(t, m)
	if want := `["UNLINK" "c"] ["SET" "d" "v"]`; got != want {
		t.Errorf("evicted: %s, want %s", got, want)
	}
}

// TestPropagationBeginsWithItsDatabase: a new reader is told where it is.
func TestPropagationBeginsWithItsDatabase(t *testing.T) {
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	ask(t, m, 1, "SET", "before", "v")
	m.Propagate(true)
	ask(t, m, 1, "INCR", "a")
	ask(t, m, 1, "INCR", "b")
	m.PropagateAnew()
	ask(t, m, 1, "INCR", "c")
	const all = `["SELECT" "0"] ["INCR" "a"] ["INCR" "b"] ["SELECT" "0"] ["INCR" "c"]`
	if got := propagated(t, m); got != all {
		t.Errorf("%s, want %s", got, all)
	}
	m.Propagate(false)
	ask(t, m, 1, "INCR", "d")
	if got := propagated(t, m); got != "" {
		t.Errorf("while it is off: %s", got)
	}
	m.Propagate(true)
	ask(t, m, 1, "INCR", "e")
	if got := propagated(t, m); got != `["SELECT" "0"] ["INCR" "e"]` {
		t.Errorf("after it was turned on again: %s", got)
	}
}

// propagated is what has been propagated since it was last asked for.
func propagated(t testing.TB, m *exec.Machine) string {
	t.Helper()
	return strings.Join(texts(requestsOf(t, m.TakeEffects().Propagate)), " ")
}

// TestReplayTakesNoForeignLog: a log that is not ours is refused, by the name of the
// command; a command that fails says why.
func TestReplayTakesNoForeignLog(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{"NOSUCH a", "NOSUCH"},
		{"SET k", "wrong number of arguments for 'set'"},
		{"XGROUP NOSUCH k", "NOSUCH"},
		{"MONITOR", "MONITOR"},
		{"SUBSCRIBE c", "SUBSCRIBE"},
		{"SHUTDOWN", "SHUTDOWN"},
		{"CONFIG SET maxmemory 1", "CONFIG"},
		{"CLIENT REPLY OFF", "CLIENT"},
		{"INCR text", "incr: ERR value is not an integer"},
		{"SELECT 99", "select: ERR DB index is out of range"},
		{"EXEC", "exec: ERR EXEC without MULTI"},
	} {
		m := exec.New(exec.Options{}, 1)
		if err := m.Replay(1, argsOf("SET", "text", "v")); err != nil {
			t.Fatal(err)
		}
		if err := m.Replay(1, argsOf(strings.Fields(c.request)...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.request, err, c.want)
		}
		m.Close()
	}
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	if err := m.Replay(1, nil); err == nil {
		t.Error("a request without words is taken")
	}
}

// TestReplayFindsTheEndMissing: a transaction whose EXEC is not in the log has not been.
func TestReplayFindsTheEndMissing(t *testing.T) {
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	for _, request := range []string{"SET k 1", "MULTI", "INCR k", "SPOP none"} {
		if err := m.Replay(1, argsOf(strings.Fields(request)...)); err != nil {
			t.Fatal(err)
		}
	}
	if !m.Replayed() {
		t.Error("nobody is told")
	}
	if got := ask(t, m, 1, "GET", "k"); got != `"1"` {
		t.Errorf("k is %s", got)
	}
	if m.Replayed() {
		t.Error("it is told twice")
	}
}

// TestReplayErrorInsideTransaction: the error of a command between MULTI and EXEC is that
// of the EXEC, and the others are run.
func TestReplayErrorInsideTransaction(t *testing.T) {
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	var err error
	for _, request := range []string{"MULTI", "SET k v", "INCR k", "SET l v", "EXEC"} {
		if err != nil {
			t.Fatal(err)
		}
		err = m.Replay(1, argsOf(strings.Fields(request)...))
	}
	if err == nil || !strings.Contains(err.Error(), "not an integer") {
		t.Errorf("EXEC: %v", err)
	}
	m.Replayed()
	if got := ask(t, m, 1, "GET", "l"); got != `"v"` {
		t.Errorf("l is %s", got)
	}
}

// TestReplayDecidesNothingAgain: what has expired since is there for the requests that saw
// it, memory is not short, and a trim is as long as it was. It ends with the replay.
func TestReplayDecidesNothingAgain(t *testing.T) {
	const nowUs = 1_700_000_000_000_000
	m := exec.New(exec.Options{}, nowUs)
	defer m.Close()
	m.Propagate(true)
	listener := m.ConnectLocal(nowUs)
	m.Step(nowUs, listener, argsOf("PSUBSCRIBE", "*"))
	listener.Out.Reset()
	ask(t, m, nowUs, "CONFIG", "SET", "notify-keyspace-events", "KEA", "maxmemory", "1")
	m.TakeEffects()
	for _, request := range []string{
		"SET old 1 PXAT 1000", "INCR old", "PERSIST old", "SET gone 1", "PEXPIREAT gone 1000", "APPEND gone 2", "RPUSH l a",
		"PEXPIREAT l 1000", "RPUSH l b", "RENAME l m", "PERSIST m", "BLPOP m 0",
		"XADD x MAXLEN = 1 LIMIT 5 1-1 f v", "XADD x MAXLEN = 1 LIMIT 5 1-2 f v", "XTRIM x MINID = 1-2 LIMIT 100",
		"EVAL return(redis.call('INCR',KEYS[1])) 1 n",
	} {
		if err := m.Replay(nowUs, argsOf(strings.Fields(request)...)); err != nil {
			t.Errorf("%s: %v", request, err)
		}
	}
	if m.Tick(nowUs); m.Replayed() {
		t.Error("there was no transaction")
	}
	if effects := m.TakeEffects(); listener.Out.Len() > 0 || effects.Wake != nil || effects.Propagate != nil {
		t.Errorf("somebody is told: %q, %q", listener.Out.Bytes(), effects.Propagate)
	}
	for key, want := range map[string]string{"old": `"2"`, "gone": "(nil)", "n": `"1"`} {
		if got := ask(t, m, nowUs, "GET", key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	for want, words := range map[string][]string{"(integer) 1": {"XLEN", "x"}, `1) "b"`: {"LRANGE", "m", "0", "-1"}} {
		if got := ask(t, m, nowUs, words...); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
	if listener.Out.Len() == 0 {
		t.Error("nobody is told of events after the replay")
	}
}
