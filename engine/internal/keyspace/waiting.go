package keyspace

import (
	"maps"
	"slices"
)

// A client that blocks on keys stands in the queue of each of them. When a
// command touches such a key, the key becomes ready; after the command the
// engine serves the ready keys, first touched first, each queue from its head.
// Serving may touch further keys: they are served after, never recursively, so
// that order of arrival holds (Redis: handleClientsBlockedOnKeys). A key that is
// touched again while it is ready keeps its place.
//
// Invariant B1: a waiter is in the queue of each of its keys, once, or in none.

// Waiter is one client blocked on keys of one database.
type Waiter struct {
	// Owner is whoever blocks; the keyspace only carries it.
	Owner any
	keys  []string
	db    *DB
	left  bool
	bound bool
}

type readyKey struct {
	db  *DB
	key string
}

// Wait puts a waiter of owner at the end of the queue of each key.
func (db *DB) Wait(owner any, keys [][]byte) *Waiter {
	w := &Waiter{Owner: owner, db: db}
	for _, k := range keys {
		queue := db.waiting[string(k)]
		if n := len(queue); n > 0 && queue[n-1] == w {
			continue // the key is given twice
		}
		key := string(k)
		w.keys = append(w.keys, key)
		db.waiting[key] = append(queue, w)
	}
	db.space.Waiters++
	return w
}

// Bind says that the waiter depends on what its keys hold now: it is served, too, when
// one of them no longer holds anything that clients wait for.
func (w *Waiter) Bind() {
	if !w.bound && !w.left {
		w.bound = true
		w.db.bound++
	}
}

// Leave takes the waiter out of every queue. It is safe to call twice.
func (w *Waiter) Leave() {
	if w.left {
		return
	}
	w.left = true
	if w.bound {
		w.db.bound--
	}
	for _, key := range w.keys {
		queue := w.db.waiting[key]
		if i := slices.Index(queue, w); i == 0 {
			queue[0], queue = nil, queue[1:] // the usual case: O(1) however long the queue
		} else if i > 0 {
			queue = slices.Delete(queue, i, i+1)
		}
		if len(queue) == 0 {
			delete(w.db.waiting, key)
		} else {
			w.db.waiting[key] = queue
		}
	}
	w.db.space.Waiters--
}

// Keyless reports whether it waits for no key.
func (w *Waiter) Keyless() bool { return len(w.keys) == 0 }

// Waiting returns the queue of a key, head first. The caller must not change it.
func (db *DB) Waiting(key string) []*Waiter { return db.waiting[key] }

// Touch reports that key was changed, created or deleted: watches on it are
// marked, copies of it are called back, clients that wait for it will be served
// after the command, and the events are told to those who listen.
func (db *DB) Touch(key []byte, events ...Event) {
	db.Change(key, events...)
	db.Offer(key)
}

// Change is Touch for what nobody waits for, such as that something was taken out of
// a stream.
func (db *DB) Change(key []byte, events ...Event) {
	db.space.Dirty++
	db.announce(key, events...)
}

// gone reports that the keyspace has removed a key of its own accord. No command has
// changed anything by that.
func (db *DB) gone(key []byte, event Event, later bool) {
	if db.space.removed != nil {
		db.space.removed(db, key, later)
	}
	db.announce(key, event)
	db.Offer(key)
}

func (db *DB) announce(key []byte, events ...Event) {
	if len(db.watches) > 0 {
		db.markWatches(string(key))
	}
	if db.space.changed != nil {
		db.space.changed(key)
	}
	for _, event := range events {
		db.Notify(event, key)
	}
}

// Offer has the clients that wait for key served after the command.
func (db *DB) Offer(key []byte) {
	if len(db.waiting) == 0 {
		return
	}
	if queue := db.waiting[string(key)]; len(queue) == 0 || db.ready[string(key)] || !db.canServe(key) && !db.anyBound(queue) {
		return
	}
	name := string(key)
	db.ready[name] = true
	db.space.ready = append(db.space.ready, readyKey{db, name})
}

// canServe reports whether key holds something that clients wait for. Only then
// is it ready: what is there for a moment only, or is of another type, does not
// get it a place before keys that others were put into meanwhile.
func (db *DB) canServe(key []byte) bool {
	o, ok := db.objects.Get(key)
	if !ok {
		return false
	}
	kind := o.Kind()
	return kind == KindList || kind == KindSortedSet || kind == KindStream
}

// anyBound reports whether a waiter of the queue is bound. It looks at the queue
// only if there are bound waiters in the database at all.
func (db *DB) anyBound(queue []*Waiter) bool {
	return db.bound > 0 && slices.ContainsFunc(queue, func(w *Waiter) bool { return w.bound })
}

// NextWaiter returns the position in the queue of key, from the one given on, of the
// next waiter to be served. While key holds something that clients wait for it is
// the next one of all, and otherwise the next one that is bound.
func (db *DB) NextWaiter(key string, from int, nowMs int64) (at int, ok bool) {
	queue := db.waiting[key]
	switch {
	case from >= len(queue):
		return 0, false
	case db.Peek([]byte(key), nowMs) != nil && db.canServe([]byte(key)):
		return from, true
	case db.bound == 0:
		return 0, false
	}
	at = slices.IndexFunc(queue[from:], func(w *Waiter) bool { return w.bound })
	return from + at, at >= 0
}

// readyAll makes every key ready that is waited for and can be served.
func (db *DB) readyAll() {
	for _, key := range slices.Sorted(maps.Keys(db.waiting)) {
		db.Offer([]byte(key))
	}
}

// TakeReady returns the next ready key and its database.
func (s *Space) TakeReady() (db *DB, key string, ok bool) {
	if len(s.ready) == 0 {
		return nil, "", false
	}
	next := s.ready[0]
	if s.ready = s.ready[1:]; len(s.ready) == 0 {
		s.ready = nil
	}
	delete(next.db.ready, next.key)
	return next.db, next.key, true
}
