package command

import (
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// Hashes. One file per concept:
//
//	hash.go           fields: set, read, delete, list, scan
//	hash_counter.go   fields that count
//	hash_random.go    random fields

// setFields stores the fields and values that a call gives from argument 2 on
// and returns how many fields are new. name is for the error of a field
// without a value.
func setFields(c *Ctx, name string) (created int, err error) {
	if len(c.Args)%2 != 0 {
		return 0, errArity(name)
	}
	hash, err := ReadOrCreate(c, c.Args[1], ds.NewHash)
	if err != nil {
		return 0, err
	}
	hash.Expect(c.Args[2:])
	for i := 2; i < len(c.Args); i += 2 {
		if hash.Set(c.Args[i], c.Args[i+1]) {
			created++
		}
	}
	c.Touch(c.Args[1], eventHSet)
	return created, nil
}

func hset(c *Ctx) error {
	created, err := setFields(c, "hset")
	if err != nil {
		return err
	}
	c.Out.Int(int64(created))
	return nil
}

func hmset(c *Ctx) error {
	if _, err := setFields(c, "hmset"); err != nil {
		return err
	}
	c.Out.SimpleString("OK")
	return nil
}

func hsetnx(c *Ctx) error {
	hash, err := ReadOrCreate(c, c.Args[1], ds.NewHash)
	if err != nil {
		return err
	}
	if _, found := hash.Get(c.Args[2]); found {
		c.Out.Int(0)
		return nil
	}
	hash.Set(c.Args[2], c.Args[3])
	c.Touch(c.Args[1], eventHSet)
	c.Out.Int(1)
	return nil
}

// readField is the value of the field that argument 2 names.
func readField(c *Ctx) (value string, found bool, err error) {
	hash, found, err := Read[*ds.Hash](c, c.Args[1])
	if err != nil || !found {
		return "", false, err
	}
	value, found = hash.Get(c.Args[2])
	return value, found, nil
}

func hget(c *Ctx) error {
	value, found, err := readField(c)
	if err != nil {
		return err
	}
	writeField(c, value, found)
	return nil
}

func writeField(c *Ctx, value string, found bool) {
	if found {
		c.Out.BulkString(value)
	} else {
		c.Out.Null()
	}
}

func hmget(c *Ctx) error {
	hash, found, err := Read[*ds.Hash](c, c.Args[1])
	if err != nil {
		return err
	}
	fields := c.Args[2:]
	c.Out.Array(len(fields))
	for _, field := range fields {
		if !found {
			c.Out.Null()
			continue
		}
		value, ok := hash.Get(field)
		writeField(c, value, ok)
	}
	return nil
}

func hstrlen(c *Ctx) error {
	value, _, err := readField(c)
	if err != nil {
		return err
	}
	c.Out.Int(int64(len(value)))
	return nil
}

func hexists(c *Ctx) error {
	_, found, err := readField(c)
	if err != nil {
		return err
	}
	writeHas(c, found)
	return nil
}

func hdel(c *Ctx) error {
	key := c.Args[1]
	hash, found, err := Read[*ds.Hash](c, key)
	if err != nil {
		return err
	}
	deleted := 0
	if found {
		for _, field := range c.Args[2:] {
			if hash.Delete(field) {
				deleted++
			}
		}
	}
	if deleted > 0 {
		Shrunk(c, key, hash, eventHDel)
	}
	c.Out.Int(int64(deleted))
	return nil
}

func hlen(c *Ctx) error {
	hash, found, err := Read[*ds.Hash](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	c.Out.Int(int64(hash.Len()))
	return nil
}

// listHash makes HKEYS, HVALS and HGETALL: header opens the reply for n
// fields, write writes one of them.
func listHash(header func(c *Ctx, n int), write func(c *Ctx, field, value string)) func(c *Ctx) error {
	return func(c *Ctx) error {
		hash, found, err := Read[*ds.Hash](c, c.Args[1])
		if err != nil {
			return err
		}
		if !found {
			header(c, 0)
			return nil
		}
		header(c, hash.Len())
		for field, value := range hash.All() {
			write(c, field, value)
		}
		return nil
	}
}

func arrayHeader(c *Ctx, n int) { c.Out.Array(n) }
func mapHeader(c *Ctx, n int)   { c.Out.Map(n) }

func writeOnlyField(c *Ctx, field, _ string) { c.Out.BulkString(field) }
func writeOnlyValue(c *Ctx, _, value string) { c.Out.BulkString(value) }

func writeFieldAndValue(c *Ctx, field, value string) {
	c.Out.BulkString(field)
	c.Out.BulkString(value)
}

func hscan(c *Ctx) error {
	return scanCollection(c, 2, func(hash *ds.Hash, cursor uint64, emit func(name, value string)) uint64 {
		return hash.Scan(cursor, emit)
	})
}

var hashSpecs = slices.Concat(hashFieldSpecs, hashCounterSpecs, hashRandomSpecs)

var hashFieldSpecs = []Spec{
	{
		Name: "hset", Arity: -4, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Sets fields of a hash to values; the hash is created if there is none.",
		Complexity: "O(1) for each field.",
		Run:        hset,
	},
	{
		Name: "hmset", Arity: -4, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Sets fields of a hash to values. HSET does it too, and says more.",
		Complexity: "O(1) for each field.",
		Run:        hmset,
	},
	{
		Name: "hsetnx", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Sets a field of a hash, unless it is there already.",
		Complexity: "O(1).",
		Run:        hsetnx,
	},
	{
		Name: "hget", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Shows the value of a field.",
		Complexity: "O(1).",
		Run:        hget,
	},
	{
		Name: "hmget", Arity: -3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Shows the values of several fields.",
		Complexity: "O(1) for each field.",
		Run:        hmget,
	},
	{
		Name: "hstrlen", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "hash", Since: "3.2.0",
		Summary:    "Shows how many bytes the value of a field has.",
		Complexity: "O(1).",
		Run:        hstrlen,
	},
	{
		Name: "hexists", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Says whether a hash has a field.",
		Complexity: "O(1).",
		Run:        hexists,
	},
	{
		Name: "hdel", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Removes fields from a hash, and the hash with its last field.",
		Complexity: "O(1) for each field.",
		Run:        hdel,
	},
	{
		Name: "hlen", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Counts the fields of a hash.",
		Complexity: "O(1).",
		Run:        hlen,
	},
	{
		Name: "hkeys", Arity: 2, Flags: ReadOnly, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Lists the fields of a hash.",
		Complexity: "O(N), N being the number of fields.",
		Run:        listHash(arrayHeader, writeOnlyField),
	},
	{
		Name: "hvals", Arity: 2, Flags: ReadOnly, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Lists the values of a hash.",
		Complexity: "O(N), N being the number of fields.",
		Run:        listHash(arrayHeader, writeOnlyValue),
	},
	{
		Name: "hgetall", Arity: 2, Flags: ReadOnly, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Lists the fields of a hash with their values.",
		Complexity: "O(N), N being the number of fields.",
		Run:        listHash(mapHeader, writeFieldAndValue),
	},
	{
		Name: "hscan", Arity: -3, Flags: ReadOnly, Keys: Key(1), Group: "hash", Since: "2.8.0",
		Summary:    "Walks the fields of a hash and their values in steps, with a cursor.",
		Complexity: "O(1) for every call. O(N) for a complete walk, N being the number of fields.",
		Run:        hscan,
	},
}
