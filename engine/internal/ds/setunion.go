package ds

// UnionOf returns a new set of all members of these, within limits. It takes the form that it
// would have if they had been added one by one; but the table of the largest set is copied as it
// is, without hashing anything, and the bytes of members are shared wherever they are strings of
// their own. O(n); a million members take 30 ms.
func UnionOf(sets []*Set, limits *Limits) *Set {
	var largest *Set
	for _, set := range sets {
		if set.mustBeTable(limits) && (largest == nil || set.Len() > largest.Len()) {
			largest = set
		}
	}
	union := NewSet()
	union.Within(limits)
	if largest != nil {
		union.row.become(&largeSet{members: largest.members().Clone(nil)})
	}
	for _, set := range sets {
		if set != largest {
			union.unite(set)
		}
	}
	return union
}

// mustBeTable reports whether the set is a Dict, and would be no array of integers if it were
// made now. Of a Dict that is as small as one, the members say.
func (s *Set) mustBeTable(limits *Limits) bool {
	members := s.members()
	if members == nil || s.Len() > limits.SetIntegers {
		return members != nil
	}
	for member := range members.All() {
		if _, isInt := ParseInt([]byte(member)); !isInt {
			return true
		}
	}
	return false
}

// unite adds all members of another set.
func (s *Set) unite(other *Set) {
	var text []byte
	theirs := other.members()
	for member := range other.All() {
		if members := s.members(); members != nil && theirs != nil {
			members.Set(member, struct{}{}) // the same string: what lies in a row would hold the row
			continue
		}
		text = append(text[:0], member...)
		s.Add(text)
	}
}
