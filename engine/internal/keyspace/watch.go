package keyspace

// Watch is one client's optimistic lock over any number of keys: it is marked
// when any of them changes, is deleted, flushed, or expires.
type Watch struct {
	marked bool
	keys   []watchedKey
	bytes  int // of their names
}

type watchedKey struct {
	db  *DB
	key string
}

// Empty reports whether nothing is watched.
func (w *Watch) Empty() bool { return len(w.keys) == 0 }

// Len is how many keys are watched.
func (w *Watch) Len() int { return len(w.keys) }

// Bytes is how long the names of the watched keys are together.
func (w *Watch) Bytes() int { return w.bytes }

// Marked reports whether a watched key is known to have changed.
func (w *Watch) Marked() bool { return w.marked }

// Add watches key of db. Watching a key twice is the same as once. O(1), however many
// keys are watched, and by however many.
func (w *Watch) Add(db *DB, key []byte, nowMs int64) {
	if _, known := db.watches[string(key)][w]; known {
		return
	}
	db.Lookup(key, nowMs) // what has expired goes now, so that it does not count as a change later
	k := watchedKey{db: db, key: string(key)}
	w.keys = append(w.keys, k)
	w.bytes += len(k.key)
	if db.watches[k.key] == nil {
		db.watches[k.key] = map[*Watch]struct{}{}
	}
	db.watches[k.key][w] = struct{}{}
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
	const keep = 64 // entries, for the next transaction
	clear(w.keys)
	if w.marked, w.bytes, w.keys = false, 0, w.keys[:0]; cap(w.keys) > keep {
		w.keys = nil
	}
}

func (db *DB) unwatch(key string, w *Watch) {
	watching := db.watches[key]
	if delete(watching, w); len(watching) == 0 {
		delete(db.watches, key)
	}
}

func (db *DB) markWatches(key string) {
	for w := range db.watches[key] {
		w.marked = true
	}
}
