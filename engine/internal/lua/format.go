package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// verb is one directive of string.format, as C's printf reads it.
type verb struct {
	flags     string
	width     int
	precision int // -1 when absent
	kind      byte
}

func (s *state) format(l *lua51.Thread) int {
	layout := checkString(l, 1)
	o := s.output(l)
	arg := 1
	for i := 0; i < len(layout); i++ {
		o.tidy()
		if layout[i] != '%' {
			o.text = append(o.text, layout[i])
			continue
		}
		i++
		if i < len(layout) && layout[i] == '%' {
			o.text = append(o.text, '%')
			continue
		}
		arg++
		if appendPlain(&o, layout[i:], arg) {
			continue
		}
		v, next := parseVerb(l, layout, i)
		i = next
		appendVerb(&o, v, arg)
	}
	l.Push(o.value())
	return 1
}

// appendPlain adds what a directive that has a letter only, %d or %s, stands
// for: most have, and they need no parsing.
func appendPlain(o *output, kind string, arg int) bool {
	if kind == "" {
		return false
	}
	v := o.l.Arg(arg)
	if f, ok := v.AsNumber(); ok && kind[0] == 'd' {
		o.text = strconv.AppendInt(o.text, lua51.ToInt64(f), 10)
		return true
	}
	if text, ok := v.AsString(); ok && kind[0] == 's' {
		o.add(inC(text, false))
		return true
	}
	return false
}

// parseVerb reads from behind the '%'; next is where the kind stands.
func parseVerb(l *lua51.Thread, layout string, i int) (v verb, next int) {
	start := i
	for i < len(layout) && strings.IndexByte("-+ #0", layout[i]) >= 0 {
		if i++; i-start > 5 {
			l.Raise("invalid format (repeated flags)")
		}
	}
	v.flags = layout[start:i]
	v.width, i = twoDigits(layout, i)
	v.precision = -1
	if i < len(layout) && layout[i] == '.' {
		v.precision, i = twoDigits(layout, i+1)
	}
	if i < len(layout) && isDigit(layout[i]) {
		l.Raise("invalid format (width or precision too long)")
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

func appendVerb(o *output, v verb, arg int) {
	l, out := o.l, o.text
	if arg > l.Top() {
		l.ArgError(arg, "no value")
	}
	switch v.kind {
	case 'c':
		out = append(out, inC(string(v.pad(nil, "", string([]byte{charOf(checkNumber(l, arg))}), false)), true)...)
	case 'd', 'i':
		n := lua51.ToInt64(checkNumber(l, arg))
		out = v.integer(out, strings.TrimPrefix(strconv.FormatInt(n, 10), "-"), v.sign(n < 0))
	case 'u':
		out = v.integer(out, strconv.FormatUint(unsigned(checkNumber(l, arg)), 10), "")
	case 'o', 'x', 'X':
		out = v.based(out, unsigned(checkNumber(l, arg)))
	case 'e', 'E', 'f', 'g', 'G':
		out = v.float(out, checkNumber(l, arg))
	case 'q':
		addQuoted(o, checkString(l, arg))
		return
	case 's':
		text := checkString(l, arg)
		if v.precision >= 0 && v.precision < len(text) {
			text = text[:v.precision]
		}
		text = inC(text, v.precision >= 0)
		if len(text) >= v.width {
			o.add(text)
			return
		}
		out = v.pad(out, "", text, false)
	default:
		l.Raise("invalid option '%%%s' to 'format'", strings.TrimRight(string(v.kind), "\x00"))
	}
	o.text = out
}

// charOf converts as C on amd64: what is no int is the smallest, whose lowest byte is 0.
func charOf(f float64) byte {
	if f > math.MinInt32-1 && f < math.MaxInt32+1 {
		return byte(int(f))
	}
	return 0
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
func unsigned(f float64) uint64 {
	switch {
	case f >= 1<<64:
		return 0
	case f >= 1<<63:
		return uint64(f)
	}
	return uint64(lua51.ToInt64(f))
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
	if v.precision == 0 && digits == "0" && (v.kind != 'o' || !v.has('#')) {
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

func addQuoted(o *output, text string) {
	o.text = append(o.text, '"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			o.text = append(o.text, '\\', c)
		case '\r':
			o.text = append(o.text, "\\r"...)
		case 0:
			o.text = append(o.text, "\\000"...)
		default:
			o.text = append(o.text, c)
		}
		o.tidy()
	}
	o.text = append(o.text, '"')
}
