package command

import (
	"math"
	"strings"
)

// expiryUnit says how an expiry is given.
type expiryUnit uint8

const (
	noExpiry expiryUnit = iota
	unitEX              // seconds from now
	unitPX              // ms from now
	unitEXAT            // seconds since the epoch
	unitPXAT            // ms since the epoch
)

// expiryOption is EX, PX, EXAT or PXAT and its argument.
type expiryOption struct {
	unit expiryUnit
	arg  []byte
}

// atMs is when that is, in ms since the epoch; 0 if nothing was asked for.
func (e expiryOption) atMs(c *Ctx) (int64, error) {
	if e.unit == noExpiry {
		return 0, nil
	}
	at, ok := ParseInt(e.arg)
	if !ok {
		return 0, ErrNotInteger
	}
	seconds := e.unit == unitEX || e.unit == unitEXAT
	if at <= 0 || (seconds && at > math.MaxInt64/1000) {
		return 0, c.errExpireTime()
	}
	if seconds {
		at *= 1000
	}
	if e.unit == unitEX || e.unit == unitPX {
		if at > math.MaxInt64-c.NowMs() {
			return 0, c.errExpireTime()
		}
		at += c.NowMs()
	}
	return at, nil
}

// commandName is the name of the command that runs, in lower case.
func (c *Ctx) commandName() string { return strings.ToLower(c.Arg(0)) }

func (c *Ctx) errExpireTime() error {
	return Error("ERR invalid expire time in '" + c.commandName() + "' command")
}

// add takes an option that may be about the expiry: EX, PX, EXAT or PXAT, with
// the argument that follows. Saying the same unit twice is allowed: the last
// counts.
func (e *expiryOption) add(option []byte, following [][]byte) bool {
	unit := noExpiry
	switch {
	case Is(option, "EX"):
		unit = unitEX
	case Is(option, "PX"):
		unit = unitPX
	case Is(option, "EXAT"):
		unit = unitEXAT
	case Is(option, "PXAT"):
		unit = unitPXAT
	}
	if unit == noExpiry || len(following) == 0 || (e.unit != noExpiry && e.unit != unit) {
		return false
	}
	e.unit, e.arg = unit, following[0]
	return true
}

type setOptions struct {
	ifNew, ifExists bool // NX, XX
	get, keepTTL    bool
	expiry          expiryOption
}

func parseSetOptions(args [][]byte) (setOptions, error) {
	var o setOptions
	for i := 0; i < len(args); i++ {
		switch option := args[i]; {
		case Is(option, "NX") && !o.ifExists:
			o.ifNew = true
		case Is(option, "XX") && !o.ifNew:
			o.ifExists = true
		case Is(option, "GET"):
			o.get = true
		case Is(option, "KEEPTTL") && o.expiry.unit == noExpiry:
			o.keepTTL = true
		case !o.keepTTL && o.expiry.add(option, args[i+1:]):
			i++
		default:
			return o, ErrSyntax
		}
	}
	return o, nil
}

type getexOptions struct {
	persist bool
	expiry  expiryOption
}

func parseGetexOptions(args [][]byte) (getexOptions, error) {
	var o getexOptions
	for i := 0; i < len(args); i++ {
		switch option := args[i]; {
		case Is(option, "PERSIST") && o.expiry.unit == noExpiry:
			o.persist = true
		case !o.persist && o.expiry.add(option, args[i+1:]):
			i++
		default:
			return o, ErrSyntax
		}
	}
	return o, nil
}
