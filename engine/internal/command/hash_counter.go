package command

import (
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

const (
	errHashInteger Error = "ERR hash value is not an integer"
	errHashFloat   Error = "ERR hash value is not a float"
	errNotFinite   Error = "ERR value is NaN or Infinity"
)

// A field that is not there counts from 0, and cannot fail to: so a hash that
// is created here never stays empty.

func hincrby(c *Ctx) error {
	key, field := c.Args[1], c.Args[2]
	delta, err := c.Int(3)
	if err != nil {
		return err
	}
	hash, err := ReadOrCreate(c, key, ds.NewHash)
	if err != nil {
		return err
	}
	var n int64
	if value, found := hash.Get(field); found {
		if n, found = ParseInt(bytesOf(value)); !found {
			return errHashInteger
		}
	}
	if (delta < 0 && n < math.MinInt64-delta) || (delta > 0 && n > math.MaxInt64-delta) {
		return ErrOverflow
	}
	n += delta
	var digits [20]byte
	hash.Set(field, strconv.AppendInt(digits[:0], n, 10))
	c.Touch(key, eventHIncrBy)
	c.Out.Int(n)
	return nil
}

func hincrbyfloat(c *Ctx) error {
	key, field := c.Args[1], c.Args[2]
	delta, ok := parseLongDouble(c.Args[3])
	if !ok {
		return ErrNotFloat
	}
	if delta.IsInf() {
		return errNotFinite
	}
	hash, err := ReadOrCreate(c, key, ds.NewHash)
	if err != nil {
		return err
	}
	value, found := hash.Get(field)
	if !found {
		value = "0"
	}
	old, ok := parseLongDouble(bytesOf(value))
	if !ok {
		return errHashFloat
	}
	sum, ok := sumLongDouble(old, delta)
	if !ok {
		return errNotANumber
	}
	hash.Set(field, bytesOf(sum))
	c.Touch(key, eventHIncrByFloat)
	c.Propagate(4).Word("HSET").Bytes(key).Bytes(field).Word(sum)
	c.Out.BulkString(sum)
	return nil
}

var hashCounterSpecs = []Spec{
	{
		Name: "hincrby", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "hash", Since: "2.0.0",
		Summary:    "Adds an integer to the integer that a field holds.",
		Complexity: "O(1).",
		Run:        hincrby,
	},
	{
		Name: "hincrbyfloat", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "hash", Since: "2.6.0",
		Summary:    "Adds a number to the number that a field holds.",
		Complexity: "O(1).",
		Run:        hincrbyfloat,
	},
}
