package lua51

import (
	"math"
	"strconv"
	"strings"
)

// Lua 5.1 writes numbers with C's "%.14g" and reads them with strtod.
// Go has its own forms of both ("010" is 8 there), so every conversion comes
// through here.

// AppendNumber appends f as Lua prints it.
func AppendNumber(dst []byte, f float64) []byte { return AppendG(dst, f, 14) }

// AppendG appends f as C's "%.<precision>g".
func AppendG(dst []byte, f float64, precision int) []byte {
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

func FormatNumber(f float64) string {
	var room [32]byte
	return string(AppendNumber(room[:0], f))
}

// ParseDigits reads a number of up to 18 digits and nothing else, which are
// most of all numbers that scripts read.
func ParseDigits[T string | []byte](s T) (n int64, ok bool) {
	if len(s) == 0 || len(s) > 18 {
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

// MaxNumberText is how long the text of a number can be: a longer one would hold
// up others.
const MaxNumberText = 64 << 10

// ParseNumber reads a number as strtod does, with blanks around it.
func ParseNumber(s string) (float64, bool) {
	if n, ok := ParseDigits(s); ok {
		return float64(n), true
	}
	if len(s) > MaxNumberText {
		return 0, false
	}
	s, _, _ = strings.Cut(s, "\x00") // where it ends in C
	s = strings.Trim(s, " \t\n\v\f\r")
	if s == "" || strings.IndexByte(s, '_') >= 0 {
		return 0, false
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
		return float64(i), true
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
	return f, true
}

// signedNaN is the number that C reads as nan. It has a sign, which shows when it is
// written, and no other bits, which shows in the library "bit"; Go's has one.
func signedNaN(negative bool) float64 {
	const nan, minus = 0x7ff8 << 48, 1 << 63
	if negative {
		return float64(math.Float64frombits(nan | minus))
	}
	return float64(math.Float64frombits(nan))
}

// NumberPrefix reads the number that text begins with, without blanks, as strtod
// does, and returns how many bytes it takes; 0 is none.
func NumberPrefix(text string) (f float64, n int) {
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
	f, _ = ParseNumber(text[:n])
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

// ToInt64 converts as C on amd64 does: out of range gives the smallest
// integer. Go leaves that case to the machine.
func ToInt64(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

func isAlpha(c byte) bool    { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
