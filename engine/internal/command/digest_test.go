package command

import (
	"math"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// sampleSpace holds one key of each type, one of them with an expiry, one in
// another database.
func sampleSpace(nowMs int64) *keyspace.Space {
	space := keyspace.NewSpace()
	db := space.DB(0)
	db.Put([]byte("str"), keyspace.NewString([]byte("hello")), nowMs)
	number := db.Put([]byte("int"), keyspace.NewString([]byte("42")), nowMs)
	db.SetExpire([]byte("int"), number, nowMs+100_000)
	list, set, hash, zset := ds.NewDeque(), ds.NewSet(), ds.NewHash(), ds.NewSortedSet()
	for _, element := range []string{"b", "a", "c"} {
		list.PushBack(element)
	}
	for _, member := range []string{"1", "2", "x"} {
		set.Add([]byte(member))
	}
	hash.Set([]byte("f"), []byte("v"))
	hash.Set([]byte("g"), []byte("w"))
	for member, score := range map[string]float64{"m": 1.5, "n": math.Inf(-1), "o": 1e20, "p": 0.1, "q": math.Inf(1)} {
		zset.Add(member, score)
	}
	db.Put([]byte("list"), list, nowMs)
	db.Put([]byte("set"), set, nowMs)
	db.Put([]byte("hash"), hash, nowMs)
	db.Put([]byte("zset"), zset, nowMs)
	space.DB(3).Put([]byte("other"), keyspace.NewString([]byte("db")), nowMs)
	return space
}

// The digests were printed by Redis 7.0.15 for the same data.
func TestDigestEqualsRedis(t *testing.T) {
	t.Parallel()
	const nowMs = 1_000_000
	space := sampleSpace(nowMs)
	if got, want := Digest(space, nowMs), "4374096a63e8691e69c8d6d11ab14b500ca222bd"; got != want {
		t.Errorf("all: got %s, want %s", got, want)
	}
	for key, want := range map[string]string{
		"str":  "36b23a1456b2dce2c3ed252c456761301dba8060",
		"int":  "b2fffeb5eb322d48ec77f4f949383d7cace23627",
		"list": "db4fec8526daed1164edd9370f5de30f5c4bcf2f",
		"set":  "4c6eef6b7853d1b76391c849d71b0d35d3faf18f",
		"hash": "d127864ed50239662bf61bafc9bda63c17da5b37",
		"zset": "f19bbc3ec6a36a28c36fc9a4e6db082e412b4722",
		"none": "0000000000000000000000000000000000000000",
	} {
		if got := DigestValue(space.DB(0).Peek([]byte(key), nowMs)); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}

func TestDigestLeavesOutWhatHasExpired(t *testing.T) {
	t.Parallel()
	const nowMs = 1_000_000
	space := sampleSpace(nowMs)
	before := Digest(space, nowMs+100_000)
	space.DB(0).Delete([]byte("int"))
	if after := Digest(space, nowMs); after != before {
		t.Errorf("expired key counts: %s, then %s without it", before, after)
	}
	if empty := Digest(keyspace.NewSpace(), 0); empty != "0000000000000000000000000000000000000000" {
		t.Errorf("empty space: %s", empty)
	}
}
