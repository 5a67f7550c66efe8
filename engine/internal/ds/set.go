package ds

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Set is a set of strings, in one of three forms; it goes from each to a later one when it
// must, for good:
//
//	ints     all members are integers, and not more than its Limits say: a sorted array of
//	         them, 8 bytes a member, O(log n) to look one up, O(n) to change
//	row      small: a packed row
//	members  a Dict
type Set struct {
	row     packed          // the bytes are nil while the members are in ints
	ints    []int64         // nil in the other forms
	members *Dict[struct{}] // nil in the other forms
	limits  *Limits
	words   bool // the members are in row or in members
}

// NewSet returns an empty Set.
func NewSet() *Set { return &Set{limits: &usual} }

// Within sets the limits for what is written from now on.
func (s *Set) Within(limits *Limits) { s.limits = limits }

// IsInts reports whether the set is kept as an array of integers.
func (s *Set) IsInts() bool { return !s.words }

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for such a set.
func (s *Set) Encoding() string {
	if s.IsInts() {
		return "intset"
	}
	return "hashtable"
}

// Len returns the number of members.
func (s *Set) Len() int {
	switch {
	case s.IsInts():
		return len(s.ints)
	case s.members != nil:
		return s.members.Len()
	}
	return s.row.count
}

// Add adds member and says whether it is new. The bytes are copied if needed.
func (s *Set) Add(member []byte) bool {
	if s.IsInts() {
		n, ok := parseInt(member)
		if ok {
			at, found := slices.BinarySearch(s.ints, n)
			if found {
				return false
			}
			if len(s.ints) < s.limits.SetIntegers {
				s.ints = slices.Insert(s.ints, at, n)
				return true
			}
		}
		s.convert()
	}
	if s.members == nil {
		if at, _ := s.row.find(member, 1); at >= 0 {
			return false
		}
		if size := stringSize(len(member)); s.row.fits(size) {
			end := len(s.row.bytes)
			putString(s.row.splice(end, end, size), member)
			s.row.count++
			return true
		}
		s.enlarge()
	}
	return s.members.SetBytes(member, struct{}{})
}

// Remove removes member and says whether it was there.
func (s *Set) Remove(member []byte) bool {
	if s.members != nil {
		_, ok := s.members.Delete(member)
		return ok
	}
	if s.words {
		at, end := s.row.find(member, 1)
		if at >= 0 {
			s.row.splice(at, end, 0)
			s.row.count--
		}
		return at >= 0
	}
	at, found := s.findInt(member)
	if found {
		s.ints = slices.Delete(s.ints, at, at+1)
	}
	return found
}

// Has reports whether member is in the set. It does not allocate.
func (s *Set) Has(member []byte) bool {
	if s.IsInts() {
		_, found := s.findInt(member)
		return found
	}
	if s.members == nil {
		at, _ := s.row.find(member, 1)
		return at >= 0
	}
	_, ok := s.members.Get(member)
	return ok
}

// Random returns a random member, each with the same probability; ok is false if
// there is none.
func (s *Set) Random(r *rand.Rand) (member string, ok bool) {
	if s.members != nil {
		member, _, ok = s.members.Random(r)
		return member, ok
	}
	if s.Len() == 0 {
		return "", false
	}
	if s.words {
		return s.row.view(s.row.stringAt(s.row.random(r, 1))), true
	}
	return strconv.FormatInt(s.ints[r.IntN(len(s.ints))], 10), true
}

// Scan is one step of a walk; see Dict.Scan. Integers, or a packed row, are all visited in
// one step.
func (s *Set) Scan(cursor uint64, visit func(member string)) (next uint64) {
	if s.members != nil {
		return s.members.Scan(cursor, func(member string, _ struct{}) { visit(member) })
	}
	for _, n := range s.ints {
		visit(strconv.FormatInt(n, 10))
	}
	for member := range s.row.strings() {
		visit(member)
	}
	return 0
}

// All walks over all members: integers in ascending order, others in no particular
// order. The current member may be removed meanwhile; no other change is allowed.
func (s *Set) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		if s.IsInts() {
			s.allInts(yield)
			return
		}
		if s.members == nil {
			s.row.strings()(yield)
			return
		}
		for member := range s.members.All() {
			if !yield(member) {
				return
			}
		}
	}
}

func (s *Set) allInts(yield func(string) bool) {
	for i := 0; i < len(s.ints); {
		n := s.ints[i]
		if !yield(strconv.FormatInt(n, 10)) {
			return
		}
		if i < len(s.ints) && s.ints[i] == n { // else it was removed, and i is the next one
			i++
		}
	}
}

// Clone returns a copy. O(n).
func (s *Set) Clone() *Set {
	c := &Set{row: s.row.clone(), ints: slices.Clone(s.ints), limits: s.limits, words: s.words}
	if s.members != nil {
		c.members = s.members.Clone(nil)
	}
	return c
}

// convert leaves the form of integers.
func (s *Set) convert() {
	ints := s.ints
	s.words, s.ints = true, nil
	var text [20]byte
	for _, n := range ints {
		s.Add(strconv.AppendInt(text[:0], n, 10))
	}
}

// enlarge makes a Dict of the row.
func (s *Set) enlarge() {
	s.members = NewDict[struct{}]()
	for member := range s.row.strings() {
		s.members.SetBytes([]byte(member), struct{}{})
	}
	s.row = packed{}
}

func (s *Set) findInt(member []byte) (at int, found bool) {
	n, ok := parseInt(member)
	if !ok {
		return 0, false
	}
	return slices.BinarySearch(s.ints, n)
}

// parseInt reads a 64-bit integer in the one form that printing it gives back: no
// leading zeros or plus sign, no -0. It does not allocate for what is no integer, as
// strconv does for its error.
func parseInt(b []byte) (n int64, ok bool) {
	digits, limit := b, uint64(math.MaxInt64)
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits, limit = b[1:], limit+1
	}
	if len(digits) == 0 || len(digits) > len("9223372036854775808") {
		return 0, false
	}
	if digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var magnitude uint64 // 19 digits fit
	for _, digit := range digits {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		magnitude = magnitude*10 + uint64(digit-'0')
	}
	if magnitude > limit {
		return 0, false
	}
	if negative {
		return -int64(magnitude), true // also right for the least integer, which wraps to itself
	}
	return int64(magnitude), true
}
