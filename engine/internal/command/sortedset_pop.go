package command

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// popRequest is how many members to take from which end of the first sorted
// set that exists. A count of more than there are takes them all.
type popRequest struct {
	keys    [][]byte
	highest bool
	count   int64
}

// zpop makes ZPOPMIN and ZPOPMAX.
func zpop(highest bool) func(c *Ctx) error {
	return func(c *Ctx) error {
		if len(c.Args) > 3 {
			return ErrSyntax
		}
		counted := len(c.Args) == 3
		r := popRequest{highest: highest, count: 1}
		if counted {
			var ok bool
			if r.count, ok = ParseInt(c.Args[2]); !ok || r.count < 0 {
				return ErrPositive
			}
		}
		set, found, err := Read[*ds.SortedSet](c, c.Args[1])
		if err != nil {
			return err
		}
		if !found || r.count == 0 {
			c.Out.Array(0)
			return nil
		}
		n := int(min(r.count, int64(set.Len())))
		// Without a count the one member and its score are a flat pair in
		// RESP3 too.
		nested := counted && c.Out.Proto == 3
		if nested {
			c.Out.Array(n)
		} else {
			c.Out.Array(2 * n)
		}
		r.pop(c, c.Args[1], set, n, nested)
		return nil
	}
}

// pop takes n members, not more than there are, and writes each with its
// score, as a pair if nested.
func (r popRequest) pop(c *Ctx, key []byte, set *ds.SortedSet, n int, nested bool) {
	from, to, event := 0, n-1, eventZPopMin
	left := n
	write := func(member string, score float64) (more bool) {
		if nested {
			c.Out.Array(2)
		}
		c.Out.BulkString(member)
		c.Out.Double(score)
		left--
		return left > 0
	}
	// Ranging over a variable that is one or the other would allocate both.
	if r.highest {
		event = eventZPopMax
		from, to = set.Len()-n, set.Len()-1
		set.Descend(to)(write)
	} else {
		set.Ascend(0)(write)
	}
	set.RemoveRange(from, to)
	Shrunk(c, key, set, event)
}

// first finds the first key that holds a sorted set; set is nil if none does.
// A key of another type is an error, except for a client that is already
// waiting: what came into the key is not for it, and it waits on.
func (r popRequest) first(c *Ctx) (key []byte, set *ds.SortedSet, err error) {
	key, set, _, err = ReadFirst[*ds.SortedSet](c, r.keys)
	return key, set, err
}

// parseMultiPop reads numkeys key [key ...] MIN|MAX [COUNT count].
func parseMultiPop(args [][]byte) (r popRequest, err error) {
	keys, ok := ParseInt(args[0])
	if !ok || keys < 1 {
		return r, Error("ERR numkeys should be greater than 0")
	}
	if keys >= int64(len(args)-1) {
		return r, ErrSyntax
	}
	r.keys, r.count = args[1:1+keys], 1
	args = args[1+keys:]
	switch {
	case Is(args[0], "MAX"):
		r.highest = true
	case !Is(args[0], "MIN"):
		return r, ErrSyntax
	}
	if len(args) == 1 {
		return r, nil
	}
	if len(args) == 2 || !Is(args[1], "COUNT") {
		return r, ErrSyntax
	}
	if r.count, ok = ParseInt(args[2]); !ok || r.count < 1 {
		return r, Error("ERR count should be greater than 0")
	}
	if len(args) > 3 {
		return r, ErrSyntax
	}
	return r, nil
}

func zmpop(c *Ctx) error {
	r, err := parseMultiPop(c.Args[1:])
	if err != nil {
		return err
	}
	key, set, err := r.first(c)
	if err != nil {
		return err
	}
	if set == nil {
		c.Out.NullArray()
		return nil
	}
	r.popNamed(c, key, set)
	return nil
}

// popNamed replies with the key and a pair for each member taken from it.
func (r popRequest) popNamed(c *Ctx, key []byte, set *ds.SortedSet) {
	n := int(min(r.count, int64(set.Len())))
	c.Out.Array(2)
	c.Out.Bulk(key)
	c.Out.Array(n)
	r.pop(c, key, set, n, true)
	c.Propagate(3).Word(r.popCommand()).Bytes(key).Int(int64(n))
}

// popCommand is the command that takes from the same end of a set that it names.
func (r popRequest) popCommand() string {
	if r.highest {
		return "ZPOPMAX"
	}
	return "ZPOPMIN"
}

const popComplexity = "O(log(N)*M) for M members taken out of N."
