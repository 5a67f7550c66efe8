package command

import (
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

const (
	errDecrement  Error = "ERR decrement would overflow"
	errNotANumber Error = "ERR increment would produce NaN or Infinity"
)

func incr(c *Ctx) error { return addInteger(c, 1) }
func decr(c *Ctx) error { return addInteger(c, -1) }

func incrby(c *Ctx) error {
	n, err := c.Int(2)
	if err != nil {
		return err
	}
	return addInteger(c, n)
}

func decrby(c *Ctx) error {
	n, err := c.Int(2)
	if err != nil {
		return err
	}
	if n == math.MinInt64 {
		return errDecrement
	}
	return addInteger(c, -n)
}

// addInteger is INCR and its variants. The expiry of the key stays.
func addInteger(c *Ctx, delta int64) error {
	key := c.Args[1]
	s, found, err := Read[*keyspace.String](c, key)
	if err != nil {
		return err
	}
	var n int64
	if found {
		if n, found = ParseInt(s.Bytes); !found {
			return ErrNotInteger
		}
	}
	if (delta < 0 && n < math.MinInt64-delta) || (delta > 0 && n > math.MaxInt64-delta) {
		return ErrOverflow
	}
	n += delta
	if s == nil {
		s = &keyspace.String{}
		c.DB.Put(key, s, c.NowMs())
	}
	s.Bytes, s.Raw, s.Text = strconv.AppendInt(s.Bytes[:0], n, 10), false, false
	c.Touch(key, eventIncrBy)
	c.Out.Int(n)
	return nil
}

func incrbyfloat(c *Ctx) error {
	key := c.Args[1]
	s, found, err := Read[*keyspace.String](c, key)
	if err != nil {
		return err
	}
	value := []byte("0")
	if found {
		value = s.Bytes
	}
	old, ok := parseLongDouble(value)
	if !ok {
		return ErrNotFloat
	}
	delta, ok := parseLongDouble(c.Args[2])
	if !ok {
		return ErrNotFloat
	}
	sum, ok := sumLongDouble(old, delta)
	if !ok {
		return errNotANumber
	}
	if s == nil {
		s = &keyspace.String{}
		c.DB.Put(key, s, c.NowMs())
	}
	s.Bytes, s.Raw, s.Text = append(s.Bytes[:0], sum...), false, true
	c.Touch(key, eventIncrByFloat)
	c.Propagate(4).Word("SET").Bytes(key).Bytes(s.Bytes).Word("KEEPTTL")
	c.Out.Bulk(s.Bytes)
	return nil
}
