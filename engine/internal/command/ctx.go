package command

import (
	"math/rand/v2"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Ctx is what a handler has to work with: one call of one command.
type Ctx struct {
	// Args are the arguments, the command's name first. They alias the
	// connection's buffer: what outlives the call must be copied, but for what
	// Large says may be kept; nil says that nothing may.
	Args  [][]byte
	Large *resp.Large
	NowUs int64 // the time of this call, in µs since the epoch
	Space *keyspace.Space
	DB    *keyspace.DB
	Out   *resp.Writer
	Rand  *rand.Rand
	// Caller is the session, for the commands of package exec.
	Caller any
	// CanBlock is false inside transactions and scripts, where a command that
	// would block answers as if its time were up.
	CanBlock bool
	// InScript is true within scripts, whose effects should follow from the
	// data alone.
	InScript bool
	// Ready is nil, except when a call that blocked is run again: then it is
	// the key that was touched. See ReadFirst.
	Ready []byte
	// Journal takes what the call propagates; nil if nobody wants it. See Propagate.
	Journal *Journal
	// MaxStringBytes bounds what APPEND and SETRANGE may build.
	MaxStringBytes int64

	block     Block
	rewritten bool // see Propagate
}

// Block describes what a call waits for; see Ctx.Block.
type Block struct {
	Keys      [][]byte
	TimeoutUs int64 // 0 is for ever
	OnTimeout func(out *resp.Writer)
	// Again is what is run when a key is touched, for a command that means
	// something else by then; nil is the call itself.
	Again [][]byte
	// Bound makes the call run again, too, when a key is deleted or becomes
	// something that nobody can wait for.
	Bound bool
	// IsWork is whether the wait counts as time that the command has worked.
	IsWork bool
}

// NowMs is the time of this call in ms since the epoch.
func (c *Ctx) NowMs() int64 { return c.NowUs / 1000 }

// Arg is the i-th argument as a string of its own.
func (c *Ctx) Arg(i int) string { return string(c.Args[i]) }

// Touch reports that key was changed, created or deleted, and what is to be
// told of it to those who listen to events.
func (c *Ctx) Touch(key []byte, events ...keyspace.Event) { c.DB.Touch(key, events...) }

// Change is Touch for what nobody waits for.
func (c *Ctx) Change(key []byte, events ...keyspace.Event) { c.DB.Change(key, events...) }

// Block makes the client wait until one of keys is touched, when the command
// is run again from the start, or until the time is up, when onTimeout writes
// the reply. The handler returns right after, having written nothing. Where
// blocking is not possible the time is up at once.
func (c *Ctx) Block(keys [][]byte, timeoutUs int64, onTimeout func(out *resp.Writer)) error {
	return c.Await(Block{Keys: keys, TimeoutUs: timeoutUs, OnTimeout: onTimeout})
}

// Await is Block with everything that can be said about it.
func (c *Ctx) Await(b Block) error {
	if !c.CanBlock {
		b.OnTimeout(c.Out)
		return nil
	}
	c.block = b
	return nil
}

// TakeBlock returns what the call asked to wait for, if it did.
func (c *Ctx) TakeBlock() (Block, bool) {
	b := c.block
	c.block = Block{}
	return b, b.OnTimeout != nil
}

// Read returns the value under key if it is a T; found is false if there is
// none, and the error is WRONGTYPE if it is something else.
func Read[T any](c *Ctx, key []byte) (value T, found bool, err error) {
	o := c.DB.Lookup(key, c.NowMs())
	if o == nil {
		return value, false, nil
	}
	value, ok := o.Value().(T)
	if !ok {
		return value, false, ErrWrongType
	}
	return value, true, nil
}

// ReadString is Read for strings, with the object for what is to be stored after.
func ReadString(c *Ctx, key []byte) (o *keyspace.Object, s *keyspace.String, err error) {
	o = c.DB.Lookup(key, c.NowMs())
	if o == nil {
		return nil, nil, nil
	}
	if o.Kind() != keyspace.KindString {
		return nil, nil, ErrWrongType
	}
	return o, (*keyspace.String)(o), nil
}

// ReadFirst returns the first of keys that exists, and its value, which is an
// error if it is not a T. When a call that blocked is run again, only the key
// that was touched counts, whichever comes first among keys, and a value of
// another type is not an error but nothing to wake up for.
func ReadFirst[T any](c *Ctx, keys [][]byte) (key []byte, value T, found bool, err error) {
	if c.Ready != nil {
		value, found, err = Read[T](c, c.Ready)
		return c.Ready, value, found && err == nil, nil
	}
	for _, key = range keys {
		if value, found, err = Read[T](c, key); found || err != nil {
			return key, value, found, err
		}
	}
	return nil, value, false, nil
}

// ReadOrCreate returns the T under key, made by create when there is none.
// A new collection must not be left empty.
func ReadOrCreate[T any](c *Ctx, key []byte, create func() T) (T, error) {
	value, found, err := Read[T](c, key)
	if err != nil || found {
		return value, err
	}
	value = create()
	c.DB.Put(key, value, c.NowMs())
	return value, nil
}

// Shrunk reports that elements have been taken out of the collection under key,
// by what event, and deletes the key if none are left: no empty collection is
// ever left (invariant K1).
func Shrunk(c *Ctx, key []byte, collection interface{ Len() int }, event keyspace.Event) {
	if collection.Len() > 0 {
		c.Touch(key, event)
		return
	}
	c.DB.Delete(key)
	c.Touch(key, event, eventDel)
}

// storeResult puts a collection in place of whatever key holds, nothing if the
// collection is empty, and replies with its size.
func storeResult(c *Ctx, key []byte, result interface{ Len() int }, event keyspace.Event) {
	if result.Len() > 0 {
		c.DB.Put(key, result, c.NowMs())
		c.Touch(key, event)
	} else if c.DB.Delete(key) {
		c.Touch(key, eventDel)
	}
	c.Out.Int(int64(result.Len()))
}
