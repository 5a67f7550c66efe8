package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// Random histories in which one key, member, field or line of the state is damaged by hand. Whatever that was, as long as
// one key of the resource is left nobody gets a permit that somebody believes in (L1), tokens increase (L2), all permits can
// be had again when the leases are over (L5), and no key stays (L6).
//
// SIGNALBOX_SEEDS is how many histories are tried, SIGNALBOX_SEED the first of them. Here no operator's limit is lost, and no
// block of LocalHandoff: docs/strictness.md says what becomes of these.

const (
	tornLimit = 5
	tornSteps = 60
	tornClaim = 3 * time.Second
)

// tornHistory is one of them, with what its clients believe.
type tornHistory struct {
	*clockedLedger
	random  *rand.Rand
	held    map[string]tornLease
	waiting map[string]*AcquireRequest
	ids     int
	token   int64 // the last
	log     []string
}

// tornLease is what a holder believes in.
type tornLease struct {
	weight int
	ttl    time.Duration
	until  time.Time
}

func TestTornStates(t *testing.T) {
	first, n := tornNumber(t, "SIGNALBOX_SEED", 1), tornNumber(t, "SIGNALBOX_SEEDS", cases.Count(400))
	c := newClockedLedger(t)
	for seed := first; seed < first+n; seed++ {
		c.engine.Reset(time.UnixMilli(1_700_000_000_000))
		h := &tornHistory{
			clockedLedger: c, random: rand.New(rand.NewPCG(uint64(seed), 1)), held: map[string]tornLease{},
			waiting: map[string]*AcquireRequest{}, log: []string{fmt.Sprintf("SIGNALBOX_SEED=%d", seed)},
		}
		tear := 5 + h.random.IntN(tornSteps/2)
		for i := range tornSteps {
			if i == tear {
				h.tear()
			}
			h.step()
		}
		h.end()
	}
}

func tornNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

func (h *tornHistory) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf("%v %s", h.engine.Now().Format("05.000"), fmt.Sprintf(format, args...)))
}

func (h *tornHistory) fail(format string, args ...any) {
	h.Helper()
	h.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(h.log, "\n"))
}

func (h *tornHistory) must(err error) {
	h.Helper()
	if err != nil {
		h.fail("%v", err)
	}
}

// one is an id of those who hold or wait, "p:0" if there is none.
func one[V any](h *tornHistory, of map[string]V) string {
	ids := slices.Sorted(maps.Keys(of))
	if len(ids) == 0 {
		return "p:0"
	}
	return ids[h.random.IntN(len(ids))]
}

func (h *tornHistory) step() {
	switch h.random.IntN(8) {
	case 0, 1, 2:
		h.ids++
		request := &AcquireRequest{
			Resource: h.resource, ID: fmt.Sprintf("%c:%d", 'p'+rune(h.random.IntN(2)), h.ids), Weight: 1 + h.random.IntN(2), Limit: tornLimit,
			TTL: time.Duration(1+h.random.IntN(10)) * time.Second, Claim: tornClaim, Owner: "me",
		}
		if h.random.IntN(3) == 0 {
			request.Wait = tornClaim
		}
		h.acquire(request)
	case 3:
		id := one(h, h.held)
		hold, err := h.Release(h.Context(), h.resource, id)
		h.must(err)
		h.note("release %s: %v", id, hold)
		delete(h.held, id)
	case 4:
		h.renew(one(h, h.held))
	case 5:
		h.beat(rune('p' + h.random.IntN(2)))
	case 6:
		id := one(h, h.waiting)
		result := h.CancelAll(h.Context(), []CancelRequest{{h.resource, id, tornClaim}})[0]
		h.must(result.Err)
		h.note("cancel %s: %v", id, result.Was)
		delete(h.waiting, id)
	default:
		h.engine.Advance(time.Duration(h.random.IntN(4000)) * time.Millisecond)
	}
}

func (h *tornHistory) acquire(request *AcquireRequest) {
	answer, err := h.Acquire(h.Context(), request)
	h.must(err)
	h.note("acquire %s, weight %d, ttl %v, wait %v: %+v", request.ID, request.Weight, request.TTL, request.Wait, answer)
	handed := h.waiting[request.ID] != nil // who waited may have been granted long ago
	delete(h.waiting, request.ID)
	switch answer.Outcome {
	case Granted:
		sum, now := request.Weight, h.engine.Now()
		for _, lease := range h.held {
			if lease.until.After(now) {
				sum += lease.weight
			}
		}
		if sum > tornLimit {
			h.fail("L1: %d permits are held, of %d", sum, tornLimit)
		}
		if answer.Token <= h.token && !handed {
			h.fail("L2: token %d after %d", answer.Token, h.token)
		}
		h.token = max(h.token, answer.Token)
		h.held[request.ID] = tornLease{request.Weight, request.TTL, now.Add(request.TTL)}
	case Waiting:
		h.waiting[request.ID] = request
	default:
	}
}

func (h *tornHistory) renew(id string) {
	lease := h.held[id]
	renewals := []Renewal{{ID: id, TTL: max(lease.ttl, time.Second)}}
	result := h.RenewAll(h.Context(), []RenewRequest{{Resource: h.resource, Leases: renewals}})[0]
	h.must(result.Err)
	h.note("renew %s: %v", id, result.Holds)
	delete(h.held, id)
	if now := h.engine.Now(); lease.until.After(now) && (result.Holds[0] == Held || result.Holds[0] == Wanted) {
		lease.until = now.Add(lease.ttl)
		h.held[id] = lease
	}
}

// beat is the heartbeat of a process, whose waiters that do not wait any more ask what became of them.
func (h *tornHistory) beat(process rune) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(h.waiting)) {
		if rune(id[0]) == process {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	request := HeartbeatRequest{Resource: h.resource, IDs: ids, Claim: tornClaim}
	if h.random.IntN(2) == 0 {
		request.Process = string(process)
	}
	result := h.HeartbeatAll(h.Context(), []HeartbeatRequest{request})[0]
	h.must(result.Err)
	h.note("heartbeat %v: %+v", ids, result)
	for _, place := range result.Gone {
		h.acquire(h.waiting[ids[place]])
	}
}

// tear damages the state. Where all of it is in one line and that goes, nothing is left to repair from: then nobody believes
// in anything.
func (h *tornHistory) tear() {
	keys := h.resource.Keys()
	compact := strings.Contains(string(h.engine.Do("HGET", keys[0], "clock")), "\n3c ")
	what, at := "", h.random.IntN(len(keys))
	fields := h.words("HKEYS", keys[0])
	members := h.words("ZRANGE", keys[max(at, 1)], "0", "-1")
	switch kind := h.random.IntN(4); {
	case kind == 0:
		what = "DEL " + keys[at]
	case kind == 1 && len(members) > 0:
		what = "ZREM " + keys[max(at, 1)] + " " + members[h.random.IntN(len(members))]
	case len(fields) == 0:
		return
	case kind == 2:
		what = "HDEL " + keys[0] + " " + fields[h.random.IntN(len(fields))]
	default:
		field := fields[h.random.IntN(len(fields))]
		value, _ := h.do("HGET", keys[0], field).(string)
		from, to := 0, h.random.IntN(len(value))
		if h.random.IntN(2) == 0 {
			from, to = to, len(value)
		}
		h.note("cut %s of %q to %q", field, value, value[from:to])
		h.do("HSET", keys[0], field, value[from:to])
	}
	h.note("damage: %s", what)
	if what != "" {
		h.do(strings.Fields(what)...)
	}
	h.engine.Advance(time.Millisecond) // as it takes a person
	if compact && (what == "DEL "+keys[0] || what == "HDEL "+keys[0]+" clock") {
		clear(h.held)
	}
}

func (h *tornHistory) do(words ...string) any {
	command := make([]any, len(words))
	for i, word := range words {
		command[i] = word
	}
	value, err := h.transport.Do(h.Context(), transport.Command{Words: command})
	h.must(err)
	return value
}

func (h *tornHistory) words(command ...string) (words []string) {
	elements, _ := h.do(command...).([]any)
	for _, element := range elements {
		words = append(words, element.(string))
	}
	return words
}

// end waits until all leases are over.
func (h *tornHistory) end() {
	h.engine.Advance(200 * time.Second)
	h.note("all leases are over")
	clear(h.held)
	h.acquire(&AcquireRequest{
		Resource: h.resource, ID: "z:1", Weight: tornLimit, Limit: tornLimit, TTL: time.Second, Claim: tornClaim,
	})
	if len(h.held) != 1 {
		h.fail("L5: not all permits can be had")
	}
	h.engine.Advance(3 * time.Hour)
	if left := h.words("KEYS", "*"); len(left) > 0 {
		h.fail("L6: %q stay", left)
	}
}
