package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// When a key expires is absolute, in ms since the epoch, everywhere but in the
// arguments and replies of a few of these commands.

// expireKey makes the key, which has been looked up and is there, expire at atMs; if that
// is not in the future it deletes it, propagates that, and returns false.
func expireKey(c *Ctx, key []byte, atMs int64) bool {
	if o := c.DB.Peek(key, c.NowMs()); o != nil && c.isAhead(atMs) {
		c.DB.SetExpire(key, o, max(atMs, 1)) // 0 would be never
		c.Change(key, eventExpire)
		return true
	}
	c.DB.Delete(key)
	c.Touch(key, eventDel)
	c.PropagateDel(key, c.Space.LazyExpire)
	return false
}

// isAhead reports whether a key may expire then. To a log every time was ahead.
func (c *Ctx) isAhead(atMs int64) bool { return atMs > c.NowMs() || c.Space.Loading }

// persistKey takes the expiry away of what a key holds, if anything, and says
// whether it had one.
func persistKey(c *Ctx, key []byte, o *keyspace.Object) bool {
	if o == nil || o.ExpireAt() == 0 {
		return false
	}
	c.DB.SetExpire(key, o, 0)
	c.Change(key, eventPersist)
	return true
}

// expireConditions are the options of EXPIRE: no expiry so far, some expiry so
// far, only to a later time, only to an earlier one.
type expireConditions struct{ none, some, later, earlier bool }

const (
	errExpireNXAnd   Error = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTAndLT Error = "ERR GT and LT options at the same time are not compatible"
)

func parseExpireConditions(args [][]byte) (expireConditions, error) {
	var when expireConditions
	for _, option := range args {
		switch {
		case Is(option, "NX"):
			when.none = true
		case Is(option, "XX"):
			when.some = true
		case Is(option, "GT"):
			when.later = true
		case Is(option, "LT"):
			when.earlier = true
		default:
			return when, Error("ERR Unsupported option " + string(option))
		}
	}
	if when.none && (when.some || when.later || when.earlier) {
		return when, errExpireNXAnd
	}
	if when.later && when.earlier {
		return when, errExpireGTAndLT
	}
	return when, nil
}

// allow says whether a key that expires at oldMs may be made to expire at
// newMs. No expiry (0) counts as the latest of all.
func (when expireConditions) allow(oldMs, newMs int64) bool {
	switch {
	case when.none && oldMs != 0, when.some && oldMs == 0:
		return false
	case when.later:
		return oldMs != 0 && newMs > oldMs
	case when.earlier:
		return oldMs == 0 || newMs < oldMs
	default:
		return true
	}
}

// expire is EXPIRE and its variants, which differ in their unit.
func expire(unit expiryUnit) func(c *Ctx) error {
	return func(c *Ctx) error {
		when, err := parseExpireConditions(c.Args[3:])
		if err != nil {
			return err
		}
		atMs, err := c.expireTime(unit)
		if err != nil {
			return err
		}
		o := c.DB.Lookup(c.Args[1], c.NowMs())
		if o == nil || !when.allow(o.ExpireAt(), atMs) {
			c.Out.Int(0)
			return nil
		}
		if expireKey(c, c.Args[1], atMs) && unit != unitPXAT {
			request := c.Propagate(len(c.Args)).Word("PEXPIREAT").Bytes(c.Args[1]).Int(atMs)
			for _, condition := range c.Args[3:] {
				request.Bytes(condition)
			}
		}
		c.Out.Int(1)
		return nil
	}
}

// expireTime is argument 2 of EXPIRE as a time in ms since the epoch. Other
// than in SET a time in the past is fine.
func (c *Ctx) expireTime(unit expiryUnit) (int64, error) {
	at, err := c.Int(2)
	if err != nil {
		return 0, err
	}
	if unit == unitEX || unit == unitEXAT {
		if at > math.MaxInt64/1000 || at < math.MinInt64/1000 {
			return 0, c.errExpireTime()
		}
		at *= 1000
	}
	if unit == unitEX || unit == unitPX {
		if at > math.MaxInt64-c.NowMs() {
			return 0, c.errExpireTime()
		}
		at += c.NowMs()
	}
	return at, nil
}

func persist(c *Ctx) error {
	if persistKey(c, c.Args[1], c.DB.Lookup(c.Args[1], c.NowMs())) {
		c.Out.Int(1)
	} else {
		c.Out.Int(0)
	}
	return nil
}

// expiry is TTL and its variants: what report makes of the time the key
// expires, or -1 if it does not, or -2 if there is no such key.
func expiry(report func(c *Ctx, atMs int64) int64) func(c *Ctx) error {
	return func(c *Ctx) error {
		switch o := c.DB.Inspect(c.Args[1], c.NowMs()); {
		case o == nil:
			c.Out.Int(-2)
		case o.ExpireAt() == 0:
			c.Out.Int(-1)
		default:
			c.Out.Int(report(c, o.ExpireAt()))
		}
		return nil
	}
}

func ttl(c *Ctx, atMs int64) int64         { return roundToSeconds(atMs - c.NowMs()) }
func pttl(c *Ctx, atMs int64) int64        { return atMs - c.NowMs() }
func expireTime(_ *Ctx, atMs int64) int64  { return roundToSeconds(atMs) }
func pexpireTime(_ *Ctx, atMs int64) int64 { return atMs }

func roundToSeconds(ms int64) int64 {
	if ms%1000 >= 500 {
		return ms/1000 + 1
	}
	return ms / 1000
}

var expirySpecs = []Spec{
	{
		Name: "expire", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "generic", Since: "1.0.0",
		Summary: "Makes a key expire after some seconds.", Complexity: "O(1)", Run: expire(unitEX),
	},
	{
		Name: "pexpire", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "generic", Since: "2.6.0",
		Summary: "Makes a key expire after some milliseconds.", Complexity: "O(1)", Run: expire(unitPX),
	},
	{
		Name: "expireat", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "generic", Since: "1.2.0",
		Summary: "Makes a key expire at a time given in seconds since the epoch.", Complexity: "O(1)", Run: expire(unitEXAT),
	},
	{
		Name: "pexpireat", Arity: -3, Flags: Write | Fast, Keys: Key(1), Group: "generic", Since: "2.6.0",
		Summary: "Makes a key expire at a time given in milliseconds since the epoch.", Complexity: "O(1)", Run: expire(unitPXAT),
	},
	{
		Name: "ttl", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "generic", Since: "1.0.0",
		Summary: "Returns in how many seconds a key expires.", Complexity: "O(1)", Run: expiry(ttl),
	},
	{
		Name: "pttl", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "generic", Since: "2.6.0",
		Summary: "Returns in how many milliseconds a key expires.", Complexity: "O(1)", Run: expiry(pttl),
	},
	{
		Name: "expiretime", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "generic", Since: "7.0.0",
		Summary: "Returns when a key expires, in seconds since the epoch.", Complexity: "O(1)", Run: expiry(expireTime),
	},
	{
		Name: "pexpiretime", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "generic", Since: "7.0.0",
		Summary: "Returns when a key expires, in milliseconds since the epoch.", Complexity: "O(1)", Run: expiry(pexpireTime),
	},
	{
		Name: "persist", Arity: 2, Flags: Write | Fast, Keys: Key(1), Group: "generic", Since: "2.2.0",
		Summary: "Takes away the expiry of a key.", Complexity: "O(1)", Run: persist,
	},
}
