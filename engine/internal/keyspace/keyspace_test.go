package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

func text(s string) *keyspace.String { return keyspace.NewString([]byte(s)) }

func TestAnExpiredKeyIsNeverSeen(t *testing.T) {
	db := keyspace.NewSpace().DB(0)
	key := []byte("k")
	o := db.Put(key, text("v"), 1000)
	db.SetExpire(key, o, 2000)
	if db.Lookup(key, 1999) == nil {
		t.Error("gone before its time")
	}
	if db.Peek(key, 2000) != nil || db.Lookup(key, 2000) != nil {
		t.Error("seen at its expiry")
	}
	if db.Len() != 0 || db.VolatileLen() != 0 {
		t.Errorf("%d keys and %d with an expiry are left", db.Len(), db.VolatileLen())
	}
}

func TestPutTakesTheExpiryAway(t *testing.T) {
	db := keyspace.NewSpace().DB(0)
	key := []byte("k")
	db.SetExpire(key, db.Put(key, text("v"), 0), 2000)
	db.Put(key, text("w"), 0)
	if o := db.Lookup(key, 3000); o == nil || o.ExpireAt() != 0 || db.VolatileLen() != 0 {
		t.Errorf("the new value has the old one's expiry: %+v", o)
	}
}

func TestActiveExpireRemovesWhatNobodyLooksAt(t *testing.T) {
	db := keyspace.NewSpace().DB(0)
	const n = 10_000
	for i := range n {
		key := fmt.Appendf(nil, "k%d", i)
		db.SetExpire(key, db.Put(key, text("v"), 0), int64(1000+i%2*1_000_000))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 { // ten seconds' worth of cycles
		db.ActiveExpire(r, 5000, 64)
	}
	// A cycle stops when a tenth of a sample or less has expired.
	if left := db.Len() - n/2; left < 0 || left > n/2/5 {
		t.Errorf("%d expired keys are left, and %d in all", left, db.Len())
	}
}

func TestWatches(t *testing.T) {
	const now = 1000
	key, other := []byte("k"), []byte("other")
	for name, step := range map[string]struct {
		change func(db *keyspace.DB)
		broken bool
	}{
		"nothing":           {func(*keyspace.DB) {}, false},
		"another key":       {func(db *keyspace.DB) { db.Put(other, text("v"), now); db.Touch(other) }, false},
		"change":            {func(db *keyspace.DB) { db.Touch(key) }, true},
		"flush":             {func(db *keyspace.DB) { db.Flush() }, true},
		"there and back":    {func(db *keyspace.DB) { db.Delete(key); db.Touch(key); db.Put(key, text("v"), now); db.Touch(key) }, true},
		"expired meanwhile": {func(db *keyspace.DB) { db.SetExpire(key, db.Lookup(key, now), now) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			db := keyspace.NewSpace().DB(0)
			db.Put(key, text("v"), now)
			var w keyspace.Watch
			w.Add(db, key, now)
			step.change(db)
			if w.Broken(now) != step.broken {
				t.Errorf("broken is %v, want %v", !step.broken, step.broken)
			}
			w.Clear()
			db.Touch(key)
			if w.Broken(now) || !w.Empty() {
				t.Error("a cleared watch still watches")
			}
		})
	}
}

// Invariant B1: a waiter is in the queue of each of its keys, once, or in none.
func TestB1WaitersStandInEachQueueOrInNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := keyspace.NewSpace()
		db := space.DB(0)
		var waiting []*keyspace.Waiter
		wants := map[*keyspace.Waiter][]string{}
		names := []string{"a", "b", "c"}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				keys := rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(t, "keys")
				var raw [][]byte
				for _, k := range keys {
					raw = append(raw, []byte(k))
				}
				w := db.Wait(len(waiting), raw)
				waiting = append(waiting, w)
				wants[w] = keys
			},
			"leave": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip("nobody waits")
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who")
				waiting[i].Leave()
				waiting[i].Leave() // twice is as good as once
				waiting = slices.Delete(waiting, i, i+1)
			},
			"": func(t *rapid.T) {
				for _, name := range names {
					var want []*keyspace.Waiter
					for _, w := range waiting {
						if slices.Contains(wants[w], name) {
							want = append(want, w)
						}
					}
					if !slices.Equal(db.Waiting(name), want) {
						t.Fatalf("queue of %s has %d waiters, want %d in order of arrival", name, len(db.Waiting(name)), len(want))
					}
				}
				if space.Waiters != len(waiting) {
					t.Fatalf("%d are counted, %d wait", space.Waiters, len(waiting))
				}
			},
		})
	})
}

func TestReadyKeysComeInTheOrderTheyWereTouched(t *testing.T) {
	space := keyspace.NewSpace()
	db := space.DB(3)
	list := func(key string) {
		d := &ds.Deque{}
		d.PushBack("x")
		db.Put([]byte(key), d, 0)
		db.Touch([]byte(key))
	}
	db.Wait("client", [][]byte{[]byte("a"), []byte("b")})
	list("b")
	list("nobody waits for this")
	list("a")
	var got []string
	for {
		ready, key, ok := space.TakeReady()
		if !ok {
			break
		}
		if ready != db {
			t.Errorf("%s is ready in another database", key)
		}
		got = append(got, key)
	}
	if !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("ready keys are %v, want b then a", got)
	}
}

// TestWatchingIsLinear would not end within the day if each watch looked at all others.
func TestWatchingIsLinear(t *testing.T) {
	t.Parallel()
	const many = 300_000
	db := keyspace.NewSpace().DB(0)
	var one keyspace.Watch
	for i := range many {
		one.Add(db, strconv.AppendInt(nil, int64(i), 10), 0)
	}
	one.Add(db, []byte("0"), 0)
	if one.Len() != many {
		t.Errorf("%d keys are watched, want %d", one.Len(), many)
	}
	all := make([]keyspace.Watch, many)
	for i := range all {
		all[i].Add(db, []byte("0"), 0)
	}
	db.Touch([]byte("0"))
	for i := range all {
		if !all[i].Marked() {
			t.Fatal("somebody who watches was passed over")
		}
		all[i].Clear()
	}
	if one.Clear(); !one.Empty() || one.Bytes() != 0 {
		t.Error("a cleared watch still watches")
	}
}
