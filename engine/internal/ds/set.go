package ds

import (
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
)

// Set is a set of strings, in one of four forms; it goes from each to a later one when it
// must, for good:
//
//	few integers   all members are integers, and not more than its Limits say: a row that is
//	               a sorted array of them (introw.go), O(log n) to look one up, O(n) to change
//	integers       the same, of which a row is too short
//	few            a packed row
//	members        a Dict
type Set struct {
	row    rowOr[largeSet]
	limits *Limits
}

// largeSet is integers, or members of any kind.
type largeSet struct {
	ints    intRow
	members *Dict[struct{}] // nil while there are only integers
}

// NewSet returns an empty Set.
func NewSet() *Set {
	s := &Set{limits: &usual}
	s.row.form = formInts
	return s
}

// Within sets the limits for what is written from now on.
func (s *Set) Within(limits *Limits) { s.limits = limits }

// Expect makes room for these members if the set is empty: they are about to be added.
func (s *Set) Expect(members [][]byte) {
	if s.row.form == formLarge || s.row.length > 0 || len(members) == 0 {
		return
	}
	if _, ok := ParseInt(members[0]); ok && s.row.form == formInts {
		s.row.expect(2 * len(members)) // as much as they take at least
		return
	}
	s.row.form = formStrings
	s.row.expect(stringsSize(members))
}

// IsInts reports whether the set is kept as an array of integers.
func (s *Set) IsInts() bool {
	l := s.row.large()
	return s.row.form == formInts || l != nil && l.members == nil
}

// ints are the members if they are integers.
func (s *Set) ints() (ints intRow, ok bool) {
	switch l := s.row.large(); {
	case l != nil:
		return l.ints, l.members == nil
	case s.row.form == formInts:
		return intRow{bytes: s.row.bytes(), width: int(s.row.width)}, true
	}
	return ints, false
}

// keep stores the integers after a change.
func (s *Set) keep(ints intRow) {
	switch l := s.row.large(); {
	case l != nil:
		l.ints = ints
	case cap(ints.bytes) <= rowBytes:
		s.row.hold(ints.bytes)
		s.row.width = uint8(ints.width)
	default:
		s.row.become(&largeSet{ints: ints})
	}
}

// members is the Dict, or nil in the other forms.
func (s *Set) members() *Dict[struct{}] {
	if l := s.row.large(); l != nil {
		return l.members
	}
	return nil
}

// Packed reports whether the set is one row: whoever keeps one of its members holds all of it.
func (s *Set) Packed() bool { return s.row.form == formStrings }

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for such a set.
func (s *Set) Encoding() string {
	if s.IsInts() {
		return "intset"
	}
	return "hashtable"
}

// Len returns the number of members.
func (s *Set) Len() int {
	if members := s.members(); members != nil {
		return members.Len()
	}
	if ints, ok := s.ints(); ok {
		return ints.len()
	}
	return int(s.row.count)
}

// Add adds member and says whether it is new. The bytes are copied if needed.
func (s *Set) Add(member []byte) bool {
	if members := s.members(); members != nil {
		return members.SetBytes(member, struct{}{})
	}
	if ints, ok := s.ints(); ok {
		if n, ok := ParseInt(member); ok {
			at, found := ints.find(n)
			if found {
				return false
			}
			if ints.len() < s.limits.SetIntegers {
				ints.insert(at, n)
				s.keep(ints)
				return true
			}
		}
		s.convert(ints)
	}
	if s.row.form != formLarge {
		if at, _ := s.row.find(member, 1); at >= 0 {
			return false
		}
		if size := stringSize(len(member)); s.row.fits(size) {
			end := int(s.row.length)
			putString(s.row.splice(end, end, size), member)
			s.row.count++
			return true
		}
		s.enlarge()
	}
	return s.members().SetBytes(member, struct{}{})
}

// Remove removes member and says whether it was there.
func (s *Set) Remove(member []byte) bool {
	if members := s.members(); members != nil {
		_, ok := members.Delete(member)
		return ok
	}
	if ints, ok := s.ints(); ok {
		at, found := ints.findText(member)
		if found {
			ints.remove(at)
			s.keep(ints)
		}
		return found
	}
	at, end := s.row.find(member, 1)
	if at >= 0 {
		s.row.splice(at, end, 0)
		s.row.count--
	}
	return at >= 0
}

// Has reports whether member is in the set. It does not allocate.
func (s *Set) Has(member []byte) bool {
	if members := s.members(); members != nil {
		_, ok := members.Get(member)
		return ok
	}
	if ints, ok := s.ints(); ok {
		_, found := ints.findText(member)
		return found
	}
	at, _ := s.row.find(member, 1)
	return at >= 0
}

// Random returns a random member, each with the same probability; ok is false if
// there is none.
func (s *Set) Random(r *rand.Rand) (member string, ok bool) {
	if members := s.members(); members != nil {
		member, _, ok = members.Random(r)
		return member, ok
	}
	if s.Len() == 0 {
		return "", false
	}
	if ints, ok := s.ints(); ok {
		return strconv.FormatInt(ints.at(r.IntN(ints.len())), 10), true
	}
	return s.row.show(stringAt(s.row.bytes(), s.row.random(r, 1))), true
}

// Scan is one step of a walk; see Dict.Scan. Integers, or a packed row, are all visited in
// one step.
func (s *Set) Scan(cursor uint64, visit func(member string)) (next uint64) {
	if members := s.members(); members != nil {
		return members.Scan(cursor, func(member string, _ struct{}) { visit(member) })
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
		members := s.members()
		if members == nil {
			s.row.strings()(yield)
			return
		}
		for member := range members.All() {
			if !yield(member) {
				return
			}
		}
	}
}

func (s *Set) allInts(yield func(string) bool) {
	ints, _ := s.ints()
	for i := 0; i < ints.len(); {
		n := ints.at(i)
		if !yield(strconv.FormatInt(n, 10)) {
			return
		}
		ints, _ = s.ints()
		if i < ints.len() && ints.at(i) == n { // else it was removed, and i is the next one
			i++
		}
	}
}

// Clone returns a copy. O(n).
func (s *Set) Clone() *Set {
	c := &Set{limits: s.limits}
	c.row.form = s.row.form
	members := s.members()
	switch ints, ok := s.ints(); {
	case ok:
		c.row.form = formInts
		c.keep(ints.clone())
	case members != nil:
		c.row.become(&largeSet{members: members.Clone(nil)})
	default:
		c.row.packed = s.row.clone()
	}
	return c
}

// convert leaves the form of integers.
func (s *Set) convert(ints intRow) {
	s.row.packed = packed{}
	var text [20]byte
	for i := range ints.len() {
		s.Add(strconv.AppendInt(text[:0], ints.at(i), 10))
	}
}

// enlarge makes a Dict of the row.
func (s *Set) enlarge() {
	members := NewDict[struct{}]()
	for member := range s.row.strings() {
		members.SetBytes([]byte(member), struct{}{})
	}
	s.row.become(&largeSet{members: members})
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
