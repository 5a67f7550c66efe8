package keyspace

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// A Replacement is data that is put together beside a space, by whoever has it and without
// anybody's knowledge, and then takes the place of all that the space holds: in one moment, and
// whatever its size. A replica is filled so when it begins anew.
//
// What it needs of the space is noted when it begins, so that nothing is shared until then.
type Replacement struct {
	space *Space
	rules Space // how uses are counted
	mark  uint16
	dbs   [Databases]replacement
	keys  int
}

type replacement struct {
	objects, volatile *ds.Dict[*Object]
	weight            int64
}

// NewReplacement begins one.
func (s *Space) NewReplacement() *Replacement {
	r := &Replacement{space: s, mark: s.mark, rules: Space{policy: s.policy}}
	for i := range r.dbs {
		r.dbs[i] = replacement{objects: ds.NewDict[*Object](), volatile: ds.NewDict[*Object]()}
	}
	return r
}

// Expect makes room for the keys of a database that are about to come. Both are hints.
func (r *Replacement) Expect(db, keys, expires int) {
	r.dbs[db].objects.Expect(keys)
	r.dbs[db].volatile.Expect(expires)
}

// Insert stores value under a key, as DB.Insert does; nil if the key is there.
func (r *Replacement) Insert(db int, key string, value any, expireAtMs, nowMs int64) *Object {
	r.space.limit(value) // which it remembers by its address
	o := newObject(value)
	o.expireAt, o.access = expireAtMs, r.rules.fresh(nowMs)
	o.setMark(r.mark)
	to := &r.dbs[db]
	if !to.objects.Add(key, o) {
		return nil
	}
	if expireAtMs != 0 {
		to.volatile.Add(key, o)
	}
	weight := units(o)
	o.setWeight(weight)
	to.weight += weight
	r.keys++
	return o
}

// SetIdle and SetFrequency are Space's, for an object of the replacement.
func (r *Replacement) SetIdle(o *Object, idleMs, nowMs int64) { r.rules.SetIdle(o, idleMs, nowMs) }

// SetFrequency sets the counter of uses, if they are counted.
func (r *Replacement) SetFrequency(o *Object, counter uint8, nowMs int64) {
	r.rules.SetFrequency(o, counter, nowMs)
}

// Keys is how many there are.
func (r *Replacement) Keys() int { return r.keys }

// Replace puts the replacement in the place of all keys of all databases. Those who watch a key
// that was there or is there now have seen it change, and those who wait for one that is there now
// will be served. A snapshot that is under way must have been aborted: it is over then.
func (s *Space) Replace(r *Replacement) {
	s.Flush(0, Databases-1)
	if s.snapshot != nil {
		s.snapshot.tables = nil
		s.snapshot = nil
	}
	s.mark = r.mark // invariant S1
	for i, db := range s.dbs {
		from := &r.dbs[i]
		from.objects.Settle()
		from.volatile.Settle()
		db.objects, db.volatile, db.weight = from.objects, from.volatile, from.weight
		for name := range db.watches {
			if _, ok := db.objects.GetString(name); ok {
				db.markWatches(name)
			}
		}
		db.readyAll()
	}
}
