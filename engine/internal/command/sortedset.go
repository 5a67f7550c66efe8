package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Sorted sets. One file per concept:
//
//	sortedset.go           members: add, remove, score, rank
//	sortedset_range.go     ranges by rank, score or bytes: read, count, store, remove
//	sortedset_interval.go  how a call writes such a range, and what ranks it means
//	sortedset_store.go     union, intersection and difference of several sets
//	sortedset_pop.go       the lowest and highest members taken out
//	sortedset_blocking.go  the same by waiting, and the records of both
//	sortedset_random.go    random members, and the scan
//
// The container knows the rank of everything, so whatever a call says about
// scores or bytes is turned into two ranks first, and there is one function
// each that replies, counts, copies and removes a range of ranks.

// ErrScoreNaN is the answer to adding infinity to minus infinity.
const ErrScoreNaN Error = "ERR resulting score is not a number (NaN)"

// addOptions are the options of ZADD.
type addOptions struct {
	onlyNew, onlyPresent  bool // NX, XX
	onlyGreater, onlyLess bool // GT, LT
	countChanged          bool // CH
	increment             bool // INCR
}

// set takes in one option and reports whether arg was one.
func (o *addOptions) set(arg []byte) bool {
	switch {
	case Is(arg, "NX"):
		o.onlyNew = true
	case Is(arg, "XX"):
		o.onlyPresent = true
	case Is(arg, "GT"):
		o.onlyGreater = true
	case Is(arg, "LT"):
		o.onlyLess = true
	case Is(arg, "CH"):
		o.countChanged = true
	case Is(arg, "INCR"):
		o.increment = true
	default:
		return false
	}
	return true
}

// parseAdd reads the options of a ZADD and returns the arguments after them:
// scores and members in turn, each score a float.
func parseAdd(args [][]byte) (o addOptions, pairs [][]byte, err error) {
	pairs = args[2:]
	for len(pairs) > 0 && o.set(pairs[0]) {
		pairs = pairs[1:]
	}
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		return o, nil, ErrSyntax
	case o.onlyNew && o.onlyPresent:
		return o, nil, Error("ERR XX and NX options at the same time are not compatible")
	case (o.onlyGreater && o.onlyNew) || (o.onlyLess && o.onlyNew) || (o.onlyGreater && o.onlyLess):
		return o, nil, Error("ERR GT, LT, and/or NX options at the same time are not compatible")
	case o.increment && len(pairs) > 2:
		return o, nil, Error("ERR INCR option supports a single increment-element pair")
	}
	for i := 0; i < len(pairs); i += 2 {
		if _, ok := ParseFloat(pairs[i]); !ok {
			return o, nil, ErrNotFloat
		}
	}
	return o, pairs, nil
}

func zadd(c *Ctx) error {
	options, pairs, err := parseAdd(c.Args)
	if err != nil {
		return err
	}
	return addMembers(c, options, pairs)
}

// zincrby knows the options of ZADD, to which its own arguments leave no room:
// one in the place of the number is an error of syntax.
func zincrby(c *Ctx) error {
	options, pairs, err := parseAdd(c.Args)
	if err != nil {
		return err
	}
	options.increment = true
	return addMembers(c, options, pairs)
}

func (o addOptions) event() keyspace.Event {
	if o.increment {
		return eventZIncr
	}
	return eventZAdd
}

// addMembers carries out ZADD and ZINCRBY; pairs has been checked.
func addMembers(c *Ctx, o addOptions, pairs [][]byte) error {
	set, found, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found && !o.onlyPresent {
		set = ds.NewSortedSet()
		c.DB.Put(c.Args[1], set, c.NowMs())
		set.Expect(len(pairs)/2, func(i int) ([]byte, float64) {
			score, _ := ParseFloat(pairs[2*i])
			return pairs[2*i+1], score
		})
	}
	var added, moved int
	var last addition
	for i := 0; i < len(pairs) && set != nil; i += 2 {
		score, _ := ParseFloat(pairs[i])
		if last, err = addMember(set, pairs[i+1], score, o); err != nil {
			return err
		}
		added += oneIf(last.added)
		moved += oneIf(last.moved)
	}
	if added+moved > 0 {
		c.Touch(c.Args[1], o.event())
	}
	switch {
	case o.increment && !last.allowed:
		c.Out.Null()
	case o.increment:
		c.Out.Double(last.score)
	case o.countChanged:
		c.Out.Int(int64(added + moved))
	default:
		c.Out.Int(int64(added))
	}
	return nil
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// addition is what became of one member.
type addition struct {
	allowed bool    // the options did not forbid it
	added   bool    // it is new
	moved   bool    // it was there with another score
	score   float64 // the score that it has now
}

// addMember adds one member, or gives it another score, as far as the options
// allow it. The only error is a score that is not a number.
func addMember(set *ds.SortedSet, member []byte, score float64, o addOptions) (addition, error) {
	old, present := set.Score(member)
	if !present {
		if o.onlyPresent {
			return addition{}, nil
		}
		set.AddBytes(member, score)
		return addition{allowed: true, added: true, score: score}, nil
	}
	if o.onlyNew {
		return addition{}, nil
	}
	if o.increment {
		if score += old; math.IsNaN(score) {
			return addition{}, ErrScoreNaN
		}
	}
	if (o.onlyLess && score >= old) || (o.onlyGreater && score <= old) {
		return addition{}, nil
	}
	if score == old {
		return addition{allowed: true, score: score}, nil
	}
	set.AddBytes(member, score)
	return addition{allowed: true, moved: true, score: score}, nil
}

func zrem(c *Ctx) error {
	set, found, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	removed := 0
	if found {
		for _, member := range c.Args[2:] {
			removed += oneIf(set.Remove(member))
		}
	}
	if removed > 0 {
		Shrunk(c, c.Args[1], set, eventZRem)
	}
	c.Out.Int(int64(removed))
	return nil
}

func zcard(c *Ctx) error {
	set, found, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	c.Out.Int(int64(set.Len()))
	return nil
}

func zscore(c *Ctx) error {
	set, found, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	writeScore(c, set, found, c.Args[2])
	return nil
}

func zmscore(c *Ctx) error {
	set, found, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		writeScore(c, set, found, member)
	}
	return nil
}

// writeScore replies with the score of member, or null if it is not in set or
// there is no set.
func writeScore(c *Ctx, set *ds.SortedSet, found bool, member []byte) {
	if found {
		if score, ok := set.Score(member); ok {
			c.Out.Double(score)
			return
		}
	}
	c.Out.Null()
}

// zrank makes ZRANK, or ZREVRANK, which counts from the highest score.
func zrank(reverse bool) func(c *Ctx) error {
	return func(c *Ctx) error {
		set, found, err := Read[*ds.SortedSet](c, c.Args[1])
		if err != nil {
			return err
		}
		if found {
			var rank int
			if rank, found = set.Rank(c.Args[2]); reverse {
				rank = set.Len() - 1 - rank
			}
			if found {
				c.Out.Int(int64(rank))
				return nil
			}
		}
		c.Out.Null()
		return nil
	}
}

var sortedSetSpecs = []Spec{
	{
		Name: "zadd", Arity: -4, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary:    "Adds members with their scores, or changes the scores of those present. Creates the key if it does not exist.",
		Complexity: "O(log(N)) for each member, with N members in the sorted set.", Run: zadd,
	},
	{
		Name: "zcard", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary: "Returns the number of members.", Complexity: "O(1)", Run: zcard,
	},
	{
		Name: "zincrby", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary:    "Adds to the score of a member, which starts at 0 if it is new.",
		Complexity: "O(log(N)), with N members in the sorted set.", Run: zincrby,
	},
	{
		Name: "zmscore", Arity: -3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "sorted-set", Since: "6.2.0",
		Summary: "Returns the scores of several members.", Complexity: "O(N) for N members asked for.", Run: zmscore,
	},
	{
		Name: "zrank", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "sorted-set", Since: "2.0.0",
		Summary:    "Returns the position of a member in ascending order of scores, from 0.",
		Complexity: "O(log(N)), with N members in the sorted set.", Run: zrank(false),
	},
	{
		Name: "zrem", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary:    "Removes members. Deletes the key with its last member.",
		Complexity: "O(M*log(N)) for M members out of N.", Run: zrem,
	},
	{
		Name: "zrevrank", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "sorted-set", Since: "2.0.0",
		Summary:    "Returns the position of a member in descending order of scores, from 0.",
		Complexity: "O(log(N)), with N members in the sorted set.", Run: zrank(true),
	},
	{
		Name: "zscore", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary: "Returns the score of a member.", Complexity: "O(1)", Run: zscore,
	},
}
