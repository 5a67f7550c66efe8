package exec

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// The limits of compact collections, as parameters: they change what OBJECT
// ENCODING says of what is written from then on. Each has a second, older name.
//
// list-max-listpack-size is here because tools set it; a list is a quicklist
// whatever it says, in Redis 7.0 too.
func (m *Machine) encodingParams() map[string]param {
	limits := &m.space.Limits
	params := map[string]param{
		"set-max-intset-entries": countParam(&limits.SetIntegers, 0, math.MaxInt64),
	}
	for _, p := range []struct {
		kind, what string
		param      param
	}{
		{"hash", "entries", countParam(&limits.HashEntries, 0, math.MaxInt64)},
		{"hash", "value", lengthParam(&limits.HashBytes)},
		{"zset", "entries", countParam(&limits.SortedSetEntries, 0, math.MaxInt64)},
		{"zset", "value", lengthParam(&limits.SortedSetBytes)},
		{"list", "size", countParam(&m.config.listNodeSize, math.MinInt32, math.MaxInt32)},
	} {
		params[p.kind+"-max-listpack-"+p.what] = p.param
		params[p.kind+"-max-ziplist-"+p.what] = p.param
	}
	return params
}

// countParam is a whole number between least and most.
func countParam(target *int, least, most int64) param {
	return param{
		get: func() string { return strconv.Itoa(*target) },
		set: func(value string) error {
			n, ok := command.ParseInt([]byte(value))
			switch {
			case !ok:
				return errors.New("argument couldn't be parsed into an integer")
			case n < least || n > most:
				return fmt.Errorf("argument must be between %d and %d inclusive", least, most)
			}
			*target = int(n)
			return nil
		},
	}
}

// lengthParam is a number of bytes, which may have a unit.
func lengthParam(target *int) param {
	return param{
		get: func() string { return strconv.Itoa(*target) },
		set: func(value string) error {
			n, ok := parseBytes(value)
			if !ok {
				return errors.New("argument must be a memory value")
			}
			*target = int(n)
			return nil
		},
	}
}
