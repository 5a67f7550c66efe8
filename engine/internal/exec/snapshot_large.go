package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// A large collection that the walk comes to is written in pieces, so that nobody waits for
// all of it. In the format no key can stand inside another: what other keys hand over
// meanwhile goes to a second writer, the aside, whose parts follow when the collection is
// done. Only who is about to change that very collection, or a large one that the walk
// has not come to yet, waits for the whole.

// largeBytes is from what size on in memory a collection is written in pieces.
const largeBytes = 64 << 10

// large is the collection that is being written in pieces, if any.
type large struct {
	pieces *rdb.Pieces // nil if there is none
	aside  *rdb.Writer // nil if nothing was handed over meanwhile
	full   [][]byte    // parts of it
	bytes  int64
}

func (sn *Snapshot) isLarge(o *keyspace.Object) bool {
	return o.Kind() != keyspace.KindString && o.MemoryBytes() >= sn.largeBytes
}

// begin opens a large collection for pieces.
func (l *large) begin(sn *Snapshot, o *keyspace.Object, key rdb.Key) {
	l.pieces = sn.writer.WritePieces(key)
	sn.walk.HoldOpen(o, func() {
		for l.more(sn) {
		}
	})
}

// more writes a piece, and says whether there are more.
func (l *large) more(sn *Snapshot) bool {
	more, err := l.pieces.More()
	if more {
		return true
	}
	sn.note(err)
	sn.walk.LetGo()
	if l.aside != nil {
		sn.writer.Cut()
		l.aside.Cut()
		sn.full = append(sn.full, l.full...)
		sn.bytes += l.bytes
		sn.pending += int(l.bytes)
	}
	*l = large{}
	return false
}

// giveUp forgets it.
func (l *large) giveUp() {
	if l.pieces != nil {
		l.pieces.GiveUp()
	}
	*l = large{}
}

// writerAside is the writer for what must not wait.
func (l *large) writerAside(sn *Snapshot) *rdb.Writer {
	if l.aside == nil {
		l.aside = sn.writer.Sibling(func(full []byte) []byte {
			l.full = append(l.full, full)
			l.bytes += int64(len(full))
			return sn.buffer()
		})
	}
	return l.aside
}

// pendingBytes is what was handed over meanwhile.
func (l *large) pendingBytes() int {
	if l.aside == nil {
		return 0
	}
	return int(l.bytes) + l.aside.Buffered()
}
