package keyspace

// Watch is one client's optimistic lock over any number of keys: it is marked
// when any of them changes, is deleted, flushed, or expires.
type Watch struct {
	marked bool
	keys   []watchedKey
}

type watchedKey struct {
	db  *DB
	key string
}

// Empty reports whether nothing is watched.
func (w *Watch) Empty() bool { return len(w.keys) == 0 }

// Marked reports whether a watched key is known to have changed.
func (w *Watch) Marked() bool { return w.marked }

// Add watches key of db. Watching a key twice is the same as once.
func (w *Watch) Add(db *DB, key []byte, nowMs int64) {
	for _, k := range w.keys {
		if k.db == db && k.key == string(key) {
			return
		}
	}
	db.Lookup(key, nowMs) // what has expired goes now, so that it does not count as a change later
	k := watchedKey{db: db, key: string(key)}
	w.keys = append(w.keys, k)
	db.watches[k.key] = append(db.watches[k.key], w)
}

// Broken reports whether a watched key has changed since Add. A key that has
// expired since, seen by nobody yet, counts as changed.
func (w *Watch) Broken(nowMs int64) bool {
	for _, k := range w.keys {
		k.db.Lookup([]byte(k.key), nowMs)
	}
	return w.marked
}

// Clear forgets all watched keys and the mark.
func (w *Watch) Clear() {
	for _, k := range w.keys {
		k.db.unwatch(k.key, w)
	}
	w.keys = w.keys[:0]
	w.marked = false
}

func (db *DB) unwatch(key string, w *Watch) {
	left := db.watches[key]
	for i, other := range left {
		if other == w {
			left = append(left[:i], left[i+1:]...)
			break
		}
	}
	if len(left) == 0 {
		delete(db.watches, key)
		return
	}
	db.watches[key] = left
}

func (db *DB) markWatches(key string) {
	for _, w := range db.watches[key] {
		w.marked = true
	}
}
