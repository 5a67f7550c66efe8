package command

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// ParseInt reads a 64-bit integer as Redis does: an optional minus, digits
// without leading zeros, nothing else. It does not allocate.
func ParseInt(b []byte) (int64, bool) { return ds.ParseInt(b) }

// ParseFloat reads a float as Redis does: what strtod reads in whole, hex and
// infinity included, but not NaN, and nothing that is out of a double's range.
func ParseFloat(b []byte) (float64, bool) {
	if len(b) == 0 || bytes.IndexByte(b, '_') >= 0 {
		return 0, false
	}
	text := unsafe.String(&b[0], len(b))
	if hex := bytes.ContainsAny(b, "xX"); hex && !bytes.ContainsAny(b, "pP") {
		text = string(b) + "p0" // strconv wants the exponent that strtod does not
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	return f, f != 0 || !bytes.ContainsAny(mantissa(b), "123456789abcdfABCDF")
}

// mantissa is the part of a number before its exponent: a mantissa that is not
// zero, in a number that is, means that the number was too small.
func mantissa(b []byte) []byte {
	exponent := "eE"
	if bytes.ContainsAny(b, "xX") {
		exponent = "pP"
	}
	if i := bytes.IndexAny(b, exponent); i >= 0 {
		return b[:i]
	}
	return b
}

// Int is the i-th argument as an integer.
func (c *Ctx) Int(i int) (int64, error) {
	n, ok := ParseInt(c.Args[i])
	if !ok {
		return 0, ErrNotInteger
	}
	return n, nil
}

// Float is the i-th argument as a float.
func (c *Ctx) Float(i int) (float64, error) {
	f, ok := ParseFloat(c.Args[i])
	if !ok {
		return 0, ErrNotFloat
	}
	return f, nil
}

// TimeoutUs is the i-th argument as a blocking timeout: seconds, with a
// fraction, into µs; 0 is for ever.
func (c *Ctx) TimeoutUs(i int) (int64, error) {
	if len(c.Args[i]) >= longDoubleMaxChars {
		return 0, ErrTimeout
	}
	seconds, ok := ParseFloat(c.Args[i])
	if !ok {
		if _, err := strconv.ParseFloat(string(c.Args[i]), 64); isRangeError(err) {
			return 0, ErrNegative // Redis reads a long double, which then overflows
		}
		return 0, ErrTimeout
	}
	if ms := math.Ceil(seconds * 1e3); ms < 0 || ms >= math.MaxInt64 {
		return 0, ErrNegative
	}
	return int64(math.Ceil(min(max(seconds, 0)*1e6, math.MaxInt64/2))), nil
}

// Span turns start and stop, negative from the end, into the indexes of a
// sequence of length n; ok is false if nothing lies between them.
func Span(start, stop int64, n int) (from, to int, ok bool) {
	length := int64(n)
	if start < 0 {
		start = max(start+length, 0)
	}
	if stop < 0 {
		stop += length
	}
	stop = min(stop, length-1)
	if start > stop || start >= length {
		return 0, 0, false
	}
	return int(start), int(stop), true
}

// isRangeError reports whether strconv understood a number that it cannot hold.
func isRangeError(err error) bool { return errors.Is(err, strconv.ErrRange) }
