package conformance

import (
	"errors"
	"strings"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What is torn by eviction or by hand may cost permits for a while, and never makes any.
var tornPromises = map[string]func(*bench){
	"L8 state lost":                tornState,
	"L8 leases lost":               tornLeases,
	"L8 queue lost":                tornQueue,
	"L8 seen lost":                 tornSeen,
	"L8 one record lost":           tornRecord,
	"L8 one lease lost":            tornLease,
	"L8 count wrong":               tornCount,
	"wrong type stops before work": wrongType,
}

func (b *bench) full() {
	b.Helper()
	b.granted("a", 1, 2)
	b.granted("b", 1, 2)
	b.waits("w", 1, 2)
	b.waits("x", 1, 2)
}

func (b *bench) refused(when string) {
	b.Helper()
	equal(b, when, b.try("thief", 1, 2).Outcome, ledger.Refused)
}

func tornState(b *bench) {
	b.full()
	b.must(b.client.Del(b.ctx, b.keys[0]).Err())
	b.refused("two leases without records")
	equal(b, "renew", b.renew("a"), ledger.Held)
	b.release("a")
	b.refused("one lease without a record")
	b.waits("w", 1, 2) // the heartbeat takes a place again
	b.noEternalKey("repaired", b.keys...)
	b.release("b")
	equal(b, "holders", b.holders(), "w")
	equal(b, "held", b.inspect().Held, 1)
}

func tornLeases(b *bench) {
	b.full()
	b.must(b.client.Del(b.ctx, b.keys[1]).Err())
	b.refused("two records without leases")
	b.noEternalKey("repaired", b.keys...)
	equal(b, "renew", b.renew("a"), ledger.Wanted)
	equal(b, "release", b.release("a"), ledger.Held)
	equal(b, "waiters", b.waiters(), "x")
}

func tornQueue(b *bench) {
	b.full()
	b.must(b.client.Del(b.ctx, b.keys[2]).Err())
	b.waits("x", 1, 2)
	b.waits("w", 1, 2)
	equal(b, "waiters, in the order they were heard from", b.waiters(), "x w")
	b.noEternalKey("repaired", b.keys...)
}

func tornSeen(b *bench) {
	b.full()
	b.must(b.client.Del(b.ctx, b.keys[3]).Err())
	b.waits("w", 1, 2)
	b.release("a")
	equal(b, "waiters", b.waiters(), "x")
	b.noEternalKey("repaired", b.keys...)
}

func tornRecord(b *bench) {
	b.full()
	b.must(b.client.HDel(b.ctx, b.keys[0], qualified("a"), qualified("w")).Err())
	b.expire("a")
	equal(b, "waiters: w has no record and leaves", b.waiters(), "")
	equal(b, "held", b.inspect().Held, 2)
	b.refused("b and x hold")
}

func tornLease(b *bench) {
	b.full()
	b.must(b.client.ZRem(b.ctx, b.keys[1], qualified("a")).Err())
	b.refused("one record without a lease")
	equal(b, "release", b.release("a"), ledger.Held)
	equal(b, "waiters", b.waiters(), "x")
}

func tornCount(b *bench) {
	b.full()
	b.probe("sum", 0)
	b.refused("held and count say 0")
	equal(b, "held", b.inspect().Held, 2)
}

func wrongType(b *bench) {
	for i, key := range b.keys {
		b.must(b.client.Del(b.ctx, b.keys...).Err())
		b.full()
		b.must(b.client.Del(b.ctx, key).Err())
		b.must(b.client.Set(b.ctx, key, "somebody else's", 0).Err())
		before := b.dump(i)
		_, err := b.ledger.Release(b.ctx, b.resource, qualified("a"))
		if !errors.Is(err, ledger.ErrWrongType) || !strings.Contains(err.Error(), "look at the keys") {
			b.Fatalf("release with a string in %s: %v", key, err)
		}
		equal(b, "keys after an error at "+key, b.dump(i), before)
	}
	b.must(b.client.Del(b.ctx, b.keys...).Err())
}

// dump is what the keys hold, but for one.
func (b *bench) dump(but int) string {
	var text strings.Builder
	for i, key := range b.keys {
		if i != but {
			text.WriteString(b.client.Dump(b.ctx, key).Val())
		}
	}
	return text.String()
}
