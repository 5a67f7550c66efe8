package keyspace

import (
	"math/rand/v2"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// Databases is how many numbered databases there are.
const Databases = 16

// Space is the sixteen databases and what they share.
type Space struct {
	// Dirty counts changes since the start: the engine compares it before and
	// after a command to learn whether the command changed anything. What expires
	// or is evicted does not count: see OnRemoval.
	Dirty uint64
	// Expired counts the keys that expiry removed, lazily or actively.
	Expired uint64
	// Limits are the sizes up to which collections are compact. What is put
	// into a database follows them from then on.
	Limits ds.Limits
	// Waiters is how many clients block on keys.
	Waiters int

	// Frozen is whether what has expired stays for now, though nobody sees it.
	Frozen bool
	// Loading is whether a log is replayed: nothing expires, since the requests of the log
	// have seen what has expired meanwhile.
	Loading bool
	// SkipChecksums is whether nobody looks at the checksums of files and payloads.
	SkipChecksums bool
	// LazyExpire, LazyEvict, LazyDel and LazyFlush are lazyfree parameters: whether what
	// expires, is evicted, deleted by a command, or flushed, is freed later. It shows only
	// in how the removal is propagated, and in FreedLater.
	LazyExpire, LazyEvict, LazyDel, LazyFlush bool
	// FreedLater counts what Redis would have had freed in the background; see lazyfree.go.
	FreedLater int64
	// Evicted counts the keys that were removed for want of memory.
	Evicted uint64
	// Rand is what eviction is chosen by; it must be set before any is wanted.
	Rand *rand.Rand
	// LogFactor and DecayMin are lfu-log-factor and lfu-decay-time; see access.go.
	LogFactor, DecayMin int64
	// NoTouch is whether lookups do not count as uses.
	NoTouch bool
	// Reading is whether lookups are for reading: they count as hits and misses.
	// A writing command sets it for those of its lookups that only read.
	Reading bool
	// Unchanging is whether a read-only command runs: what it looks up need not be
	// weighed again.
	Unchanging bool
	// Hits and Misses count the lookups of reading commands.
	Hits, Misses int64

	dbs    [Databases]*DB
	ready  []readyKey
	wanted Class // of the events that hear is told
	hear   func(event Event, db *DB, key []byte)
	noted  []lookedUp

	snapshot *Snapshot // under way; see snapshot.go
	mark     uint16    // of the objects that it has

	policy  Policy
	pool    []candidate
	turn    int              // of the database that gave the last random victim
	changed func(key []byte) // see OnChange
	flushed func()
	removed func(db *DB, key []byte, later bool) // see OnRemoval
}

// NewSpace returns sixteen empty databases.
func NewSpace() *Space {
	s := &Space{Limits: ds.DefaultLimits(), LogFactor: defaultLogFactor, DecayMin: defaultDecayMin}
	for i := range s.dbs {
		s.dbs[i] = newDB(s, i)
	}
	return s
}

// OnChange makes the space tell of every change to a key, and of every flush,
// which stands for changes to all keys of a database. nil is nobody. What is told
// must not change the keyspace nor keep the key.
func (s *Space) OnChange(changed func(key []byte), flushed func()) {
	s.changed, s.flushed = changed, flushed
}

// OnRemoval makes the space tell which keys it removes of its own accord, since they have
// expired or memory is short, and whether they are freed later. nil is nobody. What is told
// must not change the keyspace nor keep the key.
func (s *Space) OnRemoval(removed func(db *DB, key []byte, later bool)) { s.removed = removed }

// Flush empties the databases first to last. It counts as a change even if
// they are empty, as in Redis: a replica that should not have had anything is
// put right.
func (s *Space) Flush(first, last int) {
	for _, db := range s.dbs[first : last+1] {
		db.Flush()
	}
	s.Dirty++
	if s.flushed != nil {
		s.flushed()
	}
}

// DB returns the database with the given number, or nil when there is none.
func (s *Space) DB(index int) *DB {
	if index < 0 || index >= Databases {
		return nil
	}
	return s.dbs[index]
}
