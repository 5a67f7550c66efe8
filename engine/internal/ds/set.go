package ds

import (
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
)

// Set is a set of strings, in one of three forms; it goes from each to a later one when it
// must, for good:
//
//	ints     all members are integers, and not more than its Limits say: a sorted array of
//	         them (introw.go), O(log n) to look one up, O(n) to change
//	row      small: a packed row
//	members  a Dict
type Set struct {
	row     packed          // empty in the other forms
	ints    *intRow         // nil in the other forms
	members *Dict[struct{}] // nil in the other forms
	limits  *Limits
}

// NewSet returns an empty Set.
func NewSet() *Set { return &Set{ints: &intRow{}, limits: &usual} }

// Within sets the limits for what is written from now on.
func (s *Set) Within(limits *Limits) { s.limits = limits }

// IsInts reports whether the set is kept as an array of integers.
func (s *Set) IsInts() bool { return s.ints != nil }

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
		return s.ints.len()
	case s.members != nil:
		return s.members.Len()
	}
	return s.row.count
}

// Add adds member and says whether it is new. The bytes are copied if needed.
func (s *Set) Add(member []byte) bool {
	if s.IsInts() {
		n, ok := ParseInt(member)
		if ok {
			at, found := s.ints.find(n)
			if found {
				return false
			}
			if s.ints.len() < s.limits.SetIntegers {
				s.ints.insert(at, n)
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
	if !s.IsInts() {
		at, end := s.row.find(member, 1)
		if at >= 0 {
			s.row.splice(at, end, 0)
			s.row.count--
		}
		return at >= 0
	}
	at, found := s.findInt(member)
	if found {
		s.ints.remove(at)
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
	if !s.IsInts() {
		return s.row.view(s.row.stringAt(s.row.random(r, 1))), true
	}
	return strconv.FormatInt(s.ints.at(r.IntN(s.ints.len())), 10), true
}

// Scan is one step of a walk; see Dict.Scan. Integers, or a packed row, are all visited in
// one step.
func (s *Set) Scan(cursor uint64, visit func(member string)) (next uint64) {
	if s.members != nil {
		return s.members.Scan(cursor, func(member string, _ struct{}) { visit(member) })
	}
	for member := range s.All() {
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
	for i := 0; i < s.ints.len(); {
		n := s.ints.at(i)
		if !yield(strconv.FormatInt(n, 10)) {
			return
		}
		if i < s.ints.len() && s.ints.at(i) == n { // else it was removed, and i is the next one
			i++
		}
	}
}

// Clone returns a copy. O(n).
func (s *Set) Clone() *Set {
	c := &Set{row: s.row.clone(), limits: s.limits}
	if s.ints != nil {
		ints := s.ints.clone()
		c.ints = &ints
	}
	if s.members != nil {
		c.members = s.members.Clone(nil)
	}
	return c
}

// convert leaves the form of integers.
func (s *Set) convert() {
	ints := s.ints
	s.ints = nil
	var text [20]byte
	for i := range ints.len() {
		s.Add(strconv.AppendInt(text[:0], ints.at(i), 10))
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
	n, ok := ParseInt(member)
	if !ok {
		return 0, false
	}
	return s.ints.find(n)
}

// ParseInt reads a 64-bit integer in the one form that printing it gives back: no
// leading zeros or plus sign, no -0. It does not allocate for what is no integer, as
// strconv does for its error.
func ParseInt(b []byte) (n int64, ok bool) {
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
