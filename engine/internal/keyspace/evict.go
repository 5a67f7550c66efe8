package keyspace

import (
	"math"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// Eviction: which key goes when memory is short.
//
// The policies look for the best of a few keys chosen at random, as Redis does,
// and remember the next best in a pool: so a handful of samples comes close to
// the exact order at a cost that does not depend on the number of keys. A key in
// the pool may have gone since, or have been used; it is looked at again before
// it is taken.

// Policy is a maxmemory-policy.
type Policy uint8

// The policies. Those of volatile keys never take a key without an expiry.
const (
	NoEviction Policy = iota
	AllKeysLRU
	AllKeysLFU
	AllKeysRandom
	VolatileLRU
	VolatileLFU
	VolatileRandom
	VolatileTTL
)

// policyNames are as Redis lists them.
var policyNames = [...]struct {
	policy Policy
	name   string
}{
	{VolatileLRU, "volatile-lru"},
	{VolatileLFU, "volatile-lfu"},
	{VolatileRandom, "volatile-random"},
	{VolatileTTL, "volatile-ttl"},
	{AllKeysLRU, "allkeys-lru"},
	{AllKeysLFU, "allkeys-lfu"},
	{AllKeysRandom, "allkeys-random"},
	{NoEviction, "noeviction"},
}

// ParsePolicy finds a policy by its name in lower case.
func ParsePolicy(name string) (Policy, bool) {
	for _, p := range policyNames {
		if p.name == name {
			return p.policy, true
		}
	}
	return NoEviction, false
}

// String is the policy's name.
func (p Policy) String() string {
	for _, known := range policyNames {
		if known.policy == p {
			return known.name
		}
	}
	return ""
}

// Frequency reports whether the policy goes by how often objects are used.
func (p Policy) Frequency() bool { return p.frequency() }

// Recency reports whether it goes by when they were last used.
func (p Policy) Recency() bool { return p == AllKeysLRU || p == VolatileLRU }

func (p Policy) frequency() bool { return p == AllKeysLFU || p == VolatileLFU }

func (p Policy) random() bool { return p == AllKeysRandom || p == VolatileRandom }

func (p Policy) volatile() bool { return p >= VolatileLRU }

// SetPolicy chooses what Evict takes.
func (s *Space) SetPolicy(p Policy) {
	s.policy = p
	s.pool = nil
}

// Policy is what SetPolicy has chosen.
func (s *Space) Policy() Policy { return s.policy }

const poolSize = 16

// candidate is a key that was found to be good to evict.
type candidate struct {
	db    *DB
	key   string
	score uint64 // higher goes first
}

// Evict removes one key as the policy wants it, and says whether there was any.
// The change is reported like any other.
func (s *Space) Evict(samples int, nowMs int64) bool {
	if s.policy == NoEviction {
		return false
	}
	db, key, ok := s.victim(samples, nowMs)
	if !ok {
		return false
	}
	if s.LazyEvict {
		db.countFreed(key)
	}
	db.Delete([]byte(key))
	s.Evicted++
	db.gone([]byte(key), eventEvicted, s.LazyEvict)
	return true
}

func (s *Space) victim(samples int, nowMs int64) (db *DB, key string, ok bool) {
	if s.policy.random() {
		return s.randomVictim()
	}
	for range 2 { // what is in the pool may all have gone
		for _, db := range s.dbs {
			s.fillPool(db, samples, nowMs)
		}
		for len(s.pool) > 0 {
			best := s.pool[len(s.pool)-1]
			s.pool = s.pool[:len(s.pool)-1]
			if _, there := best.db.evictable(s.policy).GetString(best.key); there {
				return best.db, best.key, true
			}
		}
	}
	return nil, "", false
}

// evictable is the keys that a policy may take.
func (db *DB) evictable(p Policy) *ds.Dict[*Object] {
	if p.volatile() {
		return db.volatile
	}
	return db.objects
}

// randomVictim takes turns among the databases.
func (s *Space) randomVictim() (*DB, string, bool) {
	for range s.dbs {
		s.turn = (s.turn + 1) % Databases
		db := s.dbs[s.turn]
		if key, _, ok := db.evictable(s.policy).Random(s.Rand); ok {
			return db, key, true
		}
	}
	return nil, "", false
}

// fillPool puts a few keys of a database into the pool, if they are better than
// the worst there, or there is room.
func (s *Space) fillPool(db *DB, samples int, nowMs int64) {
	from := db.evictable(s.policy)
	for range min(samples, from.Len()) {
		key, o, _ := from.Random(s.Rand)
		c := candidate{db, key, s.score(o, nowMs)}
		if slices.ContainsFunc(s.pool, func(p candidate) bool { return p.db == db && p.key == key }) {
			continue
		}
		at, _ := slices.BinarySearchFunc(s.pool, c.score, func(p candidate, score uint64) int {
			switch {
			case p.score < score:
				return -1
			case p.score > score:
				return 1
			}
			return 0
		})
		if len(s.pool) == poolSize {
			if at == 0 {
				continue
			}
			copy(s.pool, s.pool[1:at])
			s.pool[at-1] = c
			continue
		}
		s.pool = slices.Insert(s.pool, at, c)
	}
}

// score says how good it is to evict an object.
func (s *Space) score(o *Object, nowMs int64) uint64 {
	switch {
	case s.policy == VolatileTTL:
		return math.MaxUint64 - uint64(o.expireAt)
	case s.policy.frequency():
		return 255 - uint64(s.counter(o, nowMs))
	}
	ms, _ := s.IdleMs(o, nowMs)
	return uint64(ms)
}
