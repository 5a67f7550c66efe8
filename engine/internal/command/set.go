package command

import (
	"slices"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// Sets. One file per concept:
//
//	set.go          members: add, remove, look up, list, move, scan
//	set_random.go   random members, taken or only shown; also the choice of
//	                distinct elements that hashes share
//	set_algebra.go  union, intersection and difference of several sets

// bytesOf is a string's bytes without a copy, to look it up in another
// collection. They must not be written to, nor kept.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// stringOf is the string of some bytes without a copy. It must not be kept.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func sadd(c *Ctx) error {
	set, err := ReadOrCreate(c, c.Args[1], ds.NewSet)
	if err != nil {
		return err
	}
	set.Expect(c.Args[2:])
	added := 0
	for _, member := range c.Args[2:] {
		if set.Add(member) {
			added++
		}
	}
	if added > 0 {
		c.Touch(c.Args[1], eventSAdd)
	}
	c.Out.Int(int64(added))
	return nil
}

func srem(c *Ctx) error {
	key := c.Args[1]
	set, found, err := Read[*ds.Set](c, key)
	if err != nil {
		return err
	}
	removed := 0
	if found {
		for _, member := range c.Args[2:] {
			if set.Remove(member) {
				removed++
			}
		}
	}
	if removed > 0 {
		Shrunk(c, key, set, eventSRem)
	}
	c.Out.Int(int64(removed))
	return nil
}

func sismember(c *Ctx) error {
	set, found, err := Read[*ds.Set](c, c.Args[1])
	if err != nil {
		return err
	}
	writeHas(c, found && set.Has(c.Args[2]))
	return nil
}

func smismember(c *Ctx) error {
	set, found, err := Read[*ds.Set](c, c.Args[1])
	if err != nil {
		return err
	}
	members := c.Args[2:]
	c.Out.Array(len(members))
	for _, member := range members {
		writeHas(c, found && set.Has(member))
	}
	return nil
}

// writeHas replies 1 or 0: an integer in RESP3 too.
func writeHas(c *Ctx, has bool) {
	if has {
		c.Out.Int(1)
	} else {
		c.Out.Int(0)
	}
}

func scard(c *Ctx) error {
	set, found, err := Read[*ds.Set](c, c.Args[1])
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

func smembers(c *Ctx) error {
	set, found, err := Read[*ds.Set](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Set(0)
		return nil
	}
	writeSet(c, set)
	return nil
}

func writeSet(c *Ctx, set *ds.Set) {
	c.Out.Set(set.Len())
	for member := range set.All() {
		c.Out.BulkString(member)
	}
}

// smove moves a member from one set to another. To move it onto its own place
// succeeds and changes nothing.
func smove(c *Ctx) error {
	from, to, member := c.Args[1], c.Args[2], c.Args[3]
	source, found, err := Read[*ds.Set](c, from)
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	destination, _, err := Read[*ds.Set](c, to)
	if err != nil {
		return err
	}
	if destination == source || !source.Has(member) {
		writeHas(c, source.Has(member))
		return nil
	}
	source.Remove(member)
	Shrunk(c, from, source, eventSRem)
	if destination == nil {
		destination = ds.NewSet()
		c.DB.Put(to, destination, c.NowMs())
	}
	if destination.Add(member) {
		c.Touch(to, eventSAdd)
	}
	c.Out.Int(1)
	return nil
}

func sscan(c *Ctx) error {
	return scanCollection(c, 1, func(set *ds.Set, cursor uint64, emit func(name, value string)) uint64 {
		return set.Scan(cursor, func(member string) { emit(member, "") })
	})
}

var setSpecs = slices.Concat(setMemberSpecs, setRandomSpecs, setAlgebraSpecs)

var setMemberSpecs = []Spec{
	{
		Name: "sadd", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "set", Since: "1.0.0",
		Summary:    "Adds members to a set, which is created if there is none.",
		Complexity: "O(1) for each member.", Run: sadd,
	},
	{
		Name: "srem", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "set", Since: "1.0.0",
		Summary:    "Removes members from a set, and the set with its last member.",
		Complexity: "O(1) for each member.", Run: srem,
	},
	{
		Name: "sismember", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "set", Since: "1.0.0",
		Summary:    "Says whether something is a member of a set.",
		Complexity: "O(1).", Run: sismember,
	},
	{
		Name: "smismember", Arity: -3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "set", Since: "6.2.0",
		Summary:    "Says for each of several things whether it is a member of a set.",
		Complexity: "O(1) for each.", Run: smismember,
	},
	{
		Name: "scard", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "set", Since: "1.0.0",
		Summary:    "Counts the members of a set.",
		Complexity: "O(1).", Run: scard,
	},
	{
		Name: "smembers", Arity: 2, Flags: ReadOnly, Keys: Key(1), Group: "set", Since: "1.0.0",
		Summary:    "Lists all members of a set.",
		Complexity: "O(N), N being the number of members.", Run: smembers,
	},
	{
		Name: "smove", Arity: 4, Flags: Write | Fast, Keys: Keys{1, 2, 1}, Group: "set", Since: "1.0.0",
		Summary:    "Moves a member from one set to another in one step.",
		Complexity: "O(1).", Run: smove,
	},
	{
		Name: "sscan", Arity: -3, Flags: ReadOnly, Keys: Key(1), Group: "set", Since: "2.8.0",
		Summary:    "Walks the members of a set in steps, with a cursor.",
		Complexity: "O(1) for every call. O(N) for a complete walk, N being the number of members.", Run: sscan,
	},
}
