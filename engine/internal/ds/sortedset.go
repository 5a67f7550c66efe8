package ds

import (
	"iter"
	"math/rand/v2"
	"strings"
)

// SortedSet holds distinct members, each with a score, ordered by score and, where
// scores are equal, by the bytes of the member. The rank of a member is its position
// in that order, from 0. Scores may be infinite but never NaN, which has no place in
// an order: callers refuse it before.
//
// While it is small, it is one packed row (sortedrow.go), and all is O(n). Afterwards, for
// good, the members are held twice: in a Dict, which knows the score of a member, and in a
// counted B+tree (ranktree.go), which knows the order. The strings are shared.
// A B+tree rather than the usual skip list: it needs a third of the memory, leaves the
// collector few objects to look at, and reads neighbours from one place.
type SortedSet struct {
	row    sortedRow
	limits *Limits // nil once it has been too large for a listpack
}

type largeSorted struct {
	scores Dict[float64]
	order  rankTree
}

// NewSortedSet returns an empty SortedSet.
func NewSortedSet() *SortedSet { return &SortedSet{limits: &usual} }

// NewLargeSortedSet returns an empty SortedSet that keeps the sign of every zero,
// as the sorted sets do in which Redis combines others. See Compact.
func NewLargeSortedSet() *SortedSet { return &SortedSet{} }

// Compact returns the set as Redis stores one that it has built at large: as if
// its members had been added to an empty one, if they fit into a listpack, and as
// it is otherwise. O(n) in what fits into a listpack.
func (z *SortedSet) Compact(limits *Limits) *SortedSet {
	if z.Len() > limits.SortedSetEntries {
		return z
	}
	compact := NewSortedSet()
	compact.Within(limits)
	for member, score := range z.Ascend(0) {
		compact.Add(member, score)
	}
	if compact.limits == nil {
		return z
	}
	return compact
}

// Enlarge makes the set leave the listpack encoding for good.
func (z *SortedSet) Enlarge() { z.limits = nil }

// Within sets the limits for what is written from now on.
func (z *SortedSet) Within(limits *Limits) {
	if z.limits != nil {
		z.limits = limits
	}
}

// Len returns the number of members.
func (z *SortedSet) Len() int {
	if z.row.large() != nil {
		return z.row.large().scores.Len()
	}
	return int(z.row.count)
}

// Packed reports whether the set is one row: whoever keeps one of its members holds all of it.
func (z *SortedSet) Packed() bool { return z.row.form != formLarge }

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for such a set.
func (z *SortedSet) Encoding() string {
	if z.limits == nil {
		return "skiplist"
	}
	return "listpack"
}

// Score returns the score of member, and whether it is there. No allocation.
func (z *SortedSet) Score(member []byte) (float64, bool) { return z.ScoreString(view(member)) }

// ScoreString is Score for a string. O(1).
func (z *SortedSet) ScoreString(member string) (float64, bool) {
	if z.row.large() != nil {
		return z.row.large().scores.GetString(member)
	}
	i, ok := z.row.find(member)
	return i.score, ok
}

// Expect makes room for n members, which at gives, if the set is empty: they are about to
// be added.
func (z *SortedSet) Expect(n int, at func(i int) (member []byte, score float64)) {
	if z.row.form == formLarge || z.row.length > 0 {
		return
	}
	size := 0
	for i := 0; i < n && size <= rowBytes; i++ {
		member, score := at(i)
		size += z.row.elementSize(len(member), score)
	}
	z.row.expect(size)
}

// Add adds member, or gives it a new score, and says whether it is new. O(log n).
//
// As in Redis, 0 and -0 are equal: a member that has the one does not take the other,
// and the sign of a new zero is kept only where Redis leaves the listpack encoding,
// which writes zero as an integer.
func (z *SortedSet) Add(member string, score float64) (inserted bool) {
	return z.add(member, score, true)
}

// AddBytes is Add for bytes; they are copied.
func (z *SortedSet) AddBytes(member []byte, score float64) (inserted bool) {
	return z.add(view(member), score, false)
}

// add is Add for a member that may be kept, or that must be copied to be.
func (z *SortedSet) add(member string, score float64, keeps bool) (inserted bool) {
	old, present := z.ScoreString(member)
	if present && old == score {
		return false
	}
	if l := z.limits; l != nil && !present && (z.Len() >= l.SortedSetEntries || len(member) > l.SortedSetBytes) {
		z.limits = nil
	}
	if score == 0 && z.limits != nil {
		score = 0 // drops the sign
	}
	if present {
		z.move(ranked{old, member}, score)
		return false
	}
	if z.row.large() == nil {
		if z.row.insert(ranked{score, member}) {
			return true
		}
		z.enlarge()
	}
	if !keeps {
		member = strings.Clone(member)
	}
	z.row.large().insert(ranked{score, member})
	return true
}

// move gives a member that is there another score.
func (z *SortedSet) move(from ranked, score float64) {
	if z.row.large() == nil {
		i, _ := z.row.find(from.member)
		z.row.remove(i)
		if z.row.insert(ranked{score, from.member}) {
			return
		}
		z.enlarge()
		from.member = strings.Clone(from.member)
	} else {
		from.member = z.row.large().order.remove(from).member // the string that z already holds
	}
	z.row.large().insert(ranked{score, from.member})
}

// insert adds a member that is not in the tree, or gives it another score.
func (l *largeSorted) insert(r ranked) {
	l.scores.Set(r.member, r.score)
	l.order.insert(r)
}

// enlarge leaves the form of a row.
func (z *SortedSet) enlarge() {
	large := &largeSorted{}
	z.row.each(func(i *rowItem) bool {
		large.insert(ranked{i.score, strings.Clone(i.member)})
		return true
	})
	z.row.become(large)
}

// Remove removes member and says whether it was there. O(log n).
func (z *SortedSet) Remove(member []byte) bool { return z.RemoveString(view(member)) }

// RemoveString is Remove for a string.
func (z *SortedSet) RemoveString(member string) bool {
	if z.row.large() == nil {
		i, ok := z.row.find(member)
		if ok {
			z.row.remove(i)
		}
		return ok
	}
	score, ok := z.row.large().scores.DeleteString(member)
	if ok {
		z.row.large().order.remove(ranked{score, member})
	}
	return ok
}

// RemoveRange removes the members with ranks from fromRank to toRank, both included
// and cut to the set, and returns how many there were. O(k log n) for k members.
func (z *SortedSet) RemoveRange(fromRank, toRank int) (removed int) {
	fromRank, toRank = max(fromRank, 0), min(toRank, z.Len()-1)
	if fromRank > toRank {
		return 0
	}
	removed = toRank - fromRank + 1
	switch {
	case z.row.large() == nil:
		z.row.removeRange(fromRank, toRank)
		return removed
	case removed == z.Len():
		z.row.large().scores.Clear()
		z.row.large().order = rankTree{}
		return removed
	}
	for range removed {
		z.row.large().scores.DeleteString(z.row.large().order.removeAt(fromRank).member)
	}
	return removed
}

// Rank returns the rank of member, and whether it is there. O(log n).
func (z *SortedSet) Rank(member []byte) (int, bool) {
	score, ok := z.Score(member)
	if !ok {
		return 0, false
	}
	r := ranked{score, view(member)}
	if z.row.large() == nil {
		return z.row.countWhile(func(x ranked) bool { return x.less(&r) }), true
	}
	return z.row.large().order.countBelow(r), true
}

// At returns the member with the given rank and its score, or "" and 0 if no member
// has that rank. O(log n).
func (z *SortedSet) At(rank int) (member string, score float64) {
	if rank < 0 || rank >= z.Len() {
		return "", 0
	}
	if z.row.large() == nil {
		i := z.row.atRank(rank)
		z.row.shown = true
		return i.member, i.score
	}
	r := z.row.large().order.at(rank)
	return r.member, r.score
}

// Ascend walks over the members from the given rank upwards; a negative rank is 0.
// z must not change meanwhile. O(log n) to begin, O(1) a member.
func (z *SortedSet) Ascend(fromRank int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		fromRank := max(fromRank, 0)
		switch {
		case fromRank >= z.Len():
		case z.row.large() == nil:
			z.row.ascend(fromRank, yield)
		default:
			z.row.large().order.ascend(fromRank, yield)
		}
	}
}

// Descend walks over the members from the given rank downwards; a rank past the end
// is the last. z must not change meanwhile. O(log n) to begin, O(1) a member.
func (z *SortedSet) Descend(fromRank int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		fromRank := min(fromRank, z.Len()-1)
		switch {
		case fromRank < 0:
		case z.row.large() == nil:
			z.row.descend(fromRank, yield)
		default:
			z.row.large().order.descend(fromRank, yield)
		}
	}
}

// CountBelow returns how many members have a score below score, or, with orEqual, not
// above it. It is also the rank of the first member that is not counted. O(log n).
func (z *SortedSet) CountBelow(score float64, orEqual bool) int {
	if z.row.large() == nil {
		return z.row.countWhile(func(x ranked) bool { return x.score < score || orEqual && x.score == score })
	}
	return z.row.large().order.countScoreBelow(score, orEqual)
}

// CountLexBelow returns how many members are below member in byte order, or, with
// orEqual, not above it. It has a meaning only where all scores are equal. O(log n).
func (z *SortedSet) CountLexBelow(member string, orEqual bool) int {
	if z.row.large() == nil {
		return z.row.countWhile(func(x ranked) bool { return x.member < member || orEqual && x.member == member })
	}
	return z.row.large().order.countMemberBelow(member, orEqual)
}

// Random returns a random member, each with the same probability; ok is false if
// there is none. O(1).
func (z *SortedSet) Random(r *rand.Rand) (member string, score float64, ok bool) {
	switch {
	case z.row.large() != nil:
		return z.row.large().scores.Random(r)
	case z.row.count == 0:
		return "", 0, false
	}
	i := z.row.random(r)
	z.row.shown = true
	return i.member, i.score, true
}

// Scan is one step of a walk in no particular order; see Dict.Scan. A packed row is
// visited in one step.
func (z *SortedSet) Scan(cursor uint64, visit func(member string, score float64)) (next uint64) {
	if z.row.large() != nil {
		return z.row.large().scores.Scan(cursor, visit)
	}
	z.row.each(func(i *rowItem) bool {
		visit(i.member, i.score)
		return true
	})
	return 0
}

// All walks over all members in ascending order; it is Ascend(0).
func (z *SortedSet) All() iter.Seq2[string, float64] { return z.Ascend(0) }

// Clone returns a copy. O(n).
func (z *SortedSet) Clone() *SortedSet {
	c := &SortedSet{limits: z.limits}
	if large := z.row.large(); large != nil {
		c.row.become(&largeSorted{scores: *large.scores.Clone(nil), order: large.order.clone()})
	} else {
		c.row.packed = z.row.clone()
	}
	return c
}
