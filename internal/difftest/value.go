package difftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the first byte of a reply on the wire.
type Kind byte

// The kinds of RESP2 and RESP3.
const (
	SimpleString Kind = '+'
	Error        Kind = '-'
	Integer      Kind = ':'
	BulkString   Kind = '$'
	Array        Kind = '*'
	Null         Kind = '_'
	Bool         Kind = '#'
	Double       Kind = ','
	BigNumber    Kind = '('
	Verbatim     Kind = '='
	Map          Kind = '%'
	Set          Kind = '~'
	Push         Kind = '>'
)

// Value is a reply as it was on the wire.
type Value struct {
	Kind  Kind
	Text  string  // of everything that has no elements; numbers as they were written
	Nil   bool    // the null string and the null array of RESP2
	Elems []Value // of a map: keys and values by turns
}

// String writes the value in the notation of transcripts.
func (v Value) String() string { return v.format(mode{}) }

// mode says which differences between two replies count.
type mode struct {
	sorted, pairs, loose bool
	shell                bool // written as redis-cli shows it, which tells fewer kinds apart
}

// format writes the value so that two replies have the same text if and only
// if they are equal in that mode.
func (v Value) format(m mode) string {
	if m.shell {
		return v.formatShell(m)
	}
	if v.Nil {
		if v.Kind == Array {
			return "(nil array)"
		}
		return "(nil)"
	}
	switch v.Kind {
	case Array, Map, Set, Push:
		return v.formatElems(m)
	case Null:
		return "(null)"
	}
	if m.loose {
		return looseNames[v.Kind]
	}
	switch v.Kind {
	case BulkString:
		return quote(v.Text)
	case BigNumber:
		return "(big)" + v.Text
	case Verbatim:
		format, text, _ := strings.Cut(v.Text, ":")
		return "=" + format + quote(text)
	}
	return string(v.Kind) + visible(escape(v.Text))
}

// visible shows a space at the end of a line, which nobody sees and some
// editors remove.
func visible(line string) string {
	if bare, ok := strings.CutSuffix(line, " "); ok {
		return bare + `\x20`
	}
	return line
}

var looseNames = map[Kind]string{
	SimpleString: "(status)", Error: "(error)", Integer: "(integer)", BulkString: "(string)",
	Bool: "(bool)", Double: "(double)", BigNumber: "(big number)", Verbatim: "(verbatim)",
}

// equal reports whether two values are the same in every detail.
func (v Value) equal(other Value) bool {
	return v.Kind == other.Kind && v.Nil == other.Nil && v.Text == other.Text && slices.EqualFunc(v.Elems, other.Elems, Value.equal)
}

// formatElems writes a value that has elements, each on lines of its own.
func (v Value) formatElems(m mode) string {
	items := make([]string, 0, len(v.Elems))
	step := 1
	if v.Kind == Map || (m.pairs && v.flat() && len(v.Elems)%2 == 0) {
		step = 2
	}
	for i := 0; i < len(v.Elems); i += step {
		item := v.Elems[i].format(m)
		if step == 2 && v.Kind == Map {
			item += " = " + v.Elems[i+1].format(m)
		} else if step == 2 {
			item += "\n" + v.Elems[i+1].format(m)
		}
		items = append(items, item)
	}
	ordered := v.Kind == Array && !v.flat() && (!m.pairs || !v.paired()) || v.Kind == Push
	if (m.sorted || m.pairs) && !ordered {
		slices.Sort(items)
	}
	n := len(v.Elems)
	if v.Kind == Map {
		n /= 2
	}
	text := fmt.Sprintf("%c%d", v.Kind, n)
	for _, item := range items {
		text += "\n  " + strings.ReplaceAll(item, "\n", "\n  ")
	}
	return text
}

// formatShell writes a value of RESP2 as redis-cli shows it on a terminal.
func (v Value) formatShell(m mode) string {
	switch {
	case v.Nil:
		return "(nil)"
	case v.Kind == Array:
		return v.numbered(m)
	case m.loose:
		return looseNames[v.Kind]
	}
	switch v.Kind {
	case BulkString:
		return quote(v.Text)
	case Integer:
		return "(integer) " + v.Text
	case Error:
		return "(error) " + visible(escape(v.Text))
	default:
		return visible(escape(v.Text))
	}
}

// numbered writes the elements of an array with their numbers, below each
// other.
func (v Value) numbered(m mode) string {
	if len(v.Elems) == 0 {
		return "(empty array)"
	}
	step := 1
	if m.pairs && v.flat() && len(v.Elems)%2 == 0 {
		step = 2
	}
	items := make([][]string, 0, len(v.Elems))
	for i := 0; i < len(v.Elems); i += step {
		var item []string
		for _, elem := range v.Elems[i : i+step] {
			item = append(item, elem.format(m))
		}
		items = append(items, item)
	}
	if (m.sorted || m.pairs) && v.flat() {
		slices.SortFunc(items, slices.Compare)
	}
	width := len(strconv.Itoa(len(v.Elems)))
	var lines []string
	for i, text := range slices.Concat(items...) {
		indented := strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", width+2))
		lines = append(lines, fmt.Sprintf("%*d) %s", width, i+1, indented))
	}
	return strings.Join(lines, "\n")
}

// flat reports whether no element has elements.
func (v Value) flat() bool {
	return !slices.ContainsFunc(v.Elems, func(e Value) bool {
		return e.Kind == Array || e.Kind == Map || e.Kind == Set || e.Kind == Push
	})
}

// paired reports whether all elements are pairs, which is how RESP3 writes fields
// with their values where the order may matter.
func (v Value) paired() bool {
	return !slices.ContainsFunc(v.Elems, func(e Value) bool {
		return e.Kind != Array || len(e.Elems) != 2 || !e.flat()
	})
}

// quote writes a string as redis-cli does.
func quote(s string) string {
	return `"` + strings.ReplaceAll(escape(s), `"`, `\"`) + `"`
}

// escape writes everything but printable ASCII as an escape.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; c {
		case '\\':
			b.WriteString(`\\`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			if c < ' ' || c > '~' {
				fmt.Fprintf(&b, `\x%02x`, c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}
