package command

import (
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// rangeRequest is a call of one of the commands that read a range: which part,
// from which end, and how to reply.
type rangeRequest struct {
	interval
	reverse       bool
	withScores    bool
	offset, limit int64 // LIMIT; a negative limit is none
}

// rangeForm is what a command's name says about its range before any option.
type rangeForm struct {
	anyOrder bool // BYSCORE, BYLEX and REV may say more; otherwise they are no options
	storing  bool // WITHSCORES is no option: scores are always stored
	by       sortedBy
	reverse  bool
}

// parseRange reads low, high and the options: args without the name and keys.
func parseRange(form rangeForm, args [][]byte) (rangeRequest, error) {
	r := rangeRequest{reverse: form.reverse, limit: -1}
	r.by = form.by
	anyOrder, anyDirection := form.anyOrder, form.anyOrder
	for i := 2; i < len(args); i++ {
		switch arg := args[i]; {
		case !form.storing && Is(arg, "WITHSCORES"):
			r.withScores = true
		case i+2 < len(args) && Is(arg, "LIMIT"):
			if err := r.parseLimit(args[i+1], args[i+2]); err != nil {
				return r, err
			}
			i += 2
		case anyDirection && Is(arg, "REV"):
			r.reverse, anyDirection = true, false
		case anyOrder && Is(arg, "BYLEX"):
			r.by, anyOrder = byBytes, false
		case anyOrder && Is(arg, "BYSCORE"):
			r.by, anyOrder = byScore, false
		default:
			return r, ErrSyntax
		}
	}
	return r, r.parseEnds(args[0], args[1])
}

func (r *rangeRequest) parseLimit(offset, limit []byte) error {
	var offsetOK, limitOK bool
	r.offset, offsetOK = ParseInt(offset)
	r.limit, limitOK = ParseInt(limit)
	if !offsetOK || !limitOK {
		return ErrNotInteger
	}
	return nil
}

// parseEnds reads the two ends, which a reversed range, except one of ranks,
// has in reversed order, once the options are known.
func (r *rangeRequest) parseEnds(low, high []byte) (err error) {
	if r.limit != -1 && r.by == byRank {
		return Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	}
	if r.withScores && r.by == byBytes {
		return Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	if r.reverse && r.by != byRank {
		low, high = high, low
	}
	r.interval, err = parseInterval(r.by, low, high)
	return err
}

// ranks is the part of set asked for as ranks, both inclusive, LIMIT applied;
// to < from if it is empty.
func (r *rangeRequest) ranks(set *ds.SortedSet) (from, to int) {
	from, to = r.interval.ranks(set)
	if r.by == byRank {
		if r.reverse {
			from, to = set.Len()-1-to, set.Len()-1-from
		}
		return from, to
	}
	n := int64(to - from + 1)
	if r.offset < 0 || r.offset >= n {
		return 0, -1
	}
	n -= r.offset
	if r.limit >= 0 {
		n = min(n, r.limit)
	}
	if r.reverse {
		to -= int(r.offset)
		return to - int(n) + 1, to
	}
	from += int(r.offset)
	return from, from + int(n) - 1
}

// zrange makes the commands that reply with a range.
func zrange(form rangeForm) func(c *Ctx) error {
	return func(c *Ctx) error {
		request, err := parseRange(form, c.Args[2:])
		if err != nil {
			return err
		}
		set, found, err := Read[*ds.SortedSet](c, c.Args[1])
		if err != nil {
			return err
		}
		if !found {
			c.Out.Array(0)
			return nil
		}
		from, to := request.ranks(set)
		writeRange(c, set, from, to, request.reverse, request.withScores)
		return nil
	}
}

// writeRange replies with the members from one rank to another, both
// inclusive, from the last one if reverse.
func writeRange(c *Ctx, set *ds.SortedSet, from, to int, reverse, withScores bool) {
	left := max(to-from+1, 0)
	writeMembersHeader(c, left, withScores)
	if left == 0 {
		return
	}
	members := set.Ascend(from)
	if reverse {
		members = set.Descend(to)
	}
	for member, score := range members {
		writeMember(c, member, score, withScores)
		if left--; left == 0 {
			return
		}
	}
}

// writeMembersHeader announces n members for writeMember. With scores RESP3
// has a pair for each, RESP2 one flat array.
func writeMembersHeader(c *Ctx, n int, withScores bool) {
	if withScores && c.Out.Proto != 3 {
		n *= 2
	}
	c.Out.Array(n)
}

func writeMember(c *Ctx, member string, score float64, withScore bool) {
	if !withScore {
		c.Out.BulkString(member)
		return
	}
	if c.Out.Proto == 3 {
		c.Out.Array(2)
	}
	c.Out.BulkString(member)
	c.Out.Double(score)
}

func zrangestore(c *Ctx) error {
	request, err := parseRange(rangeForm{anyOrder: true, storing: true}, c.Args[3:])
	if err != nil {
		return err
	}
	c.Space.Reading = true
	source, found, err := Read[*ds.SortedSet](c, c.Args[2])
	if err != nil {
		return err
	}
	result := ds.NewSortedSet()
	result.Within(&c.Space.Limits)
	if found {
		from, to := request.ranks(source)
		if request.by == byRank && to-from >= c.Space.Limits.SortedSetEntries {
			result.Enlarge() // of other ranges Redis does not know before how long they are
		}
		for member, score := range source.Ascend(from) {
			if from > to {
				break
			}
			result.Add(member, score)
			from++
		}
	}
	storeResult(c, c.Args[1], result, eventZRangeStore)
	return nil
}

// zcount makes ZCOUNT and ZLEXCOUNT.
func zcount(by sortedBy) func(c *Ctx) error {
	return func(c *Ctx) error {
		in, err := parseInterval(by, c.Args[2], c.Args[3])
		if err != nil {
			return err
		}
		set, found, err := Read[*ds.SortedSet](c, c.Args[1])
		if err != nil {
			return err
		}
		n := 0
		if found {
			from, to := in.ranks(set)
			n = max(to-from+1, 0)
		}
		c.Out.Int(int64(n))
		return nil
	}
}

// zremrange makes the commands that remove a range.
func zremrange(by sortedBy, event keyspace.Event) func(c *Ctx) error {
	return func(c *Ctx) error {
		in, err := parseInterval(by, c.Args[2], c.Args[3])
		if err != nil {
			return err
		}
		set, found, err := Read[*ds.SortedSet](c, c.Args[1])
		if err != nil {
			return err
		}
		removed := 0
		if found {
			removed = set.RemoveRange(in.ranks(set))
		}
		if removed > 0 {
			Shrunk(c, c.Args[1], set, event)
		}
		c.Out.Int(int64(removed))
		return nil
	}
}

const (
	rangeComplexity = "O(log(N)+M) for M members returned out of N."
	cutComplexity   = "O(log(N)+M*log(N)) for M members removed out of N."
)

var sortedSetRangeSpecs = []Spec{
	{
		Name: "zcount", Arity: 4, Flags: ReadOnly | Fast, Keys: Key(1), Group: "sorted-set", Since: "2.0.0",
		Summary: "Counts the members whose scores lie between two scores.", Complexity: "O(log(N))",
		Run: zcount(byScore),
	},
	{
		Name: "zlexcount", Arity: 4, Flags: ReadOnly | Fast, Keys: Key(1), Group: "sorted-set", Since: "2.8.9",
		Summary: "Counts the members between two strings, where all scores are equal.", Complexity: "O(log(N))",
		Run: zcount(byBytes),
	},
	{
		Name: "zrange", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary: "Returns the members between two positions, scores or strings.", Complexity: rangeComplexity,
		Run: zrange(rangeForm{anyOrder: true}),
	},
	{
		Name: "zrangebylex", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "2.8.9",
		Summary: "Returns the members between two strings, where all scores are equal.", Complexity: rangeComplexity,
		Run: zrange(rangeForm{by: byBytes}),
	},
	{
		Name: "zrangebyscore", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "1.0.5",
		Summary: "Returns the members between two scores.", Complexity: rangeComplexity,
		Run: zrange(rangeForm{by: byScore}),
	},
	{
		Name: "zrangestore", Arity: -5, Flags: Write | DenyOOM, Keys: Keys{1, 2, 1}, Group: "sorted-set", Since: "6.2.0",
		Summary: "Stores the members between two positions, scores or strings in another key.", Complexity: "O(log(N)+M*log(M)) for M members stored out of N.",
		Run: zrangestore,
	},
	{
		Name: "zremrangebylex", Arity: 4, Flags: Write, Keys: Key(1), Group: "sorted-set", Since: "2.8.9",
		Summary: "Removes the members between two strings, where all scores are equal.", Complexity: cutComplexity,
		Run: zremrange(byBytes, eventZRemRangeByLex),
	},
	{
		Name: "zremrangebyrank", Arity: 4, Flags: Write, Keys: Key(1), Group: "sorted-set", Since: "2.0.0",
		Summary: "Removes the members between two positions.", Complexity: cutComplexity,
		Run: zremrange(byRank, eventZRemRangeByRank),
	},
	{
		Name: "zremrangebyscore", Arity: 4, Flags: Write, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary: "Removes the members between two scores.", Complexity: cutComplexity,
		Run: zremrange(byScore, eventZRemRangeByScore),
	},
	{
		Name: "zrevrange", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "1.2.0",
		Summary: "Returns the members between two positions, counted from the highest score.", Complexity: rangeComplexity,
		Run: zrange(rangeForm{reverse: true}),
	},
	{
		Name: "zrevrangebylex", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "2.8.9",
		Summary: "Returns the members between two strings, the last first, where all scores are equal.", Complexity: rangeComplexity,
		Run: zrange(rangeForm{by: byBytes, reverse: true}),
	},
	{
		Name: "zrevrangebyscore", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "sorted-set", Since: "2.2.0",
		Summary: "Returns the members between two scores, the highest first.", Complexity: rangeComplexity,
		Run: zrange(rangeForm{by: byScore, reverse: true}),
	},
}
