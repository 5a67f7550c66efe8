package command

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// What is sorted are ranks: a number for each element that decides nearly all comparisons, and
// where the element is. They are small and have no pointers, so that neither the cache nor the
// collector minds a million of them, and the elements themselves, which are anywhere in memory,
// are looked at only where numbers are equal.
//
// When only the first of many are wanted, no more than twice as many are ever kept: the better
// half, and what came since that is better than its last. So SORT ... LIMIT 0 10 of a million
// takes memory for a thousand, and looks at each element once.

// sortElement is an element on its way into the reply. Its strings are shared
// with the collection.
type sortElement struct {
	text   string
	weight string // what ALPHA compares
	known  bool   // there is such a weight: without BY there always is
}

// sortRank is where an element belongs.
type sortRank struct {
	key uint64 // less comes first; of equal ones the elements decide
	at  int    // the element's position, in the order of the collection
}

// sorter collects elements and puts a window of them in order.
type sorter struct {
	request  *sortRequest
	from, to int // the window
	whole    bool
	exact    bool // no two elements are equal: their positions decide at last
	elements []sortElement
	ranks    []sortRank
	most     int      // kept at once; 0: all
	trimmed  bool     // to of them have been chosen once,
	last     sortRank // of which this is the last
}

const sortRoom = 1024 // kept at least, so that choosing is worth its while

func newSorter(r *sortRequest, n int) *sorter {
	s := &sorter{request: r}
	s.from, s.to = r.window(n)
	s.whole = s.from == 0 && s.to == n
	s.exact = r.by == nil || !r.alpha || s.whole
	room := n
	if most := max(2*s.to, sortRoom); s.exact && most < n {
		s.most, room = most, most
	}
	s.elements, s.ranks = make([]sortElement, 0, room+1), make([]sortRank, 0, room)
	return s
}

// add takes the next element of the collection. score counts unless ALPHA.
func (s *sorter) add(element sortElement, score float64) {
	rank := sortRank{at: len(s.elements)}
	switch {
	case !s.request.alpha:
		rank.key = numberKey(score)
	case element.known:
		rank.key = textKey(element.weight)
	}
	if s.request.descending {
		rank.key = ^rank.key
	}
	s.elements = append(s.elements, element)
	if s.trimmed && s.compare(rank, s.last) > 0 {
		s.elements = s.elements[:rank.at]
		return
	}
	if s.ranks = append(s.ranks, rank); len(s.ranks) == s.most {
		s.trim()
	}
}

// trim keeps the first elements of those that there are, in the order in which they came.
func (s *sorter) trim() {
	wanted := max(s.to, 1)
	sortPart(s.ranks, s.compare, 0, wanted-1)
	last := s.ranks[wanted-1]
	s.ranks = s.ranks[:wanted]
	slices.SortFunc(s.ranks, func(a, b sortRank) int { return cmp.Compare(a.at, b.at) })
	for i := range s.ranks {
		rank := &s.ranks[i]
		isLast := rank.at == last.at
		s.elements[i], rank.at = s.elements[rank.at], i
		if isLast {
			s.last = *rank
		}
	}
	s.elements, s.trimmed = s.elements[:wanted], true
}

// window returns what the elements of the window are, in order.
func (s *sorter) window() []string {
	switch {
	case s.from == s.to:
		return nil
	case s.whole:
		slices.SortFunc(s.ranks, s.compare)
	default:
		sortPart(s.ranks, s.compare, s.from, s.to-1)
	}
	texts := make([]string, 0, s.to-s.from)
	for _, rank := range s.ranks[s.from:s.to] {
		texts = append(texts, s.elements[rank.at].text)
	}
	return texts
}

// compare is the order of the request. Numbers that are equal are ordered by their elements,
// and what is equal then stays in the order of the collection, as Redis's sort of everything
// leaves it. With ALPHA and BY and only a part wanted, equal weights are equal, elements
// without one come first, and only the way of sorting decides.
func (s *sorter) compare(a, b sortRank) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	order := s.compareElements(&s.elements[a.at], &s.elements[b.at])
	if s.request.descending {
		order = -order
	}
	if order == 0 && s.exact {
		return cmp.Compare(a.at, b.at)
	}
	return order
}

func (s *sorter) compareElements(a, b *sortElement) int {
	switch {
	case !s.request.alpha:
		return strings.Compare(a.text, b.text)
	case a.known && b.known:
		return strings.Compare(a.weight, b.weight)
	case a.known:
		return 1
	case b.known:
		return -1
	}
	return 0
}

// numberKey is in the order of numbers; 0 and -0 are one number.
func numberKey(score float64) uint64 {
	const sign = 1 << 63
	bits := math.Float64bits(score + 0)
	if bits&sign == 0 {
		return bits | sign
	}
	return ^bits
}

// textKey is the first eight bytes of a text, with zeros for those that it does not have.
func textKey(text string) uint64 {
	if len(text) >= 8 {
		return binary.BigEndian.Uint64(bytesOf(text[:8]))
	}
	var first [8]byte
	copy(first[:], text)
	return binary.BigEndian.Uint64(first[:])
}
