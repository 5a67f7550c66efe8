package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

const (
	errFrequency Error = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. " +
		"Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
	errIdleTime Error = "ERR An LFU maxmemory policy is selected, idle time not tracked. " +
		"Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."

	embeddedMaxBytes = 44    // the longest string that Redis keeps beside its object
	sharedIntegers   = 10000 // Redis shares the objects of the integers below, and says so
)

// inspectObject is the subcommands of OBJECT that tell something of one key,
// without counting as a use of it; null if there is no such key.
func inspectObject(tell func(c *Ctx, o *keyspace.Object) error) func(c *Ctx) error {
	return func(c *Ctx) error {
		o := c.DB.Peek(c.Args[2], c.NowMs())
		if o == nil {
			c.Out.Null()
			return nil
		}
		return tell(c, o)
	}
}

func objectEncoding(c *Ctx, o *keyspace.Object) error {
	c.Out.BulkString(Encoding(o))
	return nil
}

// Encoding names the structure that keeps a value, as OBJECT ENCODING does.
func Encoding(o *keyspace.Object) string {
	switch v := o.Value().(type) {
	case *keyspace.String:
		return stringEncoding(v)
	case interface{ Encoding() string }:
		return v.Encoding()
	}
	return ""
}

func stringEncoding(s *keyspace.String) string {
	switch _, isNumber := s.Number(); {
	case isNumber:
		return "int"
	case s.Raw() || s.LenBytes() > embeddedMaxBytes:
		return "raw"
	default:
		return "embstr"
	}
}

func objectIdletime(c *Ctx, o *keyspace.Object) error {
	ms, ok := c.Space.IdleMs(o, c.NowMs())
	if !ok {
		return errIdleTime
	}
	c.Out.Int(ms / 1000)
	return nil
}

func objectRefcount(c *Ctx, o *keyspace.Object) error {
	c.Out.Int(Refcount(o))
	return nil
}

// Refcount is how many references Redis says there are to a value.
func Refcount(o *keyspace.Object) int64 {
	if s, isString := o.Value().(*keyspace.String); isString {
		if n, isNumber := s.Number(); isNumber && 0 <= n && n < sharedIntegers {
			return math.MaxInt32
		}
	}
	return 1
}

func objectFreq(c *Ctx, o *keyspace.Object) error {
	n, ok := c.Space.Frequency(o, c.NowMs())
	if !ok {
		return errFrequency
	}
	c.Out.Int(int64(n))
	return nil
}

var objectHelp = HelpSpec("OBJECT", "6.2.0",
	"ENCODING <key>",
	"    Return the kind of internal representation used in order to store the value",
	"    associated with a <key>.",
	"FREQ <key>",
	"    Return the access frequency index of the <key>. The returned integer is",
	"    proportional to the logarithm of the recent access frequency of the key.",
	"IDLETIME <key>",
	"    Return the idle time of the <key>, that is the approximated number of",
	"    seconds elapsed since the last access to the key.",
	"REFCOUNT <key>",
	"    Return the number of references of the value associated with the specified",
	"    <key>.",
)

var objectSpecs = []Spec{
	{
		Name: "encoding", Arity: 3, Flags: ReadOnly, Keys: Key(2), Since: "2.2.3",
		Summary: "Names the structure that keeps a value.", Complexity: "O(1)", Run: inspectObject(objectEncoding),
	},
	{
		Name: "idletime", Arity: 3, Flags: ReadOnly, Keys: Key(2), Since: "2.2.3",
		Summary: "Returns for how many seconds a key was not used.", Complexity: "O(1)", Run: inspectObject(objectIdletime),
	},
	{
		Name: "refcount", Arity: 3, Flags: ReadOnly, Keys: Key(2), Since: "2.2.3",
		Summary: "Returns how many references there are to a value.", Complexity: "O(1)", Run: inspectObject(objectRefcount),
	},
	{
		Name: "freq", Arity: 3, Flags: ReadOnly, Keys: Key(2), Since: "4.0.0",
		Summary: "Returns how often a key is used, on a scale to 255, if the eviction policy counts that.", Complexity: "O(1)", Run: inspectObject(objectFreq),
	},
	objectHelp,
}
