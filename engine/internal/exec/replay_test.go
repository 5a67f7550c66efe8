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

// TestExpiredKeysArePropagatedAlone: nobody looks at them; and those that are evicted.
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
	got := texts(requestsOf(t, m.TakeEffects().Propagate))
	if want := `["UNLINK" "c"] ["SET" "d" "v"]`; strings.Join(got, " ") != want {
		t.Errorf("evicted: %s, want %s", got, want)
	}
}

// TestPropagationBeginsWithItsDatabase: a new reader is told where it is.
func TestPropagationBeginsWithItsDatabase(t *testing.T) {
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	ask(t, m, 1, "SET", "before", "v")
	m.Propagate(true)
	for range 2 {
		ask(t, m, 1, "SET", "k", "v")
	}
	m.PropagateAnew()
	ask(t, m, 1, "SET", "k", "v")
	m.Propagate(false)
	m.Propagate(true)
	ask(t, m, 1, "GET", "k")
	ask(t, m, 1, "SET", "k", "v")
	got := strings.Join(texts(requestsOf(t, m.TakeEffects().Propagate)), " ")
	if want := `["SELECT" "0"] ["SET" "k" "v"]`; got != want {
		t.Errorf("after it was turned off and on: %s", got)
	}
}
