package exec

import (
	"strconv"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// Snapshots: the data of one moment as a file that Redis reads, written while clients
// go on. How an object gets into it before it changes is keyspace/snapshot.go; what it
// looks like there is package rdb. Here the two meet, in memory: the machine fills
// buffers, the shell empties them.
//
//	sn, err := m.BeginSnapshot(...)          with the lock
//	for done := false; !done; {
//		done = sn.Step(...)                  with the lock, a bounded time
//		parts = sn.Take(parts)               with the lock, no time
//		write parts through an rdb.Seal      without the lock
//	}
//
// Nobody waits for the disk but the shell's own writer. What is in memory only because
// of the snapshot is what commands hand over before they change it, faster than it
// is written: PendingBytes, which the shell keeps in bounds by holding up writers, or by
// Abort.
//
// A large collection is written in pieces (snapshot_large.go). A command that is about to
// change one that is not in the file yet waits until it is, as a whole: about as long as
// DUMP would take. That is the longest that a snapshot holds anybody up.

// ErrSnapshot is that of BeginSnapshot while another snapshot is under way.
const ErrSnapshot command.Error = "ERR Background save already in progress"

// Snapshot is one that is under way. The machine's lock protects it.
type Snapshot struct {
	machine *Machine
	walk    *keyspace.Snapshot
	writer  *rdb.Writer
	key     rdb.Key  // used again and again
	full    [][]byte // parts that nobody has taken yet
	spare   [][]byte // for parts to come
	bytes   int64    // of all parts so far
	pending int      // bytes of full
	err     error
	done    bool
	aborted bool

	largeBytes int64
	large      large
	stepping   bool // objects are handed over by Step, not by a command
}

// SnapshotOptions say what a snapshot is for.
type SnapshotOptions struct {
	// Preamble is whether an append-only file goes on after it, Stream whether a stream to a replica does.
	Preamble, Stream bool
	// FunctionsOnly leaves the keys out.
	FunctionsOnly bool
	// LargeBytes is from what size on in memory a collection is written in pieces; 0
	// is the usual.
	LargeBytes int64
}

// BeginSnapshot begins a snapshot of this moment. The error is ErrSnapshot while
// another one is under way, an aborted one included, and that a script is busy in the
// middle of its work. O(1), apart from what there is of functions.
func (m *Machine) BeginSnapshot(nowUs int64, options SnapshotOptions) (*Snapshot, error) {
	if m.Busy() {
		return nil, m.errBusy()
	}
	sn := &Snapshot{machine: m, largeBytes: options.LargeBytes}
	if sn.largeBytes == 0 {
		sn.largeBytes = largeBytes
	}
	sn.walk = m.space.BeginSnapshot(sn.save)
	if sn.walk == nil {
		return nil, ErrSnapshot
	}
	m.snapshot = sn
	sn.writer = rdb.NewPartsWriter(sn.give)
	sn.preface(nowUs, options)
	return sn, nil
}

// preface writes what comes before the keys.
func (sn *Snapshot) preface(nowUs int64, options SnapshotOptions) {
	m, preamble := sn.machine, "0"
	if options.Preamble {
		preamble = "1"
	}
	for _, aux := range []rdb.Aux{
		{Name: "redis-ver", Value: RedisVersion},
		{Name: "redis-bits", Value: strconv.Itoa(strconv.IntSize)},
		{Name: "ctime", Value: strconv.FormatInt(nowUs/1e6, 10)},
		{Name: "used-mem", Value: strconv.FormatInt(m.usedBytes(), 10)},
		{Name: "aof-base", Value: preamble},
	} {
		sn.note(sn.writer.Write(aux))
	}
	if !options.Preamble {
		for _, aux := range m.streamPlace() {
			sn.note(sn.writer.Write(aux))
		}
	}
	for code := range m.libraryCodes() {
		sn.note(sn.writer.Write(rdb.Function{Code: []byte(code)}))
	}
	if options.FunctionsOnly {
		sn.walk.Abort()
		return
	}
	// All sizes at once: keys of several databases will take turns.
	for i := range keyspace.Databases {
		if db := m.space.DB(i); db.Len() > 0 {
			sn.note(sn.writer.Write(rdb.Size{DB: i, Keys: uint64(db.Len()), Expires: uint64(db.VolatileLen())}))
		}
	}
}

func (sn *Snapshot) note(err error) {
	if sn.err == nil {
		sn.err = err
	}
}

// save encodes an object.
func (sn *Snapshot) save(db int, key string, o *keyspace.Object) {
	m, k := sn.machine, &sn.key
	*k = rdb.Key{DB: db, Name: unsafe.Slice(unsafe.StringData(key), len(key)), Value: o.Value(), ExpireAtMs: o.ExpireAt()}
	switch policy := m.space.Policy(); {
	case policy.Frequency():
		frequency, _ := m.space.Frequency(o, m.nowUs/1000)
		k.Freq, k.HasFreq = uint8(frequency), true
	case policy.Recency():
		idleMs, _ := m.space.IdleMs(o, m.nowUs/1000)
		k.IdleSec = uint64(idleMs / 1000)
	}
	switch {
	case sn.large.pieces != nil:
		sn.note(sn.large.writerAside(sn).WriteKey(k))
	case sn.stepping && sn.isLarge(o):
		sn.large.begin(sn, o, *k)
	default:
		sn.note(sn.writer.WriteKey(k))
	}
	k.Name, k.Value = nil, nil
}

// give takes a part that is full, and returns a buffer for the next one.
func (sn *Snapshot) give(full []byte) []byte {
	if !sn.aborted {
		sn.full = append(sn.full, full)
		sn.pending += len(full)
		sn.bytes += int64(len(full))
	}
	return sn.buffer()
}

// buffer returns an empty one.
func (sn *Snapshot) buffer() []byte {
	if n := len(sn.spare); n > 0 {
		empty := sn.spare[n-1]
		sn.spare = sn.spare[:n-1]
		return empty
	}
	return make([]byte, 0, rdb.PartBytes)
}

// Step writes some more keys: until they make so many bytes, or so many keys have been
// looked at, one at least. done says that nothing is missing, or is wanted any more.
// The error is of what cannot be written; the snapshot is aborted then.
func (sn *Snapshot) Step(maxBytes, maxKeys int) (done bool, err error) {
	if sn.done {
		return true, sn.err
	}
	end := sn.Bytes() + int64(maxBytes)
	for sn.large.pieces != nil && sn.large.more(sn) && sn.Bytes() < end {
	}
	if sn.large.pieces == nil {
		sn.stepping = true
		done = sn.walk.Step(func() bool {
			maxKeys--
			return maxKeys > 0 && sn.Bytes() < end && sn.large.pieces == nil
		})
		sn.stepping = false
	}
	if done {
		if !sn.aborted {
			sn.note(sn.writer.Close())
		}
		sn.done = true
	}
	if sn.err != nil && !sn.aborted {
		sn.Abort()
	}
	return done, sn.err
}

// mostSpare bounds how many empty buffers are kept.
const mostSpare = 64

// Take returns the parts that are full, in order, for an rdb.Seal: the caller has them
// from then on. It takes buffers back that the caller no longer needs.
func (sn *Snapshot) Take(back [][]byte) (parts [][]byte) {
	parts, sn.full, sn.pending = sn.full, nil, 0
	for _, buffer := range back[:min(len(back), mostSpare-len(sn.spare))] {
		sn.spare = append(sn.spare, buffer[:0])
	}
	return parts
}

// PendingBytes is how much memory the parts take that nobody has taken yet.
func (sn *Snapshot) PendingBytes() int {
	return sn.pending + sn.writer.Buffered() + sn.large.pendingBytes()
}

// HeldBytes is how much memory is in use only because the snapshot has yet to write
// it: keys that were flushed meanwhile.
func (sn *Snapshot) HeldBytes() int64 { return sn.walk.HeldBytes() }

// Bytes is how long the file is so far, Progress how many keys it has, of how many.
func (sn *Snapshot) Bytes() int64 { return sn.bytes + int64(sn.writer.Buffered()) }

// Progress is how many keys are in the file, and how many will be.
func (sn *Snapshot) Progress() (saved, keys int) { return sn.walk.Progress() }

// Abort ends the snapshot: nothing more is written, and what was is forgotten. Until
// Step says that it is done, which it is to be called for as before, no other one can
// begin.
func (sn *Snapshot) Abort() {
	if sn.aborted {
		return
	}
	sn.aborted = true
	sn.large.giveUp()
	sn.full, sn.spare, sn.pending = nil, nil, 0
	sn.walk.Abort()
}

// Aborted reports whether the snapshot has come to nothing.
func (sn *Snapshot) Aborted() bool { return sn.aborted }
