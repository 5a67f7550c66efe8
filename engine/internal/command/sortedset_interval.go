package command

import (
	"bytes"
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// sortedBy is what the ends of an interval are compared with.
type sortedBy uint8

const (
	byRank sortedBy = iota
	byScore
	byBytes // of the members, where all scores are equal
)

// bound is one end of an interval. Which field counts depends on what it is compared with.
type bound struct {
	rank     int64 // negative: from the end
	score    float64
	member   []byte
	infinity int  // of bytes: -1 before everything, 1 behind everything, 0 at member
	open     bool // the bound itself does not belong to the interval
}

// interval is a part of a sorted set, from low to high.
type interval struct {
	by        sortedBy
	low, high bound
}

func parseInterval(by sortedBy, low, high []byte) (in interval, err error) {
	parse := parseRankBound
	switch by {
	case byScore:
		parse = parseScoreBound
	case byBytes:
		parse = parseBytesBound
	}
	in.by = by
	if in.low, err = parse(low); err == nil {
		in.high, err = parse(high)
	}
	return in, err
}

func parseRankBound(arg []byte) (bound, error) {
	rank, ok := ParseInt(arg)
	if !ok {
		return bound{}, ErrNotInteger
	}
	return bound{rank: rank}, nil
}

// parseScoreBound reads a score, open when it comes after a parenthesis.
// Redis hands the text to strtod and looks no further: unlike elsewhere blanks
// in front are skipped, nothing at all is 0, what is too large is infinite,
// and the text ends at a zero byte.
func parseScoreBound(arg []byte) (b bound, err error) {
	if len(arg) > 0 && arg[0] == '(' {
		b.open, arg = true, arg[1:]
	}
	if end := bytes.IndexByte(arg, 0); end >= 0 {
		arg = arg[:end]
	}
	if len(arg) == 0 {
		return b, nil
	}
	arg = bytes.TrimLeft(arg, " \t\n\v\f\r")
	score, ok := ParseFloat(arg)
	if !ok {
		score, ok = parseExtreme(arg)
	}
	if !ok {
		return b, ErrMinMaxFloat
	}
	b.score = score
	return b, nil
}

// parseExtreme reads a number that is too large or too small for a float, as
// infinity or 0.
func parseExtreme(arg []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(arg), 64)
	if err != nil && !isRangeError(err) {
		return 0, false
	}
	return f, !math.IsNaN(f) && !bytes.ContainsRune(arg, '_')
}

func parseBytesBound(arg []byte) (bound, error) {
	if len(arg) == 0 {
		return bound{}, ErrMinMaxLex
	}
	alone := len(arg) == 1 || arg[1] == 0
	switch {
	case arg[0] == '-' && alone:
		return bound{infinity: -1}, nil
	case arg[0] == '+' && alone:
		return bound{infinity: 1}, nil
	case arg[0] == '[':
		return bound{member: arg[1:]}, nil
	case arg[0] == '(':
		return bound{member: arg[1:], open: true}, nil
	default:
		return bound{}, ErrMinMaxLex
	}
}

// ranks is the interval as ranks of set, both inclusive; to < from if nothing
// lies in it. O(log n).
func (in interval) ranks(set *ds.SortedSet) (from, to int) {
	switch in.by {
	case byScore:
		from = set.CountBelow(in.low.score, in.low.open)
		to = set.CountBelow(in.high.score, !in.high.open) - 1
	case byBytes:
		from = in.low.countBelow(set, in.low.open)
		to = in.high.countBelow(set, !in.high.open) - 1
	default:
		var ok bool
		if from, to, ok = Span(in.low.rank, in.high.rank, set.Len()); !ok {
			return 0, -1
		}
	}
	return from, to
}

// countBelow is how many members lie before the bound, or before and at it.
func (b bound) countBelow(set *ds.SortedSet, orEqual bool) int {
	switch b.infinity {
	case -1:
		return 0
	case 1:
		return set.Len()
	default:
		return set.CountLexBelow(string(b.member), orEqual)
	}
}
