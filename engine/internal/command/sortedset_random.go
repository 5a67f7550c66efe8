package command

import (
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

func zrandmember(c *Ctx) error {
	if len(c.Args) > 2 {
		return zrandmemberCount(c)
	}
	set, found, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Null()
		return nil
	}
	member, _, _ := set.Random(c.Rand)
	c.Out.BulkString(member)
	return nil
}

// parseRandomCount reads [count [WITHSCORES]].
func parseRandomCount(args [][]byte) (n int64, withScores bool, err error) {
	n, ok := ParseInt(args[0])
	switch {
	case !ok:
		return 0, false, ErrNotInteger
	case n < -maxDraws:
		return 0, false, ErrCountRange
	case len(args) > 2 || (len(args) == 2 && !Is(args[1], "WITHSCORES")):
		return 0, false, ErrSyntax
	}
	withScores = len(args) == 2
	if withScores && (n < -math.MaxInt64/2 || n > math.MaxInt64/2) {
		return 0, false, ErrOutOfRange
	}
	return n, withScores, nil
}

// zrandmemberCount is ZRANDMEMBER with a count: so many different members, or,
// if it is negative, so many choices, each out of all members.
func zrandmemberCount(c *Ctx) error {
	n, withScores, err := parseRandomCount(c.Args[2:])
	if err != nil {
		return err
	}
	set, found, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	switch {
	case !found || n == 0:
		c.Out.Array(0)
	case n < 0:
		writeMembersHeader(c, int(-n), withScores)
		for range -n {
			member, score, _ := set.Random(c.Rand)
			writeMember(c, member, score, withScores)
		}
	case n >= int64(set.Len()):
		writeRange(c, set, 0, set.Len()-1, true, withScores)
	default:
		writeSample(c, set, int(n), withScores)
	}
	return nil
}

// writeSample replies with n different members, n below the size of set. It
// shuffles the ranks, but only as far as n, and keeps only those that are out
// of place: O(n) memory and O(n log N) time however large set is.
func writeSample(c *Ctx, set *ds.SortedSet, n int, withScores bool) {
	writeMembersHeader(c, n, withScores)
	displaced := make(map[int]int, n)
	at := func(i int) int {
		if rank, ok := displaced[i]; ok {
			return rank
		}
		return i
	}
	for i := range n {
		j := i + c.Rand.IntN(set.Len()-i)
		rank := at(j)
		displaced[j] = at(i)
		member, score := set.At(rank)
		writeMember(c, member, score, withScores)
	}
}

func zscan(c *Ctx) error {
	return scanCollection(c, 2, func(set *ds.SortedSet, cursor uint64, emit func(name, value string)) uint64 {
		if set.Encoding() != "listpack" {
			return set.Scan(cursor, func(member string, score float64) { emit(member, resp.FormatDouble(score)) })
		}
		for member, score := range set.All() {
			emit(member, formatCompact(score))
		}
		return 0
	})
}

// formatCompact is a score as it stands in a listpack of Redis, where a whole
// number, up to half of what 64 bits hold, is an integer.
func formatCompact(score float64) string {
	if math.Abs(score) <= math.MaxInt64/2 && score == math.Trunc(score) {
		return strconv.FormatInt(int64(score), 10)
	}
	return resp.FormatDouble(score)
}

// randomSortedSetSpecs are the commands whose replies have no order.
var randomSortedSetSpecs = []Spec{
	{
		Name: "zrandmember", Arity: -2, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "6.2.0",
		Summary: "Returns one or several random members.", Complexity: "O(N) for N members returned.", Run: zrandmember,
	},
	{
		Name: "zscan", Arity: -3, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "2.8.0",
		Summary:    "Walks the members and their scores in steps, with a cursor.",
		Complexity: "O(1) for every call. O(N) for a complete walk, with N members in the sorted set.", Run: zscan,
	},
}
