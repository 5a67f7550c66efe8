package command

import (
	"iter"
	"math/rand/v2"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// ErrCountRange is the answer to a count that is out of range; the range it
// names is Redis's, ours is narrower (maxDraws).
const ErrCountRange Error = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"

// signedCount reads the count of SRANDMEMBER and its relatives: positive for
// that many distinct elements, negative for that many with repetition.
func (c *Ctx) signedCount(i int) (int64, error) {
	count, err := c.Int(i)
	if err == nil && count < -maxDraws {
		err = ErrCountRange
	}
	return count, err
}

// maxDraws bounds a reply that a client could otherwise make as large as it
// likes, whatever the size of the collection: draws with repetition.
const maxDraws = 1 << 24

// distinct visits n of size elements, each subset of n with the same
// probability; n must not exceed size. Few of many are drawn one by one, and
// drawn again when they come twice, which happens to every third at most;
// otherwise all are walked over once, each being taken with the probability
// that it takes to end up with n. The second way keeps the order of the walk.
func distinct(
	r *rand.Rand, n, size int, all iter.Seq2[string, string],
	draw func(r *rand.Rand) (name, value string, ok bool), visit func(name, value string),
) {
	if n < size/3 {
		drawn := make(map[string]struct{}, n)
		for len(drawn) < n {
			name, value, _ := draw(r)
			if _, again := drawn[name]; again {
				continue
			}
			drawn[name] = struct{}{}
			visit(name, value)
		}
		return
	}
	for name, value := range all {
		if n == 0 {
			return
		}
		if r.IntN(size) < n {
			visit(name, value)
			n--
		}
		size--
	}
}

// distinctMembers is distinct for a set.
func distinctMembers(r *rand.Rand, set *ds.Set, n int, visit func(member string)) {
	all := func(yield func(string, string) bool) {
		for member := range set.All() {
			if !yield(member, "") {
				return
			}
		}
	}
	draw := func(r *rand.Rand) (string, string, bool) {
		member, ok := set.Random(r)
		return member, "", ok
	}
	distinct(r, n, set.Len(), all, draw, func(member, _ string) { visit(member) })
}

func srandmember(c *Ctx) error {
	if len(c.Args) > 3 {
		return ErrSyntax
	}
	if len(c.Args) == 3 {
		return srandmembers(c)
	}
	set, found, err := Read[*ds.Set](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Null()
		return nil
	}
	member, _ := set.Random(c.Rand)
	c.Out.BulkString(member)
	return nil
}

// srandmembers is SRANDMEMBER with a count. The reply is an array in RESP3
// too, since members may come twice.
func srandmembers(c *Ctx) error {
	count, err := c.signedCount(2)
	if err != nil {
		return err
	}
	set, found, err := Read[*ds.Set](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Array(0)
		return nil
	}
	if count >= 0 {
		n := int(min(count, int64(set.Len())))
		c.Out.Array(n)
		distinctMembers(c.Rand, set, n, c.Out.BulkString)
		return nil
	}
	c.Out.Array(int(-count))
	for range -count {
		member, _ := set.Random(c.Rand)
		c.Out.BulkString(member)
	}
	return nil
}

func spop(c *Ctx) error {
	if len(c.Args) > 3 {
		return ErrSyntax
	}
	if len(c.Args) == 3 {
		return spopMany(c)
	}
	key := c.Args[1]
	set, found, err := Read[*ds.Set](c, key)
	if err != nil {
		return err
	}
	if !found {
		c.Out.Null()
		return nil
	}
	member, _ := set.Random(c.Rand)
	set.Remove(bytesOf(member))
	Shrunk(c, key, set, eventSPop)
	c.Propagate(3).Word("SREM").Bytes(key).Word(member)
	c.Out.BulkString(member)
	return nil
}

// spopMany is SPOP with a count.
func spopMany(c *Ctx) error {
	key := c.Args[1]
	count, ok := ParseInt(c.Args[2])
	if !ok || count < 0 {
		return ErrPositive
	}
	set, found, err := Read[*ds.Set](c, key)
	if err != nil {
		return err
	}
	if !found || count == 0 {
		c.Out.Set(0)
		return nil
	}
	if count >= int64(set.Len()) {
		writeSet(c, set)
		c.DB.Delete(key)
		c.Touch(key, eventSPop, eventDel)
		c.PropagateDel(key, false)
		return nil
	}
	c.Out.Set(int(count))
	for range count {
		member, _ := set.Random(c.Rand)
		set.Remove(bytesOf(member))
		c.Propagate(3).Word("SREM").Bytes(key).Word(member)
		c.Out.BulkString(member)
	}
	c.Touch(key, eventSPop)
	return nil
}

var setRandomSpecs = []Spec{
	{
		Name: "srandmember", Arity: -2, Flags: ReadOnly, Keys: Key(1), Group: "set", Since: "1.0.0",
		Summary:    "Shows random members of a set: one, several distinct ones, or several with repetition.",
		Complexity: "O(1) without a count, else O(N), N being the count without its sign.", Run: srandmember,
	},
	{
		Name: "spop", Arity: -2, Flags: Write | Fast, Keys: Key(1), Group: "set", Since: "1.0.0",
		Summary:    "Takes random members out of a set, and the set away with its last member.",
		Complexity: "O(1) without a count, else O(N), N being the count.", Run: spop,
	},
}
