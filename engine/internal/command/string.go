package command

import (
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Strings, as whole values: SET and GET and their variants. Parts of a string
// are in string_range.go, numbers in string_counter.go, the options of SET and
// GETEX in string_options.go.
//
// Whatever the variant, a value is stored by putString alone. It copies the value, since
// arguments alias the connection's buffer, unless that is large and has memory of its own.

// storeString puts value under key, without an expiry.
func storeString(c *Ctx, key, value []byte) {
	putString(c, key, c.DB.Lookup(key, c.NowMs()), value)
}

// putString is storeString in the place of what Lookup gave.
func putString(c *Ctx, key []byte, o *keyspace.Object, value []byte) *keyspace.Object {
	if !c.Large.Keep(value) {
		return c.DB.StoreString(key, o, value, c.NowMs())
	}
	o, old := c.DB.KeepString(key, o, value, c.NowMs())
	c.Large.Trade(old)
	return o
}

// writeString writes the string under key, or null, and says whether it is
// there.
func writeString(c *Ctx, key []byte) (found bool, err error) {
	before := c.Space.Reading
	c.Space.Reading = true // also for GETSET and its like
	_, s, err := ReadString(c, key)
	c.Space.Reading = before
	switch {
	case err != nil:
		return false, err
	case s != nil:
		writeText(c, s)
	default:
		c.Out.Null()
	}
	return s != nil, nil
}

func writeText(c *Ctx, s *keyspace.String) {
	var digits [20]byte
	c.Out.Bulk(s.Text(digits[:]))
}

func get(c *Ctx) error {
	_, err := writeString(c, c.Args[1])
	return err
}

func set(c *Ctx) error {
	options, err := parseSetOptions(c.Args[3:])
	if err != nil {
		return err
	}
	expireAtMs, err := options.expiry.atMs(c)
	if err != nil {
		return err
	}
	key := c.Args[1]
	if options.get {
		if _, err := writeString(c, key); err != nil {
			return err
		}
	}
	old := c.DB.Lookup(key, c.NowMs())
	if (options.ifNew && old != nil) || (options.ifExists && old == nil) {
		if !options.get {
			c.Out.Null()
		}
		return nil
	}
	if options.keepTTL && old != nil {
		expireAtMs = old.ExpireAt()
	}
	c.DB.SetExpire(key, putString(c, key, old, c.Args[2]), expireAtMs)
	c.Touch(key, eventSet)
	if options.expiry.unit != noExpiry {
		c.DB.Notify(eventExpire, key)
	}
	if c.Journal != nil {
		c.propagateSet(options, expireAtMs)
	}
	if !options.get {
		c.Out.SimpleString("OK")
	}
	return nil
}

// propagateSet makes the expiry absolute, and leaves GET out, which answers and changes
// nothing.
func (c *Ctx) propagateSet(options setOptions, expireAtMs int64) {
	switch unit := options.expiry.unit; {
	case unit != noExpiry:
		c.propagateSetAt(c.Args[2], expireAtMs)
	case options.get:
		isGet := func(arg []byte) bool { return Is(arg, "GET") }
		kept := slices.DeleteFunc(slices.Clone(c.Args[3:]), isGet)
		request := c.Propagate(3 + len(kept))
		for _, arg := range slices.Concat(c.Args[:3], kept) {
			request.Bytes(arg)
		}
	}
}

func (c *Ctx) propagateSetAt(value []byte, expireAtMs int64) {
	c.Propagate(5).Word("SET").Bytes(c.Args[1]).Bytes(value).Word("PXAT").Int(expireAtMs)
}

func setnx(c *Ctx) error {
	if c.DB.Lookup(c.Args[1], c.NowMs()) != nil {
		c.Out.Int(0)
		return nil
	}
	storeString(c, c.Args[1], c.Args[2])
	c.Touch(c.Args[1], eventSet)
	c.Out.Int(1)
	return nil
}

// setWithExpiry is SETEX and PSETEX, which differ in their unit.
func setWithExpiry(unit expiryUnit) func(c *Ctx) error {
	return func(c *Ctx) error {
		expireAtMs, err := expiryOption{unit, c.Args[2]}.atMs(c)
		if err != nil {
			return err
		}
		key := c.Args[1]
		o := putString(c, key, c.DB.Lookup(key, c.NowMs()), c.Args[3])
		c.DB.SetExpire(key, o, expireAtMs)
		c.Touch(key, eventSet, eventExpire)
		c.propagateSetAt(c.Args[3], expireAtMs)
		c.Out.SimpleString("OK")
		return nil
	}
}

func getset(c *Ctx) error {
	if _, err := writeString(c, c.Args[1]); err != nil {
		return err
	}
	storeString(c, c.Args[1], c.Args[2])
	c.Touch(c.Args[1], eventSet)
	c.Propagate(3).Word("SET").Bytes(c.Args[1]).Bytes(c.Args[2])
	return nil
}

func getdel(c *Ctx) error {
	found, err := writeString(c, c.Args[1])
	if err != nil || !found {
		return err
	}
	c.DB.Delete(c.Args[1])
	c.Touch(c.Args[1], eventDel)
	c.PropagateDel(c.Args[1], c.Space.LazyDel)
	return nil
}

// getex answers null for a key that is not there before it looks whether the
// time makes sense, as Redis does.
func getex(c *Ctx) error {
	options, err := parseGetexOptions(c.Args[2:])
	if err != nil {
		return err
	}
	key := c.Args[1]
	c.Space.Reading = true
	_, s, err := ReadString(c, key)
	c.Space.Reading = false
	if err != nil {
		return err
	}
	if s == nil {
		c.Out.Null()
		return nil
	}
	expireAtMs, err := options.expiry.atMs(c)
	if err != nil {
		return err
	}
	writeText(c, s)
	if options.expiry.unit != noExpiry {
		if expireKey(c, key, expireAtMs) {
			c.Propagate(3).Word("PEXPIREAT").Bytes(key).Int(expireAtMs)
		}
	} else if options.persist && persistKey(c, key, c.DB.Peek(key, c.NowMs())) {
		c.Propagate(2).Word("PERSIST").Bytes(key)
	}
	return nil
}

func mget(c *Ctx) error {
	c.Out.Array(len(c.Args) - 1)
	for _, key := range c.Args[1:] {
		_, s, err := ReadString(c, key)
		if err != nil || s == nil { // another type counts as nothing here
			c.Out.Null()
			continue
		}
		writeText(c, s)
	}
	return nil
}

func mset(c *Ctx) error {
	if err := storePairs(c); err != nil {
		return err
	}
	c.Out.SimpleString("OK")
	return nil
}

func msetnx(c *Ctx) error {
	for i := 1; i < len(c.Args) && len(c.Args)%2 == 1; i += 2 {
		if c.DB.Lookup(c.Args[i], c.NowMs()) != nil {
			c.Out.Int(0)
			return nil
		}
	}
	if err := storePairs(c); err != nil {
		return err
	}
	c.Out.Int(1)
	return nil
}

// storePairs stores all of key value [key value ...], or nothing if a value
// is missing.
func storePairs(c *Ctx) error {
	if len(c.Args)%2 == 0 {
		return Error("ERR wrong number of arguments for '" + c.commandName() + "' command")
	}
	for i := 1; i < len(c.Args); i += 2 {
		storeString(c, c.Args[i], c.Args[i+1])
		c.Touch(c.Args[i], eventSet)
	}
	return nil
}

var stringSpecs = []Spec{
	{
		Name: "lcs", Arity: -3, Flags: ReadOnly, Keys: Keys{1, 2, 1}, Group: "string", Since: "7.0.0",
		Summary: "Finds the longest common subsequence of two strings.", Complexity: "O(N*M) for strings of the lengths N and M", Run: lcs,
	},
	{
		Name: "set", Arity: -3, Flags: Write | DenyOOM, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Sets a key to a string, whatever it held, with an expiry or a condition if wanted.", Complexity: "O(1)", Run: set,
	},
	{
		Name: "get", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Returns the string a key holds.", Complexity: "O(1)", Run: get,
	},
	{
		Name: "getset", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Sets a key to a string and returns the one it held before.", Complexity: "O(1)", Run: getset,
	},
	{
		Name: "getdel", Arity: 2, Flags: Write | Fast, Keys: Key(1), Group: "string", Since: "6.2.0",
		Summary: "Returns the string a key holds and deletes the key.", Complexity: "O(1)", Run: getdel,
	},
	{
		Name: "getex", Arity: -2, Flags: Write | Fast, Keys: Key(1), Group: "string", Since: "6.2.0",
		Summary: "Returns the string a key holds and changes when the key expires.", Complexity: "O(1)", Run: getex,
	},
	{
		Name: "setnx", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Sets a key to a string only if the key does not exist.", Complexity: "O(1)", Run: setnx,
	},
	{
		Name: "setex", Arity: 4, Flags: Write | DenyOOM, Keys: Key(1), Group: "string", Since: "2.0.0",
		Summary: "Sets a key to a string that expires after some seconds.", Complexity: "O(1)", Run: setWithExpiry(unitEX),
	},
	{
		Name: "psetex", Arity: 4, Flags: Write | DenyOOM, Keys: Key(1), Group: "string", Since: "2.6.0",
		Summary: "Sets a key to a string that expires after some milliseconds.", Complexity: "O(1)", Run: setWithExpiry(unitPX),
	},
	{
		Name: "mget", Arity: -2, Flags: ReadOnly | Fast, Keys: KeysFrom(1), Group: "string", Since: "1.0.0",
		Summary: "Returns the strings of several keys, null for those that hold none.", Complexity: "O(N) for N keys", Run: mget,
	},
	{
		Name: "mset", Arity: -3, Flags: Write | DenyOOM, Keys: Keys{1, -1, 2}, Group: "string", Since: "1.0.1",
		Summary: "Sets several keys, each to its string, at once.", Complexity: "O(N) for N keys", Run: mset,
	},
	{
		Name: "msetnx", Arity: -3, Flags: Write | DenyOOM, Keys: Keys{1, -1, 2}, Group: "string", Since: "1.0.1",
		Summary: "Sets several keys, each to its string, only if none of them exists.", Complexity: "O(N) for N keys", Run: msetnx,
	},
	{
		Name: "incr", Arity: 2, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Adds one to the integer a key holds; a missing key counts as 0.", Complexity: "O(1)", Run: incr,
	},
	{
		Name: "decr", Arity: 2, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Takes one from the integer a key holds; a missing key counts as 0.", Complexity: "O(1)", Run: decr,
	},
	{
		Name: "incrby", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Adds to the integer a key holds; a missing key counts as 0.", Complexity: "O(1)", Run: incrby,
	},
	{
		Name: "decrby", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "Subtracts from the integer a key holds; a missing key counts as 0.", Complexity: "O(1)", Run: decrby,
	},
	{
		Name: "incrbyfloat", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "2.6.0",
		Summary: "Adds to the number a key holds, with fractions; a missing key counts as 0.", Complexity: "O(1)", Run: incrbyfloat,
	},
	{
		Name: "append", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "string", Since: "2.0.0",
		Summary: "Appends to the string a key holds; a missing key is created.", Complexity: "O(1) amortized, for short values", Run: appendString,
	},
	{
		Name: "strlen", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "string", Since: "2.2.0",
		Summary: "Returns the length in bytes of the string a key holds.", Complexity: "O(1)", Run: strlen,
	},
	{
		Name: "getrange", Arity: 4, Flags: ReadOnly, Keys: Key(1), Group: "string", Since: "2.4.0",
		Summary: "Returns the bytes from one index to another of a string.", Complexity: "O(N) for N bytes returned", Run: getrange,
	},
	{
		Name: "substr", Arity: 4, Flags: ReadOnly, Keys: Key(1), Group: "string", Since: "1.0.0",
		Summary: "The old name of GETRANGE.", Complexity: "O(N) for N bytes returned", Run: getrange,
	},
	{
		Name: "setrange", Arity: 4, Flags: Write | DenyOOM, Keys: Key(1), Group: "string", Since: "2.2.0",
		Summary: "Overwrites a part of a string, which grows as needed, filled with zero bytes.", Complexity: "O(M) for M bytes written", Run: setrange,
	},
}
