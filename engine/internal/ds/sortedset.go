package ds

import (
	"iter"
	"math/rand/v2"
)

// SortedSet holds distinct members, each with a score, ordered by score and, where
// scores are equal, by the bytes of the member. The rank of a member is its position
// in that order, from 0. Scores may be infinite but never NaN, which has no place in
// an order: callers refuse it before.
//
// The members are held twice: in a Dict, which knows the score of a member, and in a
// counted B+tree (ranktree.go), which knows the order. The strings are shared.
// A B+tree rather than the usual skip list: it needs a third of the memory, leaves the
// collector few objects to look at, and reads neighbours from one place.
type SortedSet struct {
	scores Dict[float64]
	order  rankTree
	limits *Limits // nil once it has been too large for a listpack
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
func (z *SortedSet) Len() int { return z.scores.Len() }

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for such a set.
func (z *SortedSet) Encoding() string {
	if z.limits == nil {
		return "skiplist"
	}
	return "listpack"
}

// Score returns the score of member, and whether it is there. O(1), no allocation.
func (z *SortedSet) Score(member []byte) (float64, bool) { return z.scores.Get(member) }

// ScoreString is Score for a string.
func (z *SortedSet) ScoreString(member string) (float64, bool) { return z.scores.GetString(member) }

// Add adds member, or gives it a new score, and says whether it is new. O(log n).
//
// As in Redis, 0 and -0 are equal: a member that has the one does not take the other,
// and the sign of a new zero is kept only where Redis leaves the listpack encoding,
// which writes zero as an integer.
func (z *SortedSet) Add(member string, score float64) (inserted bool) {
	old, present := z.scores.GetString(member)
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
		member = z.order.remove(ranked{old, member}).member // the string that z already holds
	}
	z.scores.Set(member, score)
	z.order.insert(ranked{score, member})
	return !present
}

// Remove removes member and says whether it was there. O(log n).
func (z *SortedSet) Remove(member []byte) bool { return z.RemoveString(view(member)) }

// RemoveString is Remove for a string.
func (z *SortedSet) RemoveString(member string) bool {
	score, ok := z.scores.DeleteString(member)
	if ok {
		z.order.remove(ranked{score, member})
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
	if removed = toRank - fromRank + 1; removed == z.Len() {
		z.scores.Clear()
		z.order = rankTree{}
		return removed
	}
	for range removed {
		z.scores.DeleteString(z.order.removeAt(fromRank).member)
	}
	return removed
}

// Rank returns the rank of member, and whether it is there. O(log n).
func (z *SortedSet) Rank(member []byte) (int, bool) {
	score, ok := z.scores.Get(member)
	if !ok {
		return 0, false
	}
	return z.order.countBelow(ranked{score, view(member)}), true
}

// At returns the member with the given rank and its score, or "" and 0 if no member
// has that rank. O(log n).
func (z *SortedSet) At(rank int) (member string, score float64) {
	if rank < 0 || rank >= z.Len() {
		return "", 0
	}
	r := z.order.at(rank)
	return r.member, r.score
}

// Ascend walks over the members from the given rank upwards; a negative rank is 0.
// z must not change meanwhile. O(log n) to begin, O(1) a member.
func (z *SortedSet) Ascend(fromRank int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		if fromRank := max(fromRank, 0); fromRank < z.Len() {
			z.order.ascend(fromRank, yield)
		}
	}
}

// Descend walks over the members from the given rank downwards; a rank past the end
// is the last. z must not change meanwhile. O(log n) to begin, O(1) a member.
func (z *SortedSet) Descend(fromRank int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		if fromRank := min(fromRank, z.Len()-1); fromRank >= 0 {
			z.order.descend(fromRank, yield)
		}
	}
}

// CountBelow returns how many members have a score below score, or, with orEqual, not
// above it. It is also the rank of the first member that is not counted. O(log n).
func (z *SortedSet) CountBelow(score float64, orEqual bool) int {
	return z.order.countScoreBelow(score, orEqual)
}

// CountLexBelow returns how many members are below member in byte order, or, with
// orEqual, not above it. It has a meaning only where all scores are equal. O(log n).
func (z *SortedSet) CountLexBelow(member string, orEqual bool) int {
	return z.order.countMemberBelow(member, orEqual)
}

// Random returns a random member, each with the same probability; ok is false if
// there is none. O(1).
func (z *SortedSet) Random(r *rand.Rand) (member string, score float64, ok bool) {
	return z.scores.Random(r)
}

// Scan is one step of a walk in no particular order; see Dict.Scan.
func (z *SortedSet) Scan(cursor uint64, visit func(member string, score float64)) (next uint64) {
	return z.scores.Scan(cursor, visit)
}

// All walks over all members in ascending order; it is Ascend(0).
func (z *SortedSet) All() iter.Seq2[string, float64] { return z.Ascend(0) }

// Clone returns a copy. O(n).
func (z *SortedSet) Clone() *SortedSet {
	return &SortedSet{scores: *z.scores.Clone(nil), order: z.order.clone(), limits: z.limits}
}
