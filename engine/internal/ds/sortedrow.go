package ds

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// A sortedRow is what a small sorted set is kept in: a packed row in the order of the set.
// An element is
//
//	the length of the member and the form of the score   a uvarint: length<<2 | form
//	the score                                            0: its 8 bytes
//	                                                     1, 2, 3: an integer of 2, 4 or 6
//	the member
//
// Most scores are small integers or times in ms, which take 2 to 6 bytes. Everything is
// found by reading the row from the beginning; there is no other order to keep up.

type sortedRow struct{ rowOr[largeSorted] }

// rowItem is one element, and where it lies.
type rowItem struct {
	score      float64
	member     string
	start, end int
}

func (i *rowItem) ranked() ranked { return ranked{i.score, i.member} }

const (
	formFloat = iota
	formInt16
	formInt32
	formInt48
)

// scoreForm is the form of a score and the number of bytes that it takes.
func scoreForm(score float64) (form uint64, size int) {
	n := int64(score)
	switch {
	case float64(n) != score || n == 0 && math.Signbit(score):
		return formFloat, 8
	case n == int64(int16(n)):
		return formInt16, 2
	case n == int64(int32(n)):
		return formInt32, 4
	case n>>47 == n>>63:
		return formInt48, 6
	}
	return formFloat, 8
}

// sortedAt reads the element at this place of a row, which must be one.
func sortedAt(row []byte, place int) (i rowItem) {
	head, width := uint64(row[place]), 1
	if head >= 0x80 {
		head, width = binary.Uvarint(row[place:])
	}
	i.start = place
	place += width
	b := row[place:]
	switch head & 3 {
	case formFloat:
		i.score, place = math.Float64frombits(binary.LittleEndian.Uint64(b)), place+8
	case formInt16:
		i.score, place = float64(int16(binary.LittleEndian.Uint16(b))), place+2
	case formInt32:
		i.score, place = float64(int32(binary.LittleEndian.Uint32(b))), place+4
	case formInt48:
		n := int64(binary.LittleEndian.Uint32(b)) | int64(int16(binary.LittleEndian.Uint16(b[4:])))<<32
		i.score, place = float64(n), place+6
	}
	i.end = place + int(head>>2)
	i.member = view(row[place:i.end])
	return i
}

// each visits the elements in order until visit returns false. They may be kept.
func (s *sortedRow) each(visit func(i *rowItem) bool) {
	s.shown = true
	row := s.bytes() // as it is now
	for place := 0; place < len(row); {
		i := sortedAt(row, place)
		if !visit(&i) {
			return
		}
		place = i.end
	}
}

// find returns the element of this member, valid until the row changes.
func (s *sortedRow) find(member string) (found rowItem, ok bool) {
	row := s.bytes()
	for place := 0; place < len(row); {
		i := sortedAt(row, place)
		if i.member == member {
			return i, true
		}
		place = i.end
	}
	return found, false
}

// elementSize is how many bytes an element takes.
func (s *sortedRow) elementSize(member int, score float64) int {
	form, width := scoreForm(score)
	return uvarintSize(uint64(member)<<2|form) + width + member
}

// insert adds an element that is not there, and says whether there was room for it.
func (s *sortedRow) insert(r ranked) bool {
	form, width := scoreForm(r.score)
	head := uint64(len(r.member))<<2 | form
	size := uvarintSize(head) + width + len(r.member)
	if !s.fits(size) {
		return false
	}
	row, place := s.bytes(), 0
	for place < len(row) {
		i := sortedAt(row, place)
		if other := i.ranked(); r.less(&other) {
			break
		}
		place = i.end
	}
	gap := s.splice(place, place, size)
	gap = gap[binary.PutUvarint(gap, head):]
	n := int64(r.score)
	switch form {
	case formFloat:
		binary.LittleEndian.PutUint64(gap, math.Float64bits(r.score))
	case formInt16:
		binary.LittleEndian.PutUint16(gap, uint16(n))
	case formInt32:
		binary.LittleEndian.PutUint32(gap, uint32(n))
	case formInt48:
		binary.LittleEndian.PutUint32(gap, uint32(n))
		binary.LittleEndian.PutUint16(gap[4:], uint16(n>>32))
	}
	copy(gap[width:], r.member)
	s.count++
	return true
}

func (s *sortedRow) remove(i rowItem) {
	s.splice(i.start, i.end, 0)
	s.count--
}

// removeRange removes the elements with these ranks, which must exist.
func (s *sortedRow) removeRange(fromRank, toRank int) {
	s.splice(s.atRank(fromRank).start, s.atRank(toRank).end, 0)
	s.count -= uint8(toRank - fromRank + 1)
}

// atRank returns the element with this rank, which must exist, valid until the row changes.
func (s *sortedRow) atRank(rank int) rowItem {
	row := s.bytes()
	i := sortedAt(row, 0)
	for range rank {
		i = sortedAt(row, i.end)
	}
	return i
}

// countWhile returns the number of elements for which below is true; it must be true for
// the first so many in order, and for no others.
func (s *sortedRow) countWhile(below func(r ranked) bool) (count int) {
	row := s.bytes()
	for place := 0; place < len(row); count++ {
		i := sortedAt(row, place)
		if !below(i.ranked()) {
			return count
		}
		place = i.end
	}
	return count
}

func (s *sortedRow) ascend(fromRank int, yield func(string, float64) bool) {
	rank := 0
	s.each(func(i *rowItem) bool {
		rank++
		return rank <= fromRank || yield(i.member, i.score)
	})
}

func (s *sortedRow) descend(fromRank int, yield func(string, float64) bool) {
	var all [rowElements]rowItem
	n := 0
	s.each(func(i *rowItem) bool {
		all[n] = *i
		n++
		return n <= fromRank
	})
	for n--; n >= 0; n-- {
		if !yield(all[n].member, all[n].score) {
			return
		}
	}
}

func (s *sortedRow) random(r *rand.Rand) rowItem { return s.atRank(r.IntN(int(s.count))) }
