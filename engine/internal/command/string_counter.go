package command

import "math"

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
	o, s, err := ReadString(c, key)
	if err != nil {
		return err
	}
	var n int64
	if s != nil {
		var isInteger bool
		if n, isInteger = s.Integer(); !isInteger {
			return ErrNotInteger
		}
	}
	if (delta < 0 && n < math.MinInt64-delta) || (delta > 0 && n > math.MaxInt64-delta) {
		return ErrOverflow
	}
	n += delta
	c.DB.StoreNumber(key, o, n, c.NowMs())
	c.Touch(key, eventIncrBy)
	c.Out.Int(n)
	return nil
}

func incrbyfloat(c *Ctx) error {
	key := c.Args[1]
	o, s, err := ReadString(c, key)
	if err != nil {
		return err
	}
	value, digits := []byte("0"), [20]byte{}
	if s != nil {
		value = s.Text(digits[:])
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
	c.DB.StoreFloat(key, o, []byte(sum), c.NowMs())
	c.Touch(key, eventIncrByFloat)
	c.Propagate(4).Word("SET").Bytes(key).Word(sum).Word("KEEPTTL")
	c.Out.BulkString(sum)
	return nil
}
