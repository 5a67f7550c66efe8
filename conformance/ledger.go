package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

var ledgerPromises = map[string]func(*bench){
	"L1 limit":                         limitHolds,
	"L1 shrink grants nothing":         shrinkDrains,
	"L1 grow grants":                   growGrants,
	"L1 heavy waiter after shrink":     shrinkSendsHeavyAway,
	"L1 weight above limit":            tooHeavyIsTold,
	"L2 tokens increase":               tokensIncrease,
	"L3 FIFO":                          queueIsFIFO,
	"L3 heavy head is not starved":     heavyHeadWaits,
	"L3 try does not pass":             tryDoesNotPass,
	"L4 strangers renew nothing":       strangersAreRefused,
	"L4 expired never comes back":      expiredStaysExpired,
	"L5 expired holder is replaced":    expiredHolderIsReplaced,
	"L5 dead waiters at head and tail": deadWaitersLeave,
	"L5 dead granted waiter":           deadGrantPassesOn,
	"L5 heartbeat confirms a grant":    heartbeatConfirms,
	"L5 one heartbeat of many waiters": heartbeatOfMany,
	"L5 one word of many waiters":      wordOfMany,
	"L6 every key expires":             everyKeyExpires,
	"L6 operator's limit stays":        operatorLimitStays,
	"L7 cancel of a waiter":            cancelOfWaiter,
	"L7 cancel of a grant":             cancelOfGrant,
	"L7 acquire after cancel":          acquireAfterCancel,
	"L7 repeated acquire":              repeatedAcquire,
	"L9 10,000 expired leases":         manyExpiredLeases,
	"L9 10,000 dead waiters":           manyDeadWaiters,
	"force refuses the holder":         forceRefuses,
	"force all":                        forceAll,
	"names":                            strangeNames,
	"script flush":                     scriptFlush,
}

func limitHolds(b *bench) {
	for _, id := range []string{"a", "b", "c"} {
		b.granted(id, 1, 3)
	}
	answer := b.try("d", 1, 3)
	equal(b, "fourth of three", answer.Outcome, ledger.Refused)
	equal(b, "held", answer.Held, 3)
	equal(b, "a release", b.release("b"), ledger.Held)
	b.granted("d", 1, 3)
	equal(b, "holders", len(b.inspect().Holders), 3)
}

func shrinkDrains(b *bench) {
	for _, id := range []string{"a", "b", "c"} {
		b.granted(id, 1, 3)
	}
	b.waits("w", 1, 3)
	b.resize(2)
	b.release("a")
	equal(b, "waiters while the limit is held", b.waiters(), "w")
	b.release("b")
	equal(b, "waiters once it fits", b.waiters(), "")
	equal(b, "held", b.inspect().Held, 2)
}

func growGrants(b *bench) {
	b.granted("a", 1, 1)
	for _, id := range []string{"b", "c", "d"} {
		b.waits(id, 1, 1)
	}
	b.resize(3)
	equal(b, "waiters", b.waiters(), "d")
	equal(b, "held", b.inspect().Held, 3)
}

func shrinkSendsHeavyAway(b *bench) {
	b.granted("a", 1, 5)
	b.waits("big", 5, 5)
	b.waits("small", 1, 5)
	b.resize(2)
	equal(b, "waiters", b.waiters(), "")
	answer := b.ask("big", 5, 5)
	equal(b, "outcome", answer.Outcome, ledger.Heavy)
	equal(b, "limit", answer.Limit, 2)
}

func tooHeavyIsTold(b *bench) {
	equal(b, "outcome", b.ask("a", 3, 2).Outcome, ledger.Heavy)
	equal(b, "leases", b.inspect().Leases, 0)
}

func tokensIncrease(b *bench) {
	last := int64(0)
	next := func(how string) {
		b.Helper()
		answer := b.granted("a", 1, 1)
		if answer.Token <= last {
			b.Fatalf("token after %s: %d, the one before was %d", how, answer.Token, last)
		}
		last = answer.Token
	}
	next("nothing")
	b.release("a")
	next("release")
	b.expire("a")
	next("expiry")
	b.must(b.client.Del(b.ctx, b.keys...).Err())
	next("deletion")
	b.release("a")
	// A clock that went back a day.
	b.probe("token", last+86_400_000_000)
	last += 86_400_000_000
	next("a step back of the clock")
}

func queueIsFIFO(b *bench) {
	const n = 50
	b.granted("0", 1, 1)
	var want []string
	for i := 1; i <= n; i++ {
		b.waits(fmt.Sprint(i), 1, 1)
		want = append(want, fmt.Sprint(i))
	}
	for i := n; i > 0; i -= 7 { // heartbeats in any order change nothing
		b.waits(fmt.Sprint(i), 1, 1)
	}
	equal(b, "queue", b.waiters(), strings.Join(want, " "))
	for i := 0; i < n; i++ {
		equal(b, "release", b.release(fmt.Sprint(i)), ledger.Held)
		equal(b, "holder", b.holders(), fmt.Sprint(i+1))
	}
}

func heavyHeadWaits(b *bench) {
	b.granted("a", 1, 3)
	b.granted("b", 1, 3)
	b.waits("heavy", 3, 3)
	b.waits("light", 1, 3)
	b.release("a")
	equal(b, "queue", b.waiters(), "heavy light")
	b.release("b")
	equal(b, "holders", b.holders(), "heavy")
	equal(b, "queue", b.waiters(), "light")
}

func tryDoesNotPass(b *bench) {
	b.granted("a", 2, 3)
	b.waits("heavy", 3, 3)
	answer := b.try("light", 1, 3)
	equal(b, "outcome", answer.Outcome, ledger.Refused)
	equal(b, "held", answer.Held, 2)
}

func strangersAreRefused(b *bench) {
	b.granted("a", 1, 1)
	b.waits("w", 1, 1)
	for _, id := range []string{"stranger", "w"} {
		equal(b, "release", b.release(id), ledger.Lost)
		equal(b, "renew", b.renew(id), ledger.Lost)
	}
	equal(b, "holders", b.holders(), "a")
	equal(b, "waiters", b.waiters(), "w")
	equal(b, "release", b.release("a"), ledger.Held)
	equal(b, "release again", b.release("a"), ledger.Lost)
}

func expiredStaysExpired(b *bench) {
	b.granted("a", 1, 1)
	b.expire("a")
	equal(b, "renew", b.renew("a"), ledger.Lost)
	b.granted("b", 1, 1)
	equal(b, "renew", b.renew("a"), ledger.Lost)
	equal(b, "release", b.release("a"), ledger.Lost)
	equal(b, "holders", b.holders(), "b")
}

func expiredHolderIsReplaced(b *bench) {
	b.granted("a", 1, 1)
	answer := b.ask("w", 1, 1)
	if answer.Next <= 0 || answer.Next > time.Minute {
		b.Fatalf("a waiter is told that the lease of a minute expires in %v", answer.Next)
	}
	b.expire("a")
	equal(b, "outcome", b.ask("w", 1, 1).Outcome, ledger.Granted)
}

func deadWaitersLeave(b *bench) {
	b.granted("a", 1, 1)
	for _, id := range []string{"head", "b", "middle", "c", "tail"} {
		b.waits(id, 1, 1)
	}
	for _, id := range []string{"head", "middle", "tail"} {
		b.expire(id)
	}
	equal(b, "queue", b.waiters(), "b c")
	b.release("a")
	equal(b, "holder", b.holders(), "b")
	b.release("b")
	equal(b, "holder", b.holders(), "c")
}

func deadGrantPassesOn(b *bench) {
	b.granted("a", 1, 1)
	short := b.request("dead", 1, 1, time.Minute)
	short.Claim = b.lasting(20 * time.Second)
	_, err := b.ledger.Acquire(b.ctx, short)
	b.must(err)
	b.waits("next", 1, 1)
	b.release("a")
	state := b.inspect()
	if left := state.Holders[0].Deadline.Sub(state.Now); left > short.Claim {
		b.Fatalf("a grant nobody confirmed lasts %v, the claim time is %v", left, short.Claim)
	}
	b.expire("dead")
	equal(b, "holder", b.holders(), "next")
}

func heartbeatConfirms(b *bench) {
	b.granted("a", 1, 1)
	short := b.request("w", 1, 1, time.Minute)
	short.Claim = b.lasting(20 * time.Second)
	_, err := b.ledger.Acquire(b.ctx, short)
	b.must(err)
	b.release("a")
	answer, err := b.ledger.Acquire(b.ctx, short)
	b.must(err)
	state := b.inspect()
	equal(b, "outcome", answer.Outcome, ledger.Granted)
	equal(b, "token", answer.Token, state.Token)
	if left := state.Holders[0].Deadline.Sub(state.Now); left < 50*time.Second {
		b.Fatalf("a confirmed grant lasts %v, its ttl is a minute", left)
	}
}

func heartbeatOfMany(b *bench) {
	b.granted("a", 1, 1)
	short := b.request("w1", 1, 1, time.Minute)
	short.Claim = b.lasting(time.Second)
	_, err := b.ledger.Acquire(b.ctx, short)
	b.must(err)
	b.waits("w2", 1, 1)
	request := ledger.HeartbeatRequest{Resource: short.Resource, Claim: time.Hour}
	for _, id := range []string{"w2", "w1", "a"} {
		request.IDs = append(request.IDs, b.request(id, 1, 1, 0).ID)
	}
	result := b.ledger.HeartbeatAll(b.ctx, []ledger.HeartbeatRequest{request})[0]
	b.must(result.Err)
	equal(b, "head of the queue", result.Head, 1)
	equal(b, "do not wait", fmt.Sprint(result.Gone), "[2]")
	for _, waiter := range b.inspect().Queue {
		if left := waiter.Deadline.Sub(time.UnixMilli(result.NowMs)); left < 50*time.Minute {
			b.Fatalf("%s is believed for %v, the heartbeat said an hour", waiter.ID, left)
		}
	}
	b.noEternalKey("heartbeat", b.keys...)
}

// wordOfMany: a process that has said who its waiters are need not say it again until one of them may have left.
func wordOfMany(b *bench) {
	b.granted("a", 1, 1)
	b.waits("w1", 1, 1)
	b.waits("w2", 1, 1)
	resource := b.request("a", 1, 1, 0).Resource
	process := strings.Split(b.request("w1", 1, 1, 0).ID, ":")[0]
	named := ledger.HeartbeatRequest{Resource: resource, Claim: time.Hour, Process: process}
	for _, id := range []string{"w1", "w2"} {
		named.IDs = append(named.IDs, b.request(id, 1, 1, 0).ID)
	}
	result := b.ledger.HeartbeatAll(b.ctx, []ledger.HeartbeatRequest{named})[0]
	b.must(result.Err)
	same := func(when string, want bool) {
		still := ledger.StillRequest{Resource: resource, Claim: time.Hour, Process: process, Version: result.Version}
		told := b.ledger.StillAll(b.ctx, []ledger.StillRequest{still})[0]
		b.must(told.Err)
		equal(b, "the same "+when, told.Same, want)
	}
	same("while nothing has changed", true)
	b.release("a")
	same("after one was granted", false)
	b.noEternalKey("still", b.keys...)
}

// noEternalKey fails if a key of the resource has no expiry.
func (b *bench) noEternalKey(when string, keys ...string) {
	b.Helper()
	for _, key := range keys {
		if b.client.PTTL(b.ctx, key).Val() == -1 {
			b.Fatalf("%s: %s never expires", when, key)
		}
	}
}

func everyKeyExpires(b *bench) {
	step := func(when string, _ any) {
		b.Helper()
		b.noEternalKey(when, b.keys...)
	}
	step("try", b.try("a", 1, 1))
	step("wait", b.ask("b", 1, 1))
	step("refused", b.try("c", 1, 1))
	step("cancel of an unknown id", b.cancel("x"))
	step("handoff", b.release("a"))
	step("renew", b.renew("b"))
	step("release", b.release("b"))
	b.must(b.client.Del(b.ctx, b.keys...).Err())
	step("first a cancel", b.cancel("x"))
	step("first a barred acquire", b.ask("x", 1, 1))
	b.resize(3)
	b.granted("d", 1, 1)
	b.resize(0)
	step("limit cleared", nil)
	b.must(b.client.Del(b.ctx, b.keys...).Err())
	step("heavy", b.ask("y", 2, 1))
	b.inspect()
	b.must(b.client.Del(b.ctx, b.keys...).Err())
	long := b.request("long", 1, 1, 0)
	long.TTL = 365 * 24 * time.Hour
	_, err := b.ledger.Acquire(b.ctx, long)
	b.must(err)
	b.release("long")
	if left := b.client.PTTL(b.ctx, b.keys[0]).Val(); left > 2*time.Hour {
		b.Fatalf("an idle resource is remembered for %v", left)
	}
	b.must(b.client.Del(b.ctx, b.keys...).Err())
	b.inspect()
	equal(b, "keys after a look at nothing", b.client.Exists(b.ctx, b.keys...).Val(), 0)
}

func operatorLimitStays(b *bench) {
	b.resize(2)
	b.granted("a", 1, 9)
	b.release("a")
	equal(b, "expiry of the state", b.client.PTTL(b.ctx, b.keys[0]).Val(), -1)
	equal(b, "operator", b.inspect().Operator, 2)
	b.resize(0)
	b.noEternalKey("cleared", b.keys...)
}

func cancelOfWaiter(b *bench) {
	b.granted("a", 1, 2)
	b.waits("heavy", 2, 2)
	b.waits("light", 1, 2)
	equal(b, "was", b.cancel("heavy"), ledger.WasWaiting)
	equal(b, "waiters", b.waiters(), "")
	equal(b, "held", b.inspect().Held, 2)
}

func cancelOfGrant(b *bench) {
	b.granted("a", 1, 1)
	b.waits("b", 1, 1)
	b.waits("c", 1, 1)
	b.release("a")
	equal(b, "was", b.cancel("b"), ledger.WasHeld)
	equal(b, "holder", b.holders(), "c")
}

func acquireAfterCancel(b *bench) {
	equal(b, "was", b.cancel("late"), ledger.WasUnknown)
	equal(b, "outcome", b.ask("late", 1, 1).Outcome, ledger.Barred)
	equal(b, "leases", b.inspect().Leases, 0)
	b.granted("other", 1, 1)
}

func repeatedAcquire(b *bench) {
	first := b.granted("a", 1, 2)
	second := b.granted("a", 1, 2)
	equal(b, "token", second.Token, first.Token)
	equal(b, "held", b.inspect().Held, 1)
	b.granted("b", 1, 2)
	b.waits("w", 1, 2)
	b.waits("w", 1, 2)
	equal(b, "waiters", b.waiters(), "w")
}

// fill puts 10,000 holders or waiters down whose time is over, the way the transitions would have.
func (b *bench) fill(record string, zsets ...string) {
	const n = 10_000
	b.Helper()
	p := b.client.Pipeline()
	for i := range n {
		id := fmt.Sprintf("gone%d:1", i)
		p.HSet(b.ctx, b.keys[0], id, record)
		for _, key := range zsets {
			p.ZAdd(b.ctx, key, redis.Z{Score: float64(i + 1), Member: id})
		}
	}
	if record[0] == 'L' {
		p.HSet(b.ctx, b.keys[0], "held", n, "count", n)
	}
	_, err := p.Exec(b.ctx)
	b.must(err)
}

// within asks until granted, and counts how often that took.
func (b *bench) within(calls int, id string) {
	b.Helper()
	for range calls {
		if b.ask(id, 1, 1).Outcome == ledger.Granted {
			return
		}
	}
	b.Fatalf("not granted after %d calls", calls)
}

func manyExpiredLeases(b *bench) {
	b.fill("L 1 1 1 30000 gone", b.keys[1])
	b.within(11, "a")
	equal(b, "holders", b.holders(), "a")
}

func manyDeadWaiters(b *bench) {
	b.granted("a", 1, 1)
	b.fill("W 1 1 1 30000 3000 gone", b.keys[2], b.keys[3])
	b.waits("b", 1, 1)
	b.release("a")
	b.within(11, "b")
	equal(b, "waiters", b.waiters(), "")
}

func forceRefuses(b *bench) {
	b.granted("a", 1, 1)
	b.waits("b", 1, 1)
	ended, err := b.ledger.Force(b.ctx, b.resource, qualified("a"), time.Minute)
	b.must(err)
	equal(b, "ended", ended, 1)
	equal(b, "holder", b.holders(), "b")
	equal(b, "renew", b.renew("a"), ledger.Forced)
	equal(b, "release", b.release("a"), ledger.Forced)
	equal(b, "acquire", b.ask("a", 1, 1).Outcome, ledger.Barred)
}

func forceAll(b *bench) {
	for i := range 20 {
		b.granted(fmt.Sprint(i), 1, 20)
	}
	b.waits("w", 20, 20)
	ended, err := b.ledger.ForceAll(b.ctx, b.resource, time.Minute)
	b.must(err)
	equal(b, "ended", ended, 20)
	equal(b, "holders", b.holders(), "w")
}

func strangeNames(b *bench) {
	base := b.name
	for _, tail := range []string{"}", "{", "{}", "}{", "%7D", "%", "a}b}c", "é☂", "a b\r\nc", "\x00", "*[a]?"} {
		b.use(base + tail)
		b.granted("a", 1, 1)
		equal(b, "second on "+b.name, b.try("b", 1, 1).Outcome, ledger.Refused)
	}
	b.use(base + strings.Repeat("x", ledger.MaxNameBytes-len(base)))
	b.granted("a", 1, 1)
	seen := make(map[string]bool)
	b.must(b.ledger.Names(b.ctx, func(names []string) error {
		for _, name := range names {
			seen[name] = true
		}
		return nil
	}))
	for _, tail := range []string{"}", "%7D", "a}b}c", "\x00"} {
		equal(b, "listed "+tail, seen[base+tail], true)
	}
}

func scriptFlush(b *bench) {
	b.granted("a", 1, 1)
	b.must(b.client.ScriptFlush(b.ctx).Err())
	equal(b, "renew in a pipeline", b.renew("a"), ledger.Held)
	b.must(b.client.ScriptFlush(b.ctx).Err())
	equal(b, "release", b.release("a"), ledger.Held)
}
