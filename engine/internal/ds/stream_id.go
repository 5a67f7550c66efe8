package ds

import (
	"cmp"
	"math"
	"strconv"
)

// StreamID is the ID of a stream's entry: two numbers, in order of the first and then
// the second. The first is by custom a time in ms since the epoch. 0-0 is no entry's ID.
type StreamID struct{ Ms, Seq uint64 }

// MaxStreamID is the largest ID.
var MaxStreamID = StreamID{math.MaxUint64, math.MaxUint64}

// Compare returns -1, 0 or 1, as id is less than, equal to or greater than other.
func (id StreamID) Compare(other StreamID) int {
	if id.Ms != other.Ms {
		return cmp.Compare(id.Ms, other.Ms)
	}
	return cmp.Compare(id.Seq, other.Seq)
}

// Less reports whether id comes before other.
func (id StreamID) Less(other StreamID) bool { return id.Compare(other) < 0 }

// IsZero reports whether id is 0-0.
func (id StreamID) IsZero() bool { return id == StreamID{} }

// Next returns the ID after id; after the largest there is none, and 0-0 is returned.
func (id StreamID) Next() (next StreamID, ok bool) {
	if id.Seq++; id.Seq == 0 {
		id.Ms++
	}
	return id, !id.IsZero()
}

// Prev returns the ID before id; before 0-0 there is none, and the largest is returned.
func (id StreamID) Prev() (prev StreamID, ok bool) {
	if id.Seq--; id.Seq == math.MaxUint64 {
		id.Ms--
	}
	return id, id != MaxStreamID
}

// Append appends id as it is written, ms-seq.
func (id StreamID) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, id.Ms, 10)
	return strconv.AppendUint(append(dst, '-'), id.Seq, 10)
}

// String is id as it is written, ms-seq.
func (id StreamID) String() string { return string(id.Append(nil)) }
