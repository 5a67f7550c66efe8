package keyspace_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// plainString is a string as a user sees it, by GET, PTTL and OBJECT ENCODING.
type plainString struct {
	Text        string
	Number, Raw bool
	ExpireAt    int64
}

func plainOf(o *keyspace.Object) plainString {
	s := o.Value().(*keyspace.String)
	_, isNumber := s.Number()
	return plainString{string(s.Text(nil)), isNumber, s.Raw(), o.ExpireAt()}
}

// stringModel is a database of strings, and what should be in it.
type stringModel struct {
	space *keyspace.Space
	db    *keyspace.DB
	want  map[string]plainString

	snapshot    *keyspace.Snapshot
	taken, then map[string]plainString
}

func (m *stringModel) lookup(key string) *keyspace.Object { return m.db.Lookup([]byte(key), 0) }

// transact changes a few keys before memory is counted.
func (m *stringModel) transact(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		m.change(t)
	}
}

// change does one thing to one key as a command would.
func (m *stringModel) change(t *rapid.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "0", "-1", "007", "9223372036854775807", "9223372036854775808", "1.5"}),
		rapid.Map(rapid.IntRange(0, 1200), func(n int) string { return strings.Repeat("x", n) }),
	).Draw(t, "text")
	n := rapid.Int64().Draw(t, "n")
	old, there := m.want[key]
	switch rapid.SampledFrom([]string{"set", "incr", "float", "append", "expire", "rename", "copy", "put", "delete"}).Draw(t, "change") {
	case "set":
		m.db.StoreString([]byte(key), m.lookup(key), []byte(text), 0)
		m.want[key] = plainString{Text: text, Number: isNumber(text)}
	case "incr":
		m.db.StoreNumber([]byte(key), m.lookup(key), n, 0)
		m.want[key] = plainString{Text: fmt.Sprint(n), Number: true, ExpireAt: old.ExpireAt}
	case "float":
		m.db.StoreFloat([]byte(key), m.lookup(key), []byte(text), 0)
		m.want[key] = plainString{Text: text, ExpireAt: old.ExpireAt}
	case "append":
		place := m.db.EditString([]byte(key), m.lookup(key), 0)
		*place = append(*place, text...)
		m.want[key] = plainString{Text: old.Text + text, Raw: true, ExpireAt: old.ExpireAt}
	case "expire":
		if there {
			old.ExpireAt = 1 + n&0xff
			m.db.SetExpire([]byte(key), m.lookup(key), old.ExpireAt)
			m.want[key] = old
		}
	case "rename":
		if there {
			value, at := m.lookup(key).Value(), old.ExpireAt
			m.db.Delete([]byte(key))
			m.db.Delete([]byte("renamed"))
			m.db.SetExpire([]byte("renamed"), m.db.Put([]byte("renamed"), value, 0), at)
			delete(m.want, key)
			m.want["renamed"] = old
		}
	case "copy":
		if there {
			m.db.Put([]byte("copy"), m.lookup(key).CloneValue(), 0)
			old.ExpireAt = 0
			m.want["copy"] = old
		}
	case "put":
		m.db.Put([]byte(key), keyspace.NewRawString([]byte(text)), 0)
		m.want[key] = plainString{Text: text, Raw: true}
	case "delete":
		m.db.Delete([]byte(key))
		delete(m.want, key)
	}
}

func isNumber(text string) bool { return text == "0" || text == "-1" || text == "9223372036854775807" }

// step goes on with a snapshot, or begins one.
func (m *stringModel) step(t *rapid.T) {
	if m.snapshot == nil {
		m.taken, m.then = map[string]plainString{}, map[string]plainString{}
		for key, s := range m.want {
			m.then[key] = s
		}
		m.snapshot = m.space.BeginSnapshot(func(_ int, key string, o *keyspace.Object) {
			if _, again := m.taken[key]; again {
				t.Fatalf("%q is taken twice", key)
			}
			m.taken[key] = plainOf(o)
		})
	}
	if m.snapshot.Step(once) {
		m.snapshot = nil
		if diff := cmp.Diff(m.then, m.taken); diff != "" {
			t.Fatalf("-then +in the snapshot:\n%s", diff)
		}
	}
}

func (m *stringModel) check(t *rapid.T) {
	got, expiring := map[string]plainString{}, 0
	for key, o := range m.db.Each {
		if got[key] = plainOf(o); o.ExpireAt() != 0 {
			expiring++
		}
	}
	if diff := cmp.Diff(m.want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	if m.db.VolatileLen() != expiring {
		t.Fatalf("%d keys are listed as expiring, %d are", m.db.VolatileLen(), expiring)
	}
	m.space.Weigh()
	const unit = 8
	want := m.db.TableBytes()
	for _, o := range m.db.Each {
		want += (o.MemoryBytes() + unit - 1) / unit * unit
	}
	if used := m.space.UsedBytes(); len(got) > 0 && used != want {
		t.Fatalf("%d bytes are counted as used, %d are", used, want)
	}
}

// Whatever way a string is kept, and however it has come to that, it reads as what was
// stored; a snapshot has it as it was; and memory is counted right.
func TestStringsReadAsTheyWereStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := keyspace.NewSpace()
		m := &stringModel{space: space, db: space.DB(0), want: map[string]plainString{}}
		t.Repeat(map[string]func(*rapid.T){"transact": m.transact, "snapshot": m.step, "": m.check})
	})
}

// The list of what expires knows the object that the key has now.
func TestAStringThatIsReplacedExpiresWhenItSays(t *testing.T) {
	db, key := keyspace.NewSpace().DB(0), []byte("k")
	db.SetExpire(key, db.Put(key, text("short"), 0), 100)
	*db.EditString(key, db.Lookup(key, 0), 0) = []byte("edited")
	db.SetExpire(key, db.Lookup(key, 0), 1000)
	r := rand.New(rand.NewPCG(1, 2))
	if db.ActiveExpire(r, 200, 1); db.Lookup(key, 200) == nil {
		t.Error("gone before its time")
	}
	if db.ActiveExpire(r, 1000, 1); db.Len() != 0 {
		t.Error("there after its time")
	}
}

// What has expired and is not removed, since everything waits, is in the way of nothing.
func TestAStringReplacesWhatExpiredWhileFrozen(t *testing.T) {
	space := keyspace.NewSpace()
	db, key := space.DB(0), []byte("k")
	db.SetExpire(key, db.Put(key, text("old"), 0), 5)
	space.Frozen = true
	db.StoreString(key, db.Lookup(key, 10), []byte("new"), 10)
	if db.Len() != 1 || db.VolatileLen() != 0 || plainOf(db.Lookup(key, 10)).Text != "new" {
		t.Errorf("%d keys, %d of them expire, and %+v", db.Len(), db.VolatileLen(), db.Lookup(key, 10))
	}
}

// To give a long string another name takes no longer than a short one: its text stays where it is. A copy has its own.
func TestALongStringIsRenamedAndNotCopied(t *testing.T) {
	db := keyspace.NewSpace().DB(0)
	place := func(o *keyspace.Object) *byte { return &o.Value().(*keyspace.String).Text(nil)[0] }
	o := db.Put([]byte("a"), text(strings.Repeat("long", 1000)), 0)
	value, at := o.Value(), place(o)
	db.Delete([]byte("a"))
	renamed := db.Put([]byte("b"), value, 0)
	if place(renamed) != at {
		t.Error("the text was copied")
	}
	for _, value := range []any{renamed.Value(), renamed.CloneValue()} {
		if place(db.Put([]byte("c"), value, 0)) == place(renamed) {
			t.Error("two keys share a text that each may change")
		}
	}
}

// A string is one allocation, as small as these.
func TestASmallStringIsOneAllocation(t *testing.T) {
	const header, class, smallest = 16, 16, 24
	for length := range 200 {
		value := bytes.Repeat([]byte("v"), length)
		var s *keyspace.String
		if n := testing.AllocsPerRun(10, func() { s = keyspace.NewString(value) }); n != 1 {
			t.Errorf("a string of %d bytes takes %v allocations", length, n)
		}
		o := keyspace.NewSpace().DB(0).Put(nil, s, 0)
		want := (header + length + class - 1) / class * class
		if header+length <= smallest {
			want = smallest
		}
		if o.MemoryBytes() != int64(want) {
			t.Errorf("a string of %d bytes takes %d, not %d", length, o.MemoryBytes(), want)
		}
	}
}
