package keyspace_test

import (
	"slices"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// readyKeys takes all keys that are ready.
func readyKeys(space *keyspace.Space) (keys []string) {
	for {
		_, key, ok := space.TakeReady()
		if !ok {
			return keys
		}
		keys = append(keys, key)
	}
}

// A bound waiter is served when its key has gone, and the others of the queue are not.
func TestABoundWaiterHearsThatItsKeyHasGone(t *testing.T) {
	key := []byte("k")
	for name, lose := range map[string]func(space *keyspace.Space, db *keyspace.DB){
		"deleted":     func(_ *keyspace.Space, db *keyspace.DB) { db.Delete(key); db.Touch(key) },
		"overwritten": func(_ *keyspace.Space, db *keyspace.DB) { db.Put(key, text("v"), 0); db.Touch(key) },
		"flushed":     func(_ *keyspace.Space, db *keyspace.DB) { db.Flush() },
		"swapped":     func(space *keyspace.Space, db *keyspace.DB) { space.Swap(db, space.DB(1), 0) },
		"expired": func(_ *keyspace.Space, db *keyspace.DB) {
			db.SetExpire(key, db.Peek(key, 0), 1)
			db.Lookup(key, 1)
		},
	} {
		space := keyspace.NewSpace()
		db := space.DB(0)
		db.Put(key, ds.NewStream(), 0)
		db.Wait("anybody", [][]byte{key})
		bound := db.Wait("bound", [][]byte{key})
		bound.Bind()
		db.Wait("anybody", [][]byte{key})
		if _, ok := db.NextWaiter("k", 2, 0); !ok {
			t.Errorf("%s: while there is a stream somebody is not served", name)
		}
		lose(space, db)
		if got := readyKeys(space); !slices.Equal(got, []string{"k"}) {
			t.Errorf("%s: ready are %q", name, got)
		}
		if at, ok := db.NextWaiter("k", 0, 1); !ok || db.Waiting("k")[at] != bound {
			t.Errorf("%s: the waiter at %d, %v is served", name, at, ok)
		}
		bound.Leave()
		db.Touch(key)
		if _, ok := db.NextWaiter("k", 0, 1); ok || readyKeys(space) != nil {
			t.Errorf("%s: the others are served, too", name)
		}
	}
}

func TestAChangeThatNobodyWaitsFor(t *testing.T) {
	space := keyspace.NewSpace()
	db := space.DB(0)
	key := []byte("k")
	db.Put(key, ds.NewStream(), 0)
	db.Wait("client", [][]byte{key})
	db.Change(key)
	if space.Dirty != 1 || readyKeys(space) != nil {
		t.Errorf("%d changes; somebody is served", space.Dirty)
	}
	db.Offer(key)
	if space.Dirty != 1 || !slices.Equal(readyKeys(space), []string{"k"}) {
		t.Errorf("%d changes, or nobody is served", space.Dirty)
	}
}
