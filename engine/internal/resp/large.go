package resp

import (
	"strings"
	"unsafe"
)

// A large argument is received into memory of its own, so that it is copied neither when the
// buffer grows nor into the value that it becomes:
//
//   - what has arrived with its header is moved there, and the next reads go there, up to its
//     line end and no further,
//   - whoever runs the request may keep the memory, and give back in exchange what is not
//     needed any more, into which a later argument is received.
//
// What a peer announces costs nothing. There is room for headStart times what has arrived, and
// for the whole once that is a part in headStart of it: so an argument is moved once, when it
// is small, and what was too small before is a seventh of it. The rest of the room is memory
// that nobody has touched, which the system has not given yet.

const (
	// largeBytes are enough for an argument to have memory of its own. What is shorter fits
	// into the buffer as it is.
	largeBytes = keepBytes
	// headStart is how much more room there is than has arrived.
	headStart = 8
)

// Memory is where large arguments get theirs from, if there is any that was used before.
type Memory interface {
	// TakeLarge returns memory of at least so many bytes and not many more, or nil.
	TakeLarge(size int) []byte
	// ReturnLarge takes what nobody uses any more.
	ReturnLarge(memory []byte)
}

// Large are the large arguments of one connection's requests. A nil *Large has none.
type Large struct {
	arriving []byte   // what has arrived of the one under way, line end included; nil if there is none
	whole    [][]byte // of the request under way
	handed   [][]byte // with requests, since the last Space
	memory   Memory   // may be nil
}

// Large tells who runs a request which of its arguments may be kept.
func (r *Requests) Large() *Large { return &r.large }

// Keep reports whether arg has memory of its own. It is the caller's from then on, who must not
// change it before the next Space: the request is still made of it.
func (l *Large) Keep(arg []byte) bool {
	if l == nil || len(arg) < largeBytes {
		return false
	}
	for i, own := range l.handed {
		if own != nil && &own[0] == &arg[0] {
			l.handed[i] = nil
			return true
		}
	}
	return false
}

// Trade takes memory that nobody uses any more, for what was kept.
func (l *Large) Trade(memory []byte) {
	if l.memory != nil && cap(memory) >= largeBytes {
		l.memory.ReturnLarge(memory)
	}
}

// begin makes room for an argument of so many bytes, of which some have arrived.
func (l *Large) begin(arrived []byte, size int) {
	var room []byte
	if l.memory != nil {
		room = l.memory.TakeLarge(size)
	}
	if room == nil {
		room = uncleared(roomFor(len(arrived), size))
	}
	l.arriving = append(room[:0], arrived...)
}

// room is where the rest of an argument of so many bytes goes.
func (l *Large) room(size int) []byte {
	if len(l.arriving) == cap(l.arriving) {
		l.arriving = append(uncleared(roomFor(len(l.arriving), size)), l.arriving...)
	}
	return l.arriving[len(l.arriving):min(cap(l.arriving), size)]
}

// uncleared makes memory with a capacity of size, at least one, that holds anything. To clear
// 512 MB takes a third of a second, if it was used before.
func uncleared(size int) []byte {
	var b strings.Builder // which asks the runtime for such memory
	b.Grow(size)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), size)[:0] //nolint:gosec // the builder's, who is gone, and it has size bytes
}

func roomFor(arrived, size int) int {
	if arrived >= size/headStart {
		return size
	}
	return min(size, max(firstBytes, min(headStart*arrived, size/headStart)))
}

// awaits reports whether bytes of an argument of that size are missing.
func (l *Large) awaits(size int) bool { return l.arriving != nil && len(l.arriving) < size }

// end ends the argument under way, and tells its number in the request.
func (l *Large) end(bulk int) (number int) {
	l.whole = append(l.whole, l.arriving[:bulk])
	l.arriving = nil
	return len(l.whole) - 1
}

// hand hands out those of the request that is complete.
func (l *Large) hand() {
	l.handed = append(l.handed, l.whole...)
	clear(l.whole)
	l.whole = l.whole[:0]
}

// reclaim takes back what was handed out and nobody has kept.
func (l *Large) reclaim() {
	for _, own := range l.handed {
		if own != nil {
			l.Trade(own)
		}
	}
	clear(l.handed)
	l.handed = l.handed[:0]
}
