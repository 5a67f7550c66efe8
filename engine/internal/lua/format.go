package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// verb is one directive of string.format, as C's printf reads it.
type verb struct {
	flags     string
	width     int
	precision int // -1 when absent
	kind      byte
}

func (s *state) format(l *glua.LState) int {
	layout := checkString(l, 1, "format")
	var room [128]byte
	out := room[:0]
	arg := 1
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' {
			out = append(out, layout[i])
			continue
		}
		i++
		if i < len(layout) && layout[i] == '%' {
			out = append(out, '%')
			continue
		}
		arg++
		if plain, ok := appendPlain(l, out, layout[i:], arg); ok {
			out = plain
		} else {
			v, next := parseVerb(l, layout, i)
			i = next
			out = appendVerb(l, out, v, arg)
		}
		if len(out) > maxTextBytes {
			raise(l, noMemory)
		}
	}
	s.meter.reserve(l, len(out))
	l.Push(s.texts.get(out))
	return 1
}

// appendPlain appends a directive that has a letter only, %d or %s: most have,
// and they need no parsing.
func appendPlain(l *glua.LState, out []byte, kind string, arg int) (longer []byte, ok bool) {
	if kind == "" {
		return out, false
	}
	switch v := l.Get(arg).(type) {
	case glua.LNumber:
		if kind[0] == 'd' {
			return strconv.AppendInt(out, toInt64(v), 10), true
		}
	case glua.LString:
		if kind[0] == 's' {
			return append(out, inC(string(v), false)...), true
		}
	}
	return out, false
}

// parseVerb reads from behind the '%'; next is where the kind stands.
func parseVerb(l *glua.LState, layout string, i int) (v verb, next int) {
	start := i
	for i < len(layout) && strings.IndexByte("-+ #0", layout[i]) >= 0 {
		i++
	}
	v.flags = layout[start:i]
	if len(v.flags) > 5 {
		raise(l, "invalid format (repeated flags)")
	}
	v.width, i = twoDigits(layout, i)
	v.precision = -1
	if i < len(layout) && layout[i] == '.' {
		v.precision, i = twoDigits(layout, i+1)
	}
	if i < len(layout) && isDigit(layout[i]) {
		raise(l, "invalid format (width or precision too long)")
	}
	if i < len(layout) {
		v.kind = layout[i]
	}
	return v, i
}

func twoDigits(layout string, i int) (n, next int) {
	for digits := 0; digits < 2 && i < len(layout) && isDigit(layout[i]); digits++ {
		n = n*10 + int(layout[i]-'0')
		i++
	}
	return n, i
}

func appendVerb(l *glua.LState, out []byte, v verb, arg int) []byte {
	if arg > l.GetTop() {
		argError(l, arg, "format", "no value")
	}
	switch v.kind {
	case 'c':
		return append(out, inC(string(v.pad(nil, "", string([]byte{byte(checkInt(l, arg, "format"))}), false)), true)...)
	case 'd', 'i':
		n := toInt64(checkNumber(l, arg, "format"))
		return v.integer(out, strings.TrimPrefix(strconv.FormatInt(n, 10), "-"), v.sign(n < 0))
	case 'u':
		return v.integer(out, strconv.FormatUint(unsigned(checkNumber(l, arg, "format")), 10), "")
	case 'o', 'x', 'X':
		return v.based(out, unsigned(checkNumber(l, arg, "format")))
	case 'e', 'E', 'f', 'g', 'G':
		return v.float(out, float64(checkNumber(l, arg, "format")))
	case 'q':
		return appendQuoted(out, checkString(l, arg, "format"))
	case 's':
		text := inC(checkString(l, arg, "format"), v.precision >= 0)
		if v.precision >= 0 && v.precision < len(text) {
			text = text[:v.precision]
		}
		return v.pad(out, "", text, false)
	}
	raise(l, "invalid option '%%%s' to 'format'", strings.TrimRight(string(v.kind), "\x00"))
	return out
}

// inC is a text as C's sprintf sees it, to which it ends at a NUL. Lua gives it those of
// less than a hundred bytes, and all that are to be cut.
func inC(text string, always bool) string {
	const longBytes = 100
	if !always && len(text) >= longBytes {
		return text
	}
	before, _, _ := strings.Cut(text, "\x00")
	return before
}

// unsigned converts as C on amd64: negative numbers wrap.
func unsigned(f glua.LNumber) uint64 {
	if f >= 1<<63 && f < 1<<64 {
		return uint64(f)
	}
	return uint64(toInt64(f))
}

func (v verb) has(flag byte) bool { return strings.IndexByte(v.flags, flag) >= 0 }

func (v verb) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case v.has('+'):
		return "+"
	case v.has(' '):
		return " "
	}
	return ""
}

// pad appends prefix and body, filled up to the width.
func (v verb) pad(out []byte, prefix, body string, zeros bool) []byte {
	fill := max(v.width-len(prefix)-len(body), 0)
	switch {
	case v.has('-'):
		out = append(append(out, prefix...), body...)
		return append(out, strings.Repeat(" ", fill)...)
	case zeros && v.has('0'):
		out = append(out, prefix...)
		return append(append(out, strings.Repeat("0", fill)...), body...)
	}
	out = append(out, strings.Repeat(" ", fill)...)
	return append(append(out, prefix...), body...)
}

func (v verb) integer(out []byte, digits, sign string) []byte {
	if v.precision == 0 && digits == "0" {
		digits = ""
	}
	if missing := v.precision - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return v.pad(out, sign, digits, v.precision < 0)
}

func (v verb) based(out []byte, n uint64) []byte {
	prefix, base := "", 16
	switch {
	case v.kind == 'o':
		base = 8
	case v.has('#') && n != 0:
		prefix = "0" + string(v.kind)
	}
	digits := strconv.FormatUint(n, base)
	if v.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if v.kind == 'o' && v.has('#') && digits[0] != '0' {
		digits = "0" + digits
	}
	return v.integer(out, digits, prefix)
}

func (v verb) float(out []byte, f float64) []byte {
	sign := v.sign(math.Signbit(f))
	f = math.Abs(f)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		text := "inf"
		if math.IsNaN(f) {
			text = "nan"
		}
		if v.kind < 'a' {
			text = strings.ToUpper(text)
		}
		return v.pad(out, sign, text, false)
	}
	precision := v.precision
	if precision < 0 {
		precision = 6
	}
	if precision == 0 && v.kind|0x20 == 'g' {
		precision = 1
	}
	var body string
	if v.has('#') {
		body = fmt.Sprintf("%#.*"+string(v.kind), precision, f)
	} else {
		body = strconv.FormatFloat(f, v.kind, precision, 64)
	}
	return v.pad(out, sign, body, true)
}

func appendQuoted(out []byte, text string) []byte {
	out = append(out, '"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			out = append(out, '\\', c)
		case '\r':
			out = append(out, "\\r"...)
		case 0:
			out = append(out, "\\000"...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
