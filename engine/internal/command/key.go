package command

import (
	"math"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Commands on keys, whatever their values are. OBJECT is in key_object.go,
// expiry in expiry.go, SCAN in scan.go.

const (
	errSameObject Error = "ERR source and destination objects are the same"
	errDBIndex    Error = "ERR DB index is out of range"
	errNotInt32   Error = "ERR value is out of range, value must between -2147483648 and 2147483647"
)

// countKeys runs visit for each key that exists and answers how many there
// were; a key given twice counts twice if it is still there.
func countKeys(c *Ctx, visit func(key []byte, o *keyspace.Object)) error {
	n := 0
	for _, key := range c.Args[1:] {
		if o := c.DB.Lookup(key, c.NowMs()); o != nil {
			visit(key, o)
			n++
		}
	}
	c.Out.Int(int64(n))
	return nil
}

func del(c *Ctx) error { return c.delete(c.Space.LazyDel) }

func unlink(c *Ctx) error { return c.delete(true) }

// delete is DEL and UNLINK: the collector frees values in the background anyway. What is
// freed later is only counted.
func (c *Ctx) delete(later bool) error {
	return countKeys(c, func(key []byte, o *keyspace.Object) {
		if later {
			c.Space.CountFreed(o)
		}
		c.DB.Delete(key)
		c.Touch(key, eventDel)
	})
}

func touch(c *Ctx) error { return countKeys(c, func([]byte, *keyspace.Object) {}) }

func exists(c *Ctx) error {
	n := 0
	for _, key := range c.Args[1:] {
		if c.DB.Inspect(key, c.NowMs()) != nil {
			n++
		}
	}
	c.Out.Int(int64(n))
	return nil
}

func typeOf(c *Ctx) error {
	kind := keyspace.None
	if o := c.DB.Inspect(c.Args[1], c.NowMs()); o != nil {
		kind = o.Kind()
	}
	c.Out.SimpleString(kind.String())
	return nil
}

func rename(c *Ctx) error {
	if err := c.renameKey(); err != nil {
		return err
	}
	c.Out.SimpleString("OK")
	return nil
}

func renamenx(c *Ctx) error {
	if c.DB.Lookup(c.Args[1], c.NowMs()) == nil {
		return ErrNoSuchKey
	}
	if c.DB.Lookup(c.Args[2], c.NowMs()) != nil {
		c.Out.Int(0)
		return nil
	}
	if err := c.renameKey(); err != nil {
		return err
	}
	c.Out.Int(1)
	return nil
}

// renameKey moves the value and the expiry of the key at argument 1 to the key
// at argument 2.
func (c *Ctx) renameKey() error {
	from, to := c.Args[1], c.Args[2]
	o := c.DB.Lookup(from, c.NowMs())
	if o == nil {
		return ErrNoSuchKey
	}
	if string(from) == string(to) {
		return nil
	}
	value, expireAtMs := o.Value(), o.ExpireAt()
	c.DB.Delete(from)
	c.DB.Delete(to)
	c.DB.SetExpire(to, c.DB.Put(to, value, c.NowMs()), expireAtMs)
	c.Touch(from, eventRenameFrom)
	c.Touch(to, eventRenameTo)
	return nil
}

// database is the database whose number is the i-th argument.
func (c *Ctx) database(i int) (*keyspace.DB, error) {
	index, err := c.Int(i)
	if err != nil {
		return nil, err
	}
	if index < math.MinInt32 || index > math.MaxInt32 {
		return nil, errNotInt32
	}
	db := c.Space.DB(int(index))
	if db == nil {
		return nil, errDBIndex
	}
	return db, nil
}

func move(c *Ctx) error {
	key := c.Args[1]
	target, err := c.database(2)
	if err != nil {
		return err
	}
	if target == c.DB {
		return errSameObject
	}
	o := c.DB.Lookup(key, c.NowMs())
	if o == nil || target.Lookup(key, c.NowMs()) != nil {
		c.Out.Int(0)
		return nil
	}
	value, expireAtMs := o.Value(), o.ExpireAt()
	c.DB.Delete(key)
	target.SetExpire(key, target.Put(key, value, c.NowMs()), expireAtMs)
	c.Touch(key, eventMoveFrom)
	target.Touch(key, eventMoveTo)
	c.Out.Int(1)
	return nil
}

type copyOptions struct {
	target  *keyspace.DB
	replace bool
}

func (c *Ctx) copyOptions() (copyOptions, error) {
	options := copyOptions{target: c.DB}
	for i := 3; i < len(c.Args); i++ {
		switch {
		case Is(c.Args[i], "REPLACE"):
			options.replace = true
		case Is(c.Args[i], "DB") && i+1 < len(c.Args):
			i++
			target, err := c.database(i)
			if err != nil {
				return options, err
			}
			options.target = target
		default:
			return options, ErrSyntax
		}
	}
	return options, nil
}

func copyKey(c *Ctx) error {
	options, err := c.copyOptions()
	if err != nil {
		return err
	}
	from, to, target := c.Args[1], c.Args[2], options.target
	if target == c.DB && string(from) == string(to) {
		return errSameObject
	}
	c.Space.Reading = true
	o := c.DB.Lookup(from, c.NowMs())
	c.Space.Reading = false
	if o == nil || (target.Lookup(to, c.NowMs()) != nil && !options.replace) {
		c.Out.Int(0)
		return nil
	}
	expireAtMs := o.ExpireAt()
	value := o.CloneValue()
	target.Delete(to)
	target.SetExpire(to, target.Put(to, value, c.NowMs()), expireAtMs)
	target.Touch(to, eventCopyTo)
	c.Out.Int(1)
	return nil
}

func randomkey(c *Ctx) error {
	key, ok := c.DB.Random(c.Rand, c.NowMs())
	if !ok {
		c.Out.Null()
		return nil
	}
	c.Out.BulkString(key)
	return nil
}

func keys(c *Ctx) error {
	pattern := c.Args[1]
	every := string(pattern) == "*"
	var found, expired []string
	c.DB.Each(func(key string, o *keyspace.Object) bool {
		switch {
		case !every && !Glob(pattern, unsafe.Slice(unsafe.StringData(key), len(key)), false):
		case c.DB.Expired(o, c.NowMs()):
			expired = append(expired, key)
		default:
			found = append(found, key)
		}
		return true
	})
	c.removeExpired(expired)
	c.Out.Array(len(found))
	for _, key := range found {
		c.Out.BulkString(key)
	}
	return nil
}

func dbsize(c *Ctx) error {
	c.Out.Int(int64(c.DB.Len()))
	return nil
}

func swapdb(c *Ctx) error {
	var dbs [2]*keyspace.DB
	for i, which := range []string{"first", "second"} {
		index, ok := ParseInt(c.Args[1+i])
		if !ok || index < math.MinInt32 || index > math.MaxInt32 {
			return Error("ERR invalid " + which + " DB index")
		}
		dbs[i] = c.Space.DB(int(index))
	}
	if dbs[0] == nil || dbs[1] == nil {
		return Error("ERR DB index is out of range")
	}
	c.Space.Swap(dbs[0], dbs[1], c.NowMs())
	c.Out.SimpleString("OK")
	return nil
}

func flushdb(c *Ctx) error { return c.flush(c.DB.Index, c.DB.Index) }

func flushall(c *Ctx) error { return c.flush(0, keyspace.Databases-1) }

// flush empties the databases first to last. ASYNC and SYNC are the same: the
// collector frees the values.
func (c *Ctx) flush(first, last int) error {
	if len(c.Args) > 2 || (len(c.Args) == 2 && !Is(c.Args[1], "ASYNC") && !Is(c.Args[1], "SYNC")) {
		return ErrSyntax
	}
	if len(c.Args) == 2 && Is(c.Args[1], "ASYNC") || len(c.Args) == 1 && c.Space.LazyFlush {
		for i := first; i <= last; i++ {
			c.Space.FreedLater += int64(c.Space.DB(i).Len())
		}
	}
	c.Space.Flush(first, last)
	c.Out.SimpleString("OK")
	return nil
}

var keySpecs = []Spec{
	{
		Name: "del", Arity: -2, Flags: Write, Keys: KeysFrom(1), Group: "generic", Since: "1.0.0",
		Summary: "Deletes keys.", Complexity: "O(N) for N keys", Run: del,
	},
	{
		Name: "unlink", Arity: -2, Flags: Write | Fast, Keys: KeysFrom(1), Group: "generic", Since: "4.0.0",
		Summary: "Deletes keys; their memory is freed later.", Complexity: "O(1) for each key", Run: unlink,
	},
	{
		Name: "exists", Arity: -2, Flags: ReadOnly | Fast, Keys: KeysFrom(1), Group: "generic", Since: "1.0.0",
		Summary: "Counts how many of the keys exist.", Complexity: "O(N) for N keys", Run: exists,
	},
	{
		Name: "type", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "generic", Since: "1.0.0",
		Summary: "Returns which type of value a key holds.", Complexity: "O(1)", Run: typeOf,
	},
	{
		Name: "rename", Arity: 3, Flags: Write, Keys: Keys{1, 2, 1}, Group: "generic", Since: "1.0.0",
		Summary: "Gives a key another name, in place of a key that has it.", Complexity: "O(1)", Run: rename,
	},
	{
		Name: "renamenx", Arity: 3, Flags: Write | Fast, Keys: Keys{1, 2, 1}, Group: "generic", Since: "1.0.0",
		Summary: "Gives a key another name if no key has it.", Complexity: "O(1)", Run: renamenx,
	},
	{
		Name: "copy", Arity: -3, Flags: Write | DenyOOM, Keys: Keys{1, 2, 1}, Group: "generic", Since: "6.2.0",
		Summary: "Copies a key's value and expiry to another key, in the same database or another.", Complexity: "O(N) for a collection of N elements, O(1) for a string", Run: copyKey,
	},
	{
		Name: "move", Arity: 3, Flags: Write | Fast, Keys: Key(1), Group: "generic", Since: "1.0.0",
		Summary: "Moves a key to another database.", Complexity: "O(1)", Run: move,
	},
	{
		Name: "touch", Arity: -2, Flags: ReadOnly | Fast, Keys: KeysFrom(1), Group: "generic", Since: "3.2.1",
		Summary: "Marks keys as just used and counts those that exist.", Complexity: "O(N) for N keys", Run: touch,
	},
	{
		Name: "randomkey", Arity: 1, Flags: ReadOnly, Group: "generic", Since: "1.0.0",
		Summary: "Returns one key of the database, chosen at random.", Complexity: "O(1)", Run: randomkey,
	},
	{
		Name: "keys", Arity: 2, Flags: ReadOnly, Group: "generic", Since: "1.0.0",
		Summary: "Lists the keys whose names match a pattern.", Complexity: "O(N) for N keys in the database", Run: keys,
	},
	{
		Name: "object", Arity: -2, Group: "generic", Since: "2.2.3",
		Summary: "Tells how a value is kept inside.", Complexity: "Depends on the subcommand.", Sub: objectSpecs,
	},
	{
		Name: "dbsize", Arity: 1, Flags: ReadOnly | Fast, Group: "server", Since: "1.0.0",
		Summary: "Counts the keys of the database.", Complexity: "O(1)", Run: dbsize,
	},
	{
		Name: "flushdb", Arity: -1, Flags: Write, Group: "server", Since: "1.0.0",
		Summary: "Deletes all keys of the database.", Complexity: "O(N) for N keys in the database", Run: flushdb,
	},
	{
		Name: "swapdb", Arity: 3, Flags: Write | Fast, Group: "server", Since: "4.0.0",
		Summary: "Exchanges the keys of two databases.", Complexity: "O(N) for N clients that watch or wait for keys of the two", Run: swapdb,
	},
	{
		Name: "flushall", Arity: -1, Flags: Write, Group: "server", Since: "1.0.0",
		Summary: "Deletes all keys of all databases.", Complexity: "O(N) for N keys in all databases", Run: flushall,
	},
}
