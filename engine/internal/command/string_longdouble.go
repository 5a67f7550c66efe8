package command

import (
	"math/big"
	"strconv"
	"strings"
)

// INCRBYFLOAT and HINCRBYFLOAT count in C's long double, which on the machines
// Redis runs on is x86's 80-bit float: a mantissa of 64 bits. Results show it
// (0.1 + 0.2 is 0.3, not 0.30000000000000004), so the same arithmetic is done
// here, with big.Float.
//
//	func parseLongDouble(b []byte) (f *big.Float, ok bool)
//	func sumLongDouble(a, b *big.Float) (sum string, ok bool)

const (
	longDoubleBits     = 64
	longDoubleMaxExp   = 16384  // of the largest, with a mantissa in [0.5, 1)
	longDoubleMinExp   = -16445 // of what rounds to the smallest subnormal
	longDoubleMaxChars = 5 * 1024
	// longDoubleFarExp is an exponent, binary or decimal, beyond what any
	// mantissa of longDoubleMaxChars digits could bring back into range.
	longDoubleFarExp = 60000
)

// parseLongDouble reads a number as strtold does: decimal or hexadecimal, with
// an exponent or infinite. It does not accept NaN, or what is too large or too
// small (but not zero) for a long double.
func parseLongDouble(b []byte) (f *big.Float, ok bool) {
	if len(b) == 0 || len(b) >= longDoubleMaxChars {
		return nil, false
	}
	text := strings.ToLower(string(b))
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 {
		return nil, false
	}
	if digits == "inf" || digits == "infinity" {
		return new(big.Float).SetInf(text[0] == '-'), true
	}
	alphabet, exponentMark := "0123456789.e+-", "e"
	if strings.HasPrefix(digits, "0x") {
		alphabet, exponentMark, digits = "0123456789abcdef.p+-", "p", digits[2:]
	}
	if strings.Trim(digits, alphabet) != "" {
		return nil, false
	}
	if _, exponent, found := strings.Cut(digits, exponentMark); found {
		n, err := strconv.Atoi(exponent)
		if err != nil && !isRangeError(err) {
			return nil, false
		}
		if n > longDoubleFarExp || n < -longDoubleFarExp { // only zero stays in range
			text = strings.TrimSuffix(text, exponentMark+exponent)
			f, _, err = big.ParseFloat(text, 0, longDoubleBits, big.ToNearestEven)
			return f, err == nil && f.Sign() == 0
		}
	}
	f, _, err := big.ParseFloat(text, 0, longDoubleBits, big.ToNearestEven)
	if err != nil {
		return nil, false
	}
	exponent := f.MantExp(nil)
	return f, f.Sign() == 0 || (longDoubleMinExp <= exponent && exponent <= longDoubleMaxExp)
}

// sumLongDouble adds and formats: 17 digits after the point, less the zeros at
// the end. It is not ok if the sum is not finite.
func sumLongDouble(a, b *big.Float) (sum string, ok bool) {
	if a.IsInf() || b.IsInf() {
		return "", false
	}
	total := new(big.Float).SetPrec(longDoubleBits).Add(a, b)
	if total.MantExp(nil) > longDoubleMaxExp {
		return "", false
	}
	sum = strings.TrimRight(total.Text('f', 17), "0")
	sum = strings.TrimSuffix(sum, ".")
	if sum == "-0" {
		sum = "0"
	}
	return sum, true
}
