package resp

import "math"

// parseInt reads a decimal integer in the one way an integer can be written:
// no sign but a minus, no leading zero, no blanks, no -0. The strictness is
// Redis's, and makes a header mean the same to every reader.
func parseInt(text []byte) (n int64, ok bool) {
	digits, negative := text, false
	if len(digits) > 1 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	if len(digits) == 1 && digits[0] == '0' {
		return 0, !negative
	}
	// The longest int64 has 19 digits, which a uint64 holds in any case.
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' {
		return 0, false
	}
	var sum uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		sum = sum*10 + uint64(c-'0')
	}
	if negative {
		return int64(-sum), sum <= -math.MinInt64
	}
	return int64(sum), sum <= math.MaxInt64
}
