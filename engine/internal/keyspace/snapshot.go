package keyspace

import (
	"math"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// A snapshot is the data of all databases as they were at one moment, handed over
// object by object while commands go on changing them. Redis forks, and has the
// kernel copy each page that is written to meanwhile; here it is the object that is
// about to change, and it is not copied but handed over at once, as it is.
//
// Every object has a mark of one bit. The bit that means "the snapshot has it" flips
// with each snapshot: so to begin one is O(1), and all objects are outside at once. A
// walker takes them in step by step. Whoever is about to change an object outside, or
// to take it away, has it handed over first (preserve). An object that comes later is
// marked from the start. So each object of the moment is handed over once, in its state
// of the moment, and none that came after.
//
// Where objects change or go there is a hook, behind one test of Space.snapshot:
//
//	Inspect, and so Lookup   unless a read-only command runs: what a writing command
//	                         has got hold of it may change
//	Put, over an old object; SetExpire; replace, by which a string gets another object
//	Delete                   and so expiry, eviction, RENAME and MOVE
//	Flush                    the snapshot takes the whole table over, and nobody else
//	                         has it from then on
//	Swap                     the objects stay with their table, and the table with the
//	                         number that it had at the moment (DB.origin)
//
// The walk goes by position in the table, from the end (ds.Dict.Descend), so that it
// reads memory in order and can stop after any key.
//
// When and how often an object was used is not part of the moment: reading changes it,
// too, and is not held up.
//
// Invariant S1: while no snapshot is under way all objects have the mark of the space.
// That is why an aborted snapshot goes on walking until every object has it, only
// that it hands nothing over.

// markBit is the mark in Object.length.
const markBit = 1 << 15

func (o *Object) mark() uint16 { return o.length & markBit }

func (o *Object) setMark(mark uint16) { o.length = o.length&^markBit | mark }

// Snapshot is one that is under way.
type Snapshot struct {
	space  *Space
	save   func(db int, key string, o *Object) // nil once it is aborted
	tables []snapshotTable                     // the first is being walked, those that are done have gone
	keys   int                                 // of the moment
	saved  int                                 // of them

	open   *Object // see HoldOpen
	finish func()
}

type snapshotTable struct {
	objects   *ds.Dict[*Object]
	origin    int
	at        int
	heldBytes int64 // if it is the snapshot's own by now
}

// BeginSnapshot begins a snapshot of this moment. It calls save once for each object,
// with the number that its database has now, until Step says that it is done: from
// within Step, or when the object is about to change. save must neither change the
// keyspace nor keep the object. nil is returned if another snapshot is under way, an
// aborted one included. O(1).
func (s *Space) BeginSnapshot(save func(db int, key string, o *Object)) *Snapshot {
	if s.snapshot != nil {
		return nil
	}
	sn := &Snapshot{space: s, save: save}
	for _, db := range s.dbs {
		db.origin = db.Index
		if n := db.Len(); n > 0 {
			sn.tables = append(sn.tables, snapshotTable{objects: db.objects, origin: db.Index, at: math.MaxInt})
			sn.keys += n
		}
	}
	s.mark ^= markBit
	s.snapshot = sn
	return sn
}

// Step walks on until goOn, which it asks after each object that it has come to, returns
// false. done says that all objects of the moment were handed over; a further call does
// nothing.
func (sn *Snapshot) Step(goOn func() bool) (done bool) {
	for len(sn.tables) > 0 {
		t := &sn.tables[0]
		stopped := false
		t.at = t.objects.Descend(t.at, func(key string, o *Object) bool {
			sn.take(t.origin, key, o)
			stopped = !goOn()
			return !stopped
		})
		if t.at == 0 {
			sn.tables = sn.tables[1:]
		}
		if stopped {
			return false
		}
	}
	if sn.space.snapshot == sn {
		sn.space.snapshot = nil
	}
	return true
}

// Abort makes the snapshot hand over nothing from now on. It stays under way, and
// Step is to be called as before, until that is done; that is fast.
func (sn *Snapshot) Abort() {
	sn.save, sn.open = nil, nil
	sn.tables = slices.DeleteFunc(sn.tables, func(t snapshotTable) bool { return t.heldBytes > 0 })
}

// HoldOpen is for a save, called by Step, that takes a large object in pieces: from then
// on finish is called before the object changes or goes, at most once, until LetGo.
// Step is not to be called in between.
func (sn *Snapshot) HoldOpen(o *Object, finish func()) { sn.open, sn.finish = o, finish }

// LetGo says that the object was taken to its end.
func (sn *Snapshot) LetGo() { sn.open = nil }

// Progress is how many of the keys of the moment have been handed over.
func (sn *Snapshot) Progress() (saved, keys int) { return sn.saved, sn.keys }

// HeldBytes is how much memory is in use only because the snapshot needs it: that
// of what was flushed meanwhile.
func (sn *Snapshot) HeldBytes() (total int64) {
	for _, t := range sn.tables {
		total += t.heldBytes
	}
	return total
}

// preserve hands an object over that is about to change, if the snapshot does not have
// it yet. The caller has seen that one is under way.
func (db *DB) preserve(key []byte, o *Object) {
	sn := db.space.snapshot
	switch {
	case o.mark() != db.space.mark:
		sn.take(db.origin, string(key), o)
	case o == sn.open:
		sn.open = nil
		sn.finish()
	}
}

func (sn *Snapshot) take(origin int, key string, o *Object) {
	if o.mark() == sn.space.mark {
		return
	}
	o.length ^= markBit
	if sn.save != nil {
		sn.saved++
		sn.save(origin, key, o)
	}
}

// takeOver makes the table of a database that is flushed the snapshot's own, if it has
// not walked it to its end. The caller gives the database another one.
func (sn *Snapshot) takeOver(db *DB) {
	for i := range sn.tables {
		if t := &sn.tables[i]; t.objects == db.objects {
			if sn.save == nil {
				sn.tables = slices.Delete(sn.tables, i, i+1)
				return
			}
			t.heldBytes = db.weight*weightUnit + db.TableBytes()
			return
		}
	}
}
