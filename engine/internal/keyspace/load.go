package keyspace

// Filling a database from a file. There are no clients to be told: what has to do with
// them, and with changes, is left out.

// Expect makes room for the keys that are about to be inserted, of which some expire.
// Both are hints.
func (db *DB) Expect(keys, expires int) {
	db.objects.Expect(keys)
	db.volatile.Expect(expires)
}

// Settle ends what Expect has begun.
func (db *DB) Settle() {
	db.objects.Settle()
	db.volatile.Settle()
}

// Insert stores value under a new key, which it keeps, to expire at expireAtMs; 0 is
// never. It returns nil, and stores nothing, if the key is there. It is no change. O(1).
func (db *DB) Insert(key string, value any, expireAtMs, nowMs int64) *Object {
	db.space.limit(value)
	o := newObject(value)
	o.expireAt, o.access = expireAtMs, db.space.fresh(nowMs)
	o.setMark(db.space.mark)
	if !db.objects.Add(key, o) {
		return nil
	}
	if expireAtMs != 0 {
		db.volatile.Add(key, o)
	}
	weight := units(o)
	o.setWeight(weight)
	db.weight += weight
	return o
}
