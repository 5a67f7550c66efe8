package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// DUMP and RESTORE move single values between servers, Redis among them: see
// package rdb for what the bytes are.

const (
	errBusyKey     Error = "BUSYKEY Target key name already exists."
	errPayload     Error = "ERR DUMP payload version or checksum are wrong"
	errPayloadData Error = "ERR Bad data format"
	errRestoreTTL  Error = "ERR Invalid TTL value, must be >= 0"
	errIdletime    Error = "ERR Invalid IDLETIME value, must be >= 0"
	errFreq        Error = "ERR Invalid FREQ value, must be >= 0 and <= 255"
)

func dump(c *Ctx) error {
	o := c.DB.Lookup(c.Args[1], c.NowMs())
	if o == nil {
		c.Out.Null()
		return nil
	}
	payload, err := rdb.AppendPayload(nil, o.Value())
	if err != nil {
		return err
	}
	c.Out.Bulk(payload)
	return nil
}

// restoreOptions are the options of RESTORE.
type restoreOptions struct {
	replace, absolute bool
	idleSec, freq     int64 // -1 if not given
}

func (c *Ctx) restoreOptions() (restoreOptions, error) {
	options := restoreOptions{idleSec: -1, freq: -1}
	for i := 4; i < len(c.Args); i++ {
		arg, more := c.Args[i], i+1 < len(c.Args)
		var err error
		switch {
		case Is(arg, "REPLACE"):
			options.replace = true
		case Is(arg, "ABSTTL"):
			options.absolute = true
		case Is(arg, "IDLETIME") && more && options.freq == -1:
			i++
			options.idleSec, err = c.intWithin(i, math.MaxInt64, errIdletime)
		case Is(arg, "FREQ") && more && options.idleSec == -1:
			i++
			options.freq, err = c.intWithin(i, math.MaxUint8, errFreq)
		default:
			err = ErrSyntax
		}
		if err != nil {
			return options, err
		}
	}
	return options, nil
}

// intWithin is the i-th argument as an integer from 0 to most.
func (c *Ctx) intWithin(i int, most int64, otherwise Error) (int64, error) {
	n, err := c.Int(i)
	if err == nil && (n < 0 || n > most) {
		err = otherwise
	}
	return n, err
}

func restore(c *Ctx) error {
	key := c.Args[1]
	options, err := c.restoreOptions()
	if err != nil {
		return err
	}
	if !options.replace && c.DB.Lookup(key, c.NowMs()) != nil {
		return errBusyKey
	}
	ttlMs, err := c.intWithin(2, math.MaxInt64, errRestoreTTL)
	if err != nil {
		return err
	}
	if !c.payloadIsWhole(c.Args[3]) {
		return errPayload
	}
	value, err := rdb.DecodePayload(c.Args[3], &c.Space.Limits)
	if err != nil {
		return errPayloadData
	}
	c.putRestored(key, value, ttlMs, options)
	c.Out.SimpleString("OK")
	return nil
}

// payloadIsWhole reports whether a payload is of a version that can be read, and its checksum
// is right, unless nobody wants to know.
func (c *Ctx) payloadIsWhole(payload []byte) bool {
	if c.Space.SkipChecksums {
		return rdb.CheckPayloadVersion(payload)
	}
	return rdb.CheckPayload(payload)
}

// putRestored stores what RESTORE has read, unless its time is over.
func (c *Ctx) putRestored(key []byte, value any, ttlMs int64, options restoreOptions) {
	atMs := ttlMs
	if ttlMs != 0 && !options.absolute {
		atMs += c.NowMs() // may overflow: that is in the past, as in Redis
	}
	replaced := c.DB.Delete(key)
	if atMs != 0 && !c.isAhead(atMs) {
		if replaced {
			c.Touch(key, eventDel)
			c.PropagateDel(key, false)
		}
		return
	}
	o := c.DB.Put(key, value, c.NowMs())
	c.DB.SetExpire(key, o, atMs)
	if ttlMs != 0 && !options.absolute {
		c.propagateRestore(atMs)
	}
	if options.idleSec >= 0 {
		c.Space.SetIdle(o, min(options.idleSec, c.NowMs()/1000)*1000, c.NowMs())
	}
	if options.freq >= 0 {
		c.Space.SetFrequency(o, uint8(options.freq), c.NowMs())
	}
	c.Touch(key, eventRestore)
}

// propagateRestore makes the expiry absolute.
func (c *Ctx) propagateRestore(atMs int64) {
	request := c.Propagate(len(c.Args) + 1).Bytes(c.Args[0]).Bytes(c.Args[1]).Int(atMs)
	for _, arg := range c.Args[3:] {
		request.Bytes(arg)
	}
	request.Word("ABSTTL")
}

var dumpSpecs = []Spec{
	{
		Name: "dump", Arity: 2, Flags: ReadOnly, Keys: Key(1), Group: "generic", Since: "2.6.0",
		Summary: "Returns the value of a key as bytes that RESTORE takes, here and on Redis.", Complexity: "O(N) in the size of the value", Run: dump,
	},
	{
		Name: "restore", Arity: -4, Flags: Write | DenyOOM, Keys: Key(1), Group: "generic", Since: "2.6.0",
		Summary: "Creates a key from what DUMP returned.", Complexity: "O(N) in the size of the value, O(N log N) for a sorted set", Run: restore,
	},
}
