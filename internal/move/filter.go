package move

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox/engine/feed"
)

// The filter decides what of the stream goes to the target.
//
// It also knows when each key that expires will. The target is no replica: it removes a key when its time has come by
// its own clock, and hears a moment later that the source had given the key more time. A lease that was renewed would
// be lost so, and during the copying that moment is long. So a request on a key whose time may be over at the target is
// noted, and the key is copied anew in the pause, when nothing changes (relay.go).
type filter struct {
	match    string
	commands *feed.Commands
	expireAt map[key]int64 // ms; may be too early, never too late
	within   []int         // scratch: places of the keys that are meant
}

// key is one in a database.
type key struct {
	db   int
	name string
}

func newFilter(match string) *filter {
	return &filter{match: match, commands: feed.NewCommands(), expireAt: map[key]int64{}}
}

// expires notes when a key expires; 0 is never.
func (f *filter) expires(db int, name []byte, atMs int64) {
	if atMs > 0 {
		f.expireAt[key{db, string(name)}] = atMs
	}
}

// verdict is what becomes of a request.
type verdict struct {
	send    [][]byte // nil: nothing
	keys    []key    // that expire, and when the first one does
	firstMs int64
	control bool // MULTI or EXEC
}

func is(arg []byte, word string) bool {
	return len(arg) == len(word) && bytes.EqualFold(arg, []byte(word))
}

func isAny(arg []byte, words ...string) bool {
	for _, word := range words {
		if is(arg, word) {
			return true
		}
	}
	return false
}

// judge decides on a request of the stream.
func (f *filter) judge(db int, request [][]byte) (v verdict, err error) {
	v.firstMs = math.MaxInt64
	name := request[0]
	switch {
	case isAny(name, "MULTI", "EXEC"):
		return verdict{send: request, control: true, firstMs: math.MaxInt64}, nil
	case isAny(name, "FLUSHALL", "FLUSHDB", "SWAPDB"):
		if f.match != "" {
			return v, fmt.Errorf("move: %w: the stream has %s, which is about keys that do not begin with %s, too: "+
				"run the command again, it begins anew", ErrRefused, name, f.match)
		}
		clear(f.expireAt)
		v.send = request
		return v, nil
	case f.match != "" && isAny(name, "PUBLISH", "SPUBLISH", "FUNCTION", "SCRIPT"):
		return v, nil // about no key
	}
	places, known := f.commands.Keys(request)
	if f.match != "" {
		if !known {
			return v, fmt.Errorf("move: %w: the stream has %.40q, and nobody knows its keys: move without --match, or see that it is "+
				"not used meanwhile", ErrRefused, name)
		}
		if v.send, err = f.reduce(request, places); v.send == nil {
			return v, err
		}
		places = f.within
	} else {
		v.send = request
	}
	f.time(db, v.send, places, &v)
	return v, nil
}

// reduce leaves of a request what is about keys that are meant; their places are in f.within then.
func (f *filter) reduce(request [][]byte, places []int) ([][]byte, error) {
	f.within = f.within[:0]
	for _, at := range places {
		if bytes.HasPrefix(request[at], []byte(f.match)) {
			f.within = append(f.within, at)
		}
	}
	step := 0
	switch {
	case len(f.within) == 0:
		return nil, nil
	case len(f.within) == len(places):
		return request, nil
	case isAny(request[0], "DEL", "UNLINK"):
		step = 1
	case isAny(request[0], "MSET", "MSETNX"):
		step = 2
	default:
		return nil, fmt.Errorf("move: %w: the stream has %s on keys that begin with %s and on others (%.60q): such a command cannot be "+
			"moved in part; move without --match, or see that it is not used meanwhile", ErrRefused, request[0], f.match, request[1:])
	}
	part := [][]byte{request[0]}
	for i, at := range f.within {
		f.within[i] = len(part)
		part = append(part, request[at:at+step]...)
	}
	return part, nil
}

// time finds out which keys of a request may be over at the target, and keeps track of when keys expire.
func (f *filter) time(db int, request [][]byte, places []int, v *verdict) {
	for _, at := range places {
		k := key{db, string(request[at])}
		if ms, ok := f.expireAt[k]; ok {
			v.keys, v.firstMs = append(v.keys, k), min(v.firstMs, ms)
		}
	}
	if len(places) == 0 {
		return
	}
	k := key{db, string(request[places[0]])}
	name := request[0]
	switch {
	case isAny(name, "DEL", "UNLINK"):
		for _, at := range places {
			delete(f.expireAt, key{db, string(request[at])})
		}
	case is(name, "PERSIST"):
		delete(f.expireAt, k)
	case isAny(name, "RENAME", "RENAMENX", "COPY") && len(places) == 2:
		// The new one may have got the time of the old: it is too early at worst.
		if ms, ok := f.expireAt[k]; ok {
			f.expireAt[key{db, string(request[places[1]])}] = ms
		}
	case isAny(name, "COPY", "MOVE", "RESTORE"): // to another database, or in any other way
		v.keys, v.firstMs = append(v.keys, k), 0
	default:
		if ms, ok := expiry(request); ok {
			f.expireAt[k] = ms
		} else if is(name, "SET") && !hasWord(request, "KEEPTTL") {
			delete(f.expireAt, k)
		}
	}
}

func hasWord(request [][]byte, word string) bool {
	for _, arg := range request {
		if is(arg, word) {
			return true
		}
	}
	return false
}

// expiry is when the key of a request expires by it. Streams have absolute times; older servers may say it otherwise.
func expiry(request [][]byte) (ms int64, ok bool) {
	unit, at := int64(1), -1
	relative := false
	switch name := request[0]; {
	case is(name, "PEXPIREAT"):
		at = 2
	case is(name, "EXPIREAT"):
		unit, at = 1000, 2
	case isAny(name, "PEXPIRE", "PSETEX"):
		relative, at = true, 2
	case isAny(name, "EXPIRE", "SETEX"):
		unit, relative, at = 1000, true, 2
	case isAny(name, "SET", "GETEX"):
		for i := 2; i+1 < len(request); i++ {
			switch word := request[i]; {
			case i < 3 && is(name, "SET"): // the value
			case is(word, "PXAT"):
				at = i + 1
			case is(word, "EXAT"):
				unit, at = 1000, i+1
			case is(word, "PX"):
				relative, at = true, i+1
			case is(word, "EX"):
				unit, relative, at = 1000, true, i+1
			}
		}
	}
	if at < 0 || at >= len(request) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(request[at]), 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, false
	}
	if n *= unit; relative {
		n += time.Now().UnixMilli()
	}
	return n, true
}
