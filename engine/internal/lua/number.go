package lua

import (
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Lua 5.1 writes numbers with C's "%.14g" and reads them with strtod.
// gopher-lua uses Go's shortest form and Go's integer syntax ("010" is 8
// there), so every conversion of this package comes through here.

// appendNumber appends f as Lua prints it.
func appendNumber(dst []byte, f float64) []byte { return appendG(dst, f, 14) }

// appendG appends f as C's "%.<precision>g".
func appendG(dst []byte, f float64, precision int) []byte {
	if i := int64(f); float64(i) == f && -1e14 < f && f < 1e14 && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, i, 10)
	}
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return append(dst, "-nan"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', precision, 64)
}

func formatNumber(f glua.LNumber) string {
	var room [32]byte
	return string(appendNumber(room[:0], float64(f)))
}

// smallNumbers are whole numbers as Lua values. To make a value of a number
// takes memory; most that scripts meet are small.
var smallNumbers = func() (small [256]glua.LValue) {
	for i := range small {
		small[i] = glua.LNumber(i)
	}
	return small
}()

// value is a number as a Lua value.
func value(f glua.LNumber) glua.LValue {
	if f >= 0 && f < glua.LNumber(len(smallNumbers)) {
		if i := int(f); glua.LNumber(i) == f && (i != 0 || !math.Signbit(float64(f))) {
			return smallNumbers[i]
		}
	}
	return f
}

// parseDigits reads a number of up to 15 digits and nothing else, which are
// most of all numbers that scripts read.
func parseDigits[T string | []byte](s T) (n int64, ok bool) {
	if len(s) == 0 || len(s) > 15 {
		return 0, false
	}
	for i := range len(s) {
		digit := s[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + int64(digit)
	}
	return n, true
}

// parseNumber reads a number as strtod does, with blanks around it.
func parseNumber(s string) (glua.LNumber, bool) {
	if n, ok := parseDigits(s); ok {
		return glua.LNumber(n), true
	}
	s = strings.Trim(s, " \t\n\v\f\r")
	if s == "" || strings.IndexByte(s, '_') >= 0 {
		return 0, false
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
		return glua.LNumber(i), true
	}
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) <= 1 && strings.EqualFold(digits, "nan") {
		return signedNaN(s[0] == '-'), true
	}
	if len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') && !strings.ContainsAny(digits, "pP") {
		s += "p0" // C reads a hexadecimal integer; Go wants the exponent spelled out.
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return glua.LNumber(f), true
}

// signedNaN is the number that C reads as nan. It has a sign, which shows when it is
// written, and no other bits, which shows in the library "bit"; Go's has one.
func signedNaN(negative bool) glua.LNumber {
	const nan, minus = 0x7ff8 << 48, 1 << 63
	if negative {
		return glua.LNumber(math.Float64frombits(nan | minus))
	}
	return glua.LNumber(math.Float64frombits(nan))
}

// numberPrefix reads the number that text begins with, without blanks, as strtod
// does, and returns how many bytes it takes; 0 is none.
func numberPrefix(text string) (f glua.LNumber, n int) {
	if n < len(text) && (text[n] == '+' || text[n] == '-') {
		n++
	}
	sign, rest := n, text[n:]
	switch {
	case hasPrefixFold(rest, "nan"):
		return signedNaN(text[0] == '-'), sign + len("nan") + nanDetail(rest[len("nan"):])
	case hasPrefixFold(rest, "infinity"):
		n += len("infinity")
	case hasPrefixFold(rest, "inf"):
		n += len("inf")
	case hasPrefixFold(rest, "0x") && mantissa(rest[2:], isHexDigit) > 0:
		n += 2 + mantissa(rest[2:], isHexDigit)
		n += exponent(text[n:], 'p')
	case mantissa(rest, isDigit) > 0:
		n += mantissa(rest, isDigit)
		n += exponent(text[n:], 'e')
	default:
		return 0, 0
	}
	f, _ = parseNumber(text[:n])
	return f, n
}

// mantissa returns the length of the digits with at most one point among them,
// or 0 when there is no digit.
func mantissa(text string, isDigit func(byte) bool) int {
	n, digits, points := 0, 0, 0
	for ; n < len(text); n++ {
		switch {
		case isDigit(text[n]):
			digits++
		case text[n] == '.' && points == 0:
			points++
		default:
			return n * min(digits, 1)
		}
	}
	return n * min(digits, 1)
}

// exponent returns the length of an exponent that has digits, or 0.
func exponent(text string, letter byte) int {
	if len(text) < 2 || text[0]|0x20 != letter {
		return 0
	}
	first := 1
	if text[1] == '+' || text[1] == '-' {
		first++
	}
	n := first
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	if n == first {
		return 0
	}
	return n
}

// nanDetail returns the length of what C allows after nan, as in nan(12).
func nanDetail(text string) int {
	if text == "" || text[0] != '(' {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == ')':
			return i + 1
		case !isDigit(c) && !isAlpha(c) && c != '_':
			return 0
		}
	}
	return 0
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// toNumber converts numbers and numeric strings, as Lua's arithmetic does.
func toNumber(v glua.LValue) (glua.LNumber, bool) {
	switch v := v.(type) {
	case glua.LNumber:
		return v, true
	case glua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

// toText converts strings and numbers, as Lua's concatenation does.
func toText(v glua.LValue) (string, bool) {
	switch v := v.(type) {
	case glua.LString:
		return string(v), true
	case glua.LNumber:
		return formatNumber(v), true
	}
	return "", false
}

// toInt64 converts as C on amd64 does: out of range gives the smallest
// integer. Go leaves that case to the machine.
func toInt64(f glua.LNumber) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}
