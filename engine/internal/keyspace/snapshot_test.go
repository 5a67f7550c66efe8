package keyspace_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// album is what a snapshot hands over: value and expiry by database and key.
type album map[string]string

func (a album) save(db int, key string, o *keyspace.Object) {
	name := fmt.Sprint(db, " ", key)
	if a[name] != "" {
		name += " again"
	}
	a[name] = fmt.Sprintf("%s until %d", o.Value().(*keyspace.String).Text(nil), o.ExpireAt())
}

func once() bool { return false }

// filled is a space with a few keys in two databases, and what a snapshot of it has.
func filled() (*keyspace.Space, album) {
	space, want := keyspace.NewSpace(), album{}
	for db := range 2 {
		for i := range 20 {
			space.DB(db).Put(fmt.Appendf(nil, "key%d", i), text("old"), 0)
			want[fmt.Sprint(db, " key", i)] = "old until 0"
		}
	}
	return space, want
}

// Each way in which a key changes or goes leaves its old state to the snapshot.
func TestASnapshotKeepsWhatChanges(t *testing.T) {
	key := []byte("key7")
	for name, change := range map[string]func(space *keyspace.Space, db *keyspace.DB){
		"in place": func(_ *keyspace.Space, db *keyspace.DB) {
			db.StoreString(key, db.Lookup(key, 0), []byte("new"), 0)
		},
		"uncounted":   func(_ *keyspace.Space, db *keyspace.DB) { db.StoreNumber(key, db.Inspect(key, 0), 1, 0) },
		"overwritten": func(_ *keyspace.Space, db *keyspace.DB) { db.Put(key, text("new"), 0) },
		"expiry":      func(_ *keyspace.Space, db *keyspace.DB) { db.SetExpire(key, db.Peek(key, 0), 5) },
		"deleted":     func(_ *keyspace.Space, db *keyspace.DB) { db.Delete(key) },
		"recreated":   func(_ *keyspace.Space, db *keyspace.DB) { db.Delete(key); db.Put(key, text("new"), 0) },
		"created":     func(_ *keyspace.Space, db *keyspace.DB) { db.Put([]byte("other"), text("new"), 0) },
		"inserted":    func(_ *keyspace.Space, db *keyspace.DB) { db.Insert("other", text("new"), 0, 0) },
		"flushed":     func(_ *keyspace.Space, db *keyspace.DB) { db.Flush(); db.Put(key, text("new"), 0) },
		"swapped":     func(space *keyspace.Space, db *keyspace.DB) { space.Swap(db, space.DB(5), 0) },
		"swapped and changed": func(space *keyspace.Space, db *keyspace.DB) {
			space.Swap(db, space.DB(1), 0)
			db.Delete(key)
		},
		"swapped and flushed": func(space *keyspace.Space, db *keyspace.DB) {
			space.Swap(db, space.DB(1), 0)
			db.Flush()
		},
	} {
		space, want := filled()
		got := album{}
		sn := space.BeginSnapshot(got.save)
		sn.Step(once)
		change(space, space.DB(0))
		for !sn.Step(once) {
			space.Weigh()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -before +snapshot:\n%s", name, diff)
		}
	}
}

// What is aborted leaves no trace in the snapshot that follows, wherever it was.
func TestASnapshotAfterAnAbortedOne(t *testing.T) {
	for steps := range 45 {
		space, want := filled()
		dropped := album{}
		sn := space.BeginSnapshot(dropped.save)
		for range steps {
			sn.Step(once)
		}
		sn.Abort()
		before := maps.Clone(dropped)
		space.DB(1).Flush()
		space.DB(1).Put([]byte("late"), text("new"), 0)
		maps.DeleteFunc(want, func(name, _ string) bool { return name[0] == '1' })
		want["1 late"] = "new until 0"
		for !sn.Step(once) {
			if space.BeginSnapshot(album{}.save) != nil {
				t.Fatal("two at a time")
			}
		}
		got := album{}
		for next := space.BeginSnapshot(got.save); !next.Step(once); {
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %d steps: -before +snapshot:\n%s", steps, diff)
		}
		if !maps.Equal(before, dropped) {
			t.Error("an aborted snapshot goes on")
		}
	}
}

func TestASnapshotTellsWhatItHolds(t *testing.T) {
	space, _ := filled()
	space.Weigh()
	sn := space.BeginSnapshot(album{}.save)
	used := space.UsedBytes()
	space.Flush(0, keyspace.Databases-1)
	if held := sn.HeldBytes(); held != used {
		t.Errorf("%d bytes are held, of %d", held, used)
	}
	sn.Abort()
	if sn.HeldBytes() != 0 || !sn.Step(once) {
		t.Error("an aborted snapshot holds what was flushed")
	}
}
