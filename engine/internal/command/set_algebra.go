package command

import (
	"cmp"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Union, intersection and difference. Every source is looked up before
// anything is done, so that one of another type is an error even where the
// result is known without it. A source that does not exist is an empty set.

const (
	errTooManyKeys   Error = "ERR Number of keys can't be greater than number of args"
	errLimitNegative Error = "ERR LIMIT can't be negative"
)

// readSets looks up the sets under keys. The sets are only read.
func readSets(c *Ctx, keys [][]byte) ([]*ds.Set, error) {
	c.Space.Reading = true // also where the result is stored
	sets := make([]*ds.Set, len(keys))
	for i, key := range keys {
		set, found, err := Read[*ds.Set](c, key)
		if err != nil {
			return nil, err
		}
		if !found {
			set = ds.NewSet()
		}
		sets[i] = set
	}
	return sets, nil
}

// setOperation visits each member of the result once.
type setOperation func(sets []*ds.Set, visit func(member string) (more bool))

func intersectSets(sets []*ds.Set, visit func(member string) bool) {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b *ds.Set) int { return cmp.Compare(a.Len(), b.Len()) })
	for member := range sets[0].All() {
		lacks := func(set *ds.Set) bool { return !set.Has(bytesOf(member)) }
		if !slices.ContainsFunc(sets[1:], lacks) && !visit(member) {
			return
		}
	}
}

func subtractSets(sets []*ds.Set, visit func(member string) bool) {
	for member := range sets[0].All() {
		has := func(set *ds.Set) bool { return set.Has(bytesOf(member)) }
		if !slices.ContainsFunc(sets[1:], has) && !visit(member) {
			return
		}
	}
}

// combineSets makes the commands that reply with the result.
func combineSets(operation setOperation) func(c *Ctx) error {
	return func(c *Ctx) error {
		sets, err := readSets(c, c.Args[1:])
		if err != nil {
			return err
		}
		var members []string
		operation(sets, func(member string) bool {
			members = append(members, member)
			return true
		})
		c.Out.Set(len(members))
		for _, member := range members {
			c.Out.BulkString(member)
		}
		return nil
	}
}

// combineSetsInto makes the commands that store the result, in place of
// whatever the destination holds: nothing, if the result is empty.
func combineSetsInto(operation setOperation, event keyspace.Event) func(c *Ctx) error {
	return func(c *Ctx) error {
		sets, err := readSets(c, c.Args[2:])
		if err != nil {
			return err
		}
		result := ds.NewSet()
		result.Within(&c.Space.Limits)
		operation(sets, func(member string) bool {
			result.Add(bytesOf(member))
			return true
		})
		storeResult(c, c.Args[1], result, event)
		return nil
	}
}

// A union is made as a set at once, and not member by member: ds.UnionOf copies the table of the
// largest one.

func sunion(c *Ctx) error {
	sets, err := readSets(c, c.Args[1:])
	if err != nil {
		return err
	}
	result := sets[0]
	if len(sets) > 1 {
		result = ds.UnionOf(sets, &c.Space.Limits)
	}
	c.Out.Set(result.Len())
	for member := range result.All() {
		c.Out.BulkString(member)
	}
	return nil
}

func sunionstore(c *Ctx) error {
	sets, err := readSets(c, c.Args[2:])
	if err != nil {
		return err
	}
	storeResult(c, c.Args[1], ds.UnionOf(sets, &c.Space.Limits), eventSUnionStore)
	return nil
}

// parseInterCard reads numkeys, the keys, and LIMIT, of which the last counts;
// 0 is no limit.
func parseInterCard(args [][]byte) (keys [][]byte, limit int64, err error) {
	numKeys, ok := ParseInt(args[0])
	if !ok || numKeys < 1 {
		return nil, 0, errNumKeys
	}
	args = args[1:]
	if numKeys > int64(len(args)) {
		return nil, 0, errTooManyKeys
	}
	keys, args = args[:numKeys], args[numKeys:]
	for ; len(args) > 0; args = args[2:] {
		if len(args) == 1 || !Is(args[0], "LIMIT") {
			return nil, 0, ErrSyntax
		}
		if limit, ok = ParseInt(args[1]); !ok || limit < 0 {
			return nil, 0, errLimitNegative
		}
	}
	return keys, limit, nil
}

func sintercard(c *Ctx) error {
	keys, limit, err := parseInterCard(c.Args[1:])
	if err != nil {
		return err
	}
	sets, err := readSets(c, keys)
	if err != nil {
		return err
	}
	var n int64
	intersectSets(sets, func(string) bool {
		n++
		return n != limit
	})
	c.Out.Int(n)
	return nil
}

var setAlgebraSpecs = []Spec{
	{
		Name: "sinter", Arity: -2, Flags: ReadOnly, Keys: KeysFrom(1), Group: "set", Since: "1.0.0",
		Summary:    "Lists the members that several sets have in common.",
		Complexity: "O(N*M) at worst, N being the size of the smallest set and M the number of sets.",
		Run:        combineSets(intersectSets),
	},
	{
		Name: "sinterstore", Arity: -3, Flags: Write | DenyOOM, Keys: KeysFrom(1), Group: "set", Since: "1.0.0",
		Summary:    "Stores the members that several sets have in common in a set of their own.",
		Complexity: "O(N*M) at worst, N being the size of the smallest set and M the number of sets.",
		Run:        combineSetsInto(intersectSets, eventSInterStore),
	},
	{
		Name: "sintercard", Arity: -3, Flags: ReadOnly | MovableKeys, FindKeys: CountedKeys(1), Group: "set", Since: "7.0.0",
		Summary:    "Counts the members that several sets have in common, up to a limit.",
		Complexity: "O(N*M) at worst, N being the size of the smallest set and M the number of sets.",
		Run:        sintercard,
	},
	{
		Name: "sunion", Arity: -2, Flags: ReadOnly, Keys: KeysFrom(1), Group: "set", Since: "1.0.0",
		Summary:    "Lists the members of several sets, each once.",
		Complexity: "O(N), N being the size of all sets together.",
		Run:        sunion,
	},
	{
		Name: "sunionstore", Arity: -3, Flags: Write | DenyOOM, Keys: KeysFrom(1), Group: "set", Since: "1.0.0",
		Summary:    "Stores the members of several sets in a set of their own.",
		Complexity: "O(N), N being the size of all sets together.",
		Run:        sunionstore,
	},
	{
		Name: "sdiff", Arity: -2, Flags: ReadOnly, Keys: KeysFrom(1), Group: "set", Since: "1.0.0",
		Summary:    "Lists the members of the first set that no other has.",
		Complexity: "O(N*M) at worst, N being the size of the first set and M the number of sets.",
		Run:        combineSets(subtractSets),
	},
	{
		Name: "sdiffstore", Arity: -3, Flags: Write | DenyOOM, Keys: KeysFrom(1), Group: "set", Since: "1.0.0",
		Summary:    "Stores the members of the first set that no other has in a set of their own.",
		Complexity: "O(N*M) at worst, N being the size of the first set and M the number of sets.",
		Run:        combineSetsInto(subtractSets, eventSDiffStore),
	},
}
