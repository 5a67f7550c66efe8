package rdb

import (
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// view makes a string of bytes that nobody changes any more, without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// viewBytes is the bytes of a string, to be read only.
func viewBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// parseScore reads a score as text. The result is never NaN.
func parseScore(text []byte) (score float64, ok bool) {
	if strings.Contains(view(text), "_") { // Go reads numbers with underscores, C does not
		return 0, false
	}
	score, err := strconv.ParseFloat(view(text), 64)
	return score, err == nil && !math.IsNaN(score)
}

// appendScore writes a score as C's %.17g does.
func appendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	default:
		return strconv.AppendFloat(dst, score, 'g', 17, 64)
	}
}
