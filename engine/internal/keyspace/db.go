package keyspace

import (
	"math/rand/v2"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// DB is one numbered database.
type DB struct {
	Index int

	origin   int // the number that its keys were under when the snapshot began
	space    *Space
	objects  *ds.Dict[*Object]
	volatile *ds.Dict[*Object] // the objects with an expiry; see the package comment
	watches  map[string]map[*Watch]struct{}
	waiting  map[string][]*Waiter
	ready    map[string]bool // the keys that are ready; see waiting.go
	bound    int             // how many waiters are bound
	weight   int64           // of all objects, in weightUnits
}

func newDB(space *Space, index int) *DB {
	return &DB{
		Index:    index,
		space:    space,
		objects:  ds.NewDict[*Object](),
		volatile: ds.NewDict[*Object](),
		watches:  map[string]map[*Watch]struct{}{},
		waiting:  map[string][]*Waiter{},
		ready:    map[string]bool{},
	}
}

// Lookup returns the live object of key, or nil. An object past its expiry is
// removed on the way: no command ever sees it. O(1).
func (db *DB) Lookup(key []byte, nowMs int64) *Object {
	o := db.Inspect(key, nowMs)
	if o != nil {
		db.space.used(o, nowMs)
		db.note(o)
	}
	return o
}

// Inspect is Lookup that does not count as an access; for TTL, TYPE and EXISTS.
func (db *DB) Inspect(key []byte, nowMs int64) *Object {
	o, ok := db.objects.Get(key)
	if ok && db.Expired(o, nowMs) {
		db.expire(string(key))
		o, ok = nil, false
	}
	switch {
	case ok && db.space.snapshot != nil && !db.space.Unchanging:
		db.preserve(key, o)
	}
	switch {
	case !db.space.Reading:
	case ok:
		db.space.Hits++
	default:
		db.space.Misses++
		db.Notify(eventMiss, key)
	}
	return o
}

// Peek looks without a trace: it neither counts nor removes what has expired;
// for OBJECT and DEBUG.
func (db *DB) Peek(key []byte, nowMs int64) *Object {
	o, ok := db.objects.Get(key)
	if !ok || db.Expired(o, nowMs) {
		return nil
	}
	return o
}

// Put stores value under key without an expiry, whatever was there before, and
// returns its object. The caller reports the change with Touch. O(1).
func (db *DB) Put(key []byte, value any, nowMs int64) *Object {
	if old, ok := db.objects.Get(key); ok {
		db.space.used(old, nowMs)
		return db.overwrite(key, old, value)
	}
	db.space.limit(value)
	return db.add(key, newObject(value), nowMs)
}

// add puts an object under a key that is new.
func (db *DB) add(key []byte, o *Object, nowMs int64) *Object {
	o.access = db.space.fresh(nowMs)
	o.setMark(db.space.mark)
	db.weight += o.weighed()
	db.objects.AddNew(key, o)
	db.space.noted = append(db.space.noted, lookedUp{db, o})
	db.Notify(eventNew, key)
	return o
}

// overwrite is Put where o was looked up, which is one use, and key holds it.
func (db *DB) overwrite(key []byte, o *Object, value any) *Object {
	if db.space.snapshot != nil {
		db.preserve(key, o)
	}
	if _, isString := value.(*String); isString || o.Kind() == KindString {
		db.space.limit(value)
		o = db.replace(key, o, newObject(value))
	} else {
		db.space.limit(value)
		o.collection().hold(value)
		db.space.noted = append(db.space.noted, lookedUp{db, o})
	}
	db.SetExpire(key, o, 0)
	return o
}

// replace puts another object in the place of the one that key holds, whose expiry and
// uses it takes over.
func (db *DB) replace(key []byte, old, o *Object) *Object {
	if db.space.snapshot != nil {
		db.preserve(key, old)
	}
	o.expireAt, o.access = old.expireAt, old.access
	o.setMark(old.mark())
	o.setWeight(old.weighed()) // until it is weighed
	db.weight += o.weighed() - old.weighed()
	old.length |= goneBit
	db.objects.SetBytes(key, o)
	if o.expireAt != 0 {
		db.volatile.SetBytes(key, o)
	}
	db.space.noted = append(db.space.noted, lookedUp{db, o})
	return o
}

// SetExpire makes o, which key holds, expire at atMs; 0 is never.
func (db *DB) SetExpire(key []byte, o *Object, atMs int64) {
	if db.space.snapshot != nil {
		db.preserve(key, o)
	}
	switch {
	case atMs == 0 && o.expireAt != 0:
		db.volatile.Delete(key)
	case atMs != 0 && o.expireAt == 0:
		if held, ok := db.objects.Key(key); ok { // one copy of the key for both
			db.volatile.Set(held, o)
		}
	}
	o.expireAt = atMs
}

// Delete removes key and says whether it was there. The caller reports the
// change with Touch. O(1).
func (db *DB) Delete(key []byte) bool {
	o, ok := db.objects.Delete(key)
	if !ok {
		return false
	}
	if db.space.snapshot != nil {
		db.preserve(key, o)
	}
	if o.expireAt != 0 {
		db.volatile.Delete(key)
	}
	db.weight -= o.weighed()
	o.length |= goneBit
	return true
}

// Expired reports whether the time of an object has come, so that it is not there any
// more for anybody.
func (db *DB) Expired(o *Object, nowMs int64) bool {
	return o.expireAt != 0 && o.expireAt <= nowMs && !db.space.Loading
}

// expire removes a key whose time has come: a change like any other for those
// who watch it, counted apart.
func (db *DB) expire(key string) {
	if db.space.Frozen {
		return
	}
	if db.space.LazyExpire {
		db.countFreed(key)
	}
	if db.Delete([]byte(key)) {
		db.space.Expired++
		db.gone([]byte(key), eventExpired, db.space.LazyExpire)
	}
}

// RemoveExpired removes key if its time has come. Walks over the keyspace, during
// which the table must not change, call it after for what they have found.
func (db *DB) RemoveExpired(key []byte, nowMs int64) {
	if o, ok := db.objects.Get(key); ok && db.Expired(o, nowMs) {
		db.expire(string(key))
	}
}

// AverageTTLMs is how long keys with an expiry have to live, on average over a
// few chosen at random; 0 if there are none.
func (db *DB) AverageTTLMs(r *rand.Rand, nowMs int64) int64 {
	const sample = 20
	n := min(sample, db.volatile.Len())
	var total int64
	for range n {
		_, o, _ := db.volatile.Random(r)
		total += max(o.expireAt-nowMs, 0)
	}
	return total / max(int64(n), 1)
}

// Len is the number of keys, those included that have expired and that nobody
// has looked at since.
func (db *DB) Len() int { return db.objects.Len() }

// VolatileLen is the number of keys that have an expiry.
func (db *DB) VolatileLen() int { return db.volatile.Len() }

// Scan visits one step of the keyspace and returns the next cursor; 0 is the
// end. A key that is present during the whole scan is visited at least once.
func (db *DB) Scan(cursor uint64, visit func(key string, o *Object)) uint64 {
	return db.objects.Scan(cursor, visit)
}

// Each visits every key, expired ones included. visit must not change the
// keyspace.
func (db *DB) Each(visit func(key string, o *Object) bool) {
	for key, o := range db.objects.All() {
		if !visit(key, o) {
			return
		}
	}
}

// Random returns a random live key, or false when there is none.
func (db *DB) Random(r *rand.Rand, nowMs int64) (string, bool) {
	const triesWhileFrozen = 100
	for try := 0; !db.space.Frozen || try < triesWhileFrozen; try++ {
		key, o, ok := db.objects.Random(r)
		if !ok {
			return "", false
		}
		if !db.Expired(o, nowMs) {
			return key, true
		}
		db.expire(key)
	}
	return "", false
}

// Flush removes every key and returns how many there were.
func (db *DB) Flush() int {
	n := db.objects.Len()
	for key := range db.watches {
		if _, ok := db.objects.GetString(key); ok {
			db.markWatches(key)
		}
	}
	db.space.Weigh() // whatever is on the list is about to go
	if db.space.snapshot != nil {
		db.space.snapshot.takeOver(db)
		db.objects = ds.NewDict[*Object]()
	}
	db.objects.Clear()
	db.volatile.Clear()
	if db.bound > 0 {
		db.readyAll()
	}
	db.weight = 0
	return n
}

// ActiveExpire removes keys whose time has come and that nobody looks at. It
// samples at random, in rounds of twenty, and goes on while more than a tenth
// of a round had expired, up to maxRounds. It reports whether it stopped for
// maxRounds, that is, whether there is likely more to do. Algorithm: the
// active expire cycle of Redis.
func (db *DB) ActiveExpire(r *rand.Rand, nowMs int64, maxRounds int) (more bool) {
	const sample, goOnAbove = 20, 2
	for range maxRounds {
		expired := 0
		for range min(sample, db.volatile.Len()) {
			key, o, ok := db.volatile.Random(r)
			if ok && db.Expired(o, nowMs) {
				db.expire(key)
				expired++
			}
		}
		if expired <= goOnAbove {
			return false
		}
	}
	return true
}
