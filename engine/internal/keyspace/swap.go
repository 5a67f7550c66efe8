package keyspace

// Swap exchanges the keys of two databases. Clients stay with the number of
// theirs: those who watch a key that was there before or is now have seen it
// change, and those who wait for a key that is there now will be served.
func (s *Space) Swap(a, b *DB, nowMs int64) {
	if a == b {
		return
	}
	s.Weigh() // what is on the list is noted with its database
	a.markSwapped(b, nowMs)
	b.markSwapped(a, nowMs)
	a.objects, b.objects = b.objects, a.objects
	a.volatile, b.volatile = b.volatile, a.volatile
	a.weight, b.weight = b.weight, a.weight
	a.origin, b.origin = b.origin, a.origin
	a.readyAll()
	b.readyAll()
	s.Dirty++
}

// markSwapped marks the watches on keys that db holds, or is about to get from
// other. What has expired, in either, is not there.
func (db *DB) markSwapped(other *DB, nowMs int64) {
	for name := range db.watches {
		key := []byte(name)
		if db.Peek(key, nowMs) != nil || other.Peek(key, nowMs) != nil {
			db.markWatches(name)
		}
	}
}
