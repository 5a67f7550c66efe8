package resp

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Kind says what a reply is. Its number is the byte that announces it in
// RESP3.
type Kind byte

// The kinds of replies. RESP2 knows only the first five and a null.
const (
	SimpleString Kind = '+'
	Error        Kind = '-' // RESP3's long form '!' is one of these, too
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

// Value is a decoded reply. Which fields count depends on the kind; the
// others are zero.
type Value struct {
	Kind Kind
	// Str is the text of a SimpleString, BulkString, Error (code and text),
	// Verbatim (without its format) and BigNumber (the digits).
	Str string
	// Int is the number of an Integer, and 0 or 1 for a Bool.
	Int int64
	// Float is the number of a Double.
	Float float64
	// Elems holds the elements of an Array, Set or Push; for a Map, each key
	// followed by its value.
	Elems []Value
}

// ReplyError is the text of an error reply, its code first.
type ReplyError string

// Error returns the text.
func (e ReplyError) Error() string { return string(e) }

// IsError tells if the server refused.
func (v Value) IsError() bool { return v.Kind == Error }

// Err returns an error reply as a [ReplyError], and nil for any other reply.
func (v Value) Err() error {
	if v.Kind != Error {
		return nil
	}
	return ReplyError(v.Str)
}

// Text returns the bare content: the string, or the number as text, "" for a
// null, and the elements of an aggregate one to a line.
func (v Value) Text() string {
	switch v.Kind {
	case Integer:
		return strconv.FormatInt(v.Int, 10)
	case Double:
		return FormatDouble(v.Float)
	case Bool:
		return strconv.FormatBool(v.Int != 0)
	case Array, Map, Set, Push:
		lines := make([]string, len(v.Elems))
		for i, elem := range v.Elems {
			lines[i] = elem.Text()
		}
		return strings.Join(lines, "\n")
	default:
		return v.Str
	}
}

// String shows the reply to a person, in the look known from redis-cli:
// kinds can be told apart, strings are quoted, aggregates are numbered and
// indented. It does not end with a line break.
func (v Value) String() string { return string(v.appendHuman(nil, 0)) }

// appendHuman appends the human form; the lines after the first one are
// indented.
func (v Value) appendHuman(dst []byte, indent int) []byte {
	switch v.Kind {
	case SimpleString, Verbatim, BigNumber:
		return append(dst, v.Str...)
	case Error:
		return append(append(dst, "(error) "...), v.Str...)
	case Integer:
		return strconv.AppendInt(append(dst, "(integer) "...), v.Int, 10)
	case BulkString:
		return appendQuoted(dst, v.Str)
	case Bool:
		return append(append(append(dst, '('), v.Text()...), ')')
	case Double:
		return AppendDouble(append(dst, "(double) "...), v.Float)
	case Array, Push:
		return v.appendElems(dst, indent, ')', "(empty array)")
	case Set:
		return v.appendElems(dst, indent, '~', "(empty set)")
	case Map:
		return v.appendElems(dst, indent, '#', "(empty hash)")
	default:
		return append(dst, "(nil)"...)
	}
}

// appendElems appends one element, or one pair, to a line. The numbers are
// aligned to the right, and what is nested stands to their right.
func (v Value) appendElems(dst []byte, indent int, mark byte, empty string) []byte {
	if len(v.Elems) == 0 {
		return append(dst, empty...)
	}
	step, lines := 1, len(v.Elems)
	if v.Kind == Map {
		step, lines = 2, (lines+1)/2
	}
	digits := len(strconv.Itoa(lines))
	nested := indent + digits + len(") ")
	for i := 0; i < len(v.Elems); i += step {
		if i > 0 {
			dst = append(dst, '\n')
			dst = appendSpaces(dst, indent)
		}
		number := strconv.Itoa(i/step + 1)
		dst = appendSpaces(dst, digits-len(number))
		dst = append(append(dst, number...), mark, ' ')
		dst = v.Elems[i].appendHuman(dst, nested)
		if step == 2 && i+1 < len(v.Elems) {
			dst = v.Elems[i+1].appendPaired(append(dst, " => "...), nested)
		}
	}
	return dst
}

// appendPaired appends the value of a pair: beside its key if it takes one
// line, else below it.
func (v Value) appendPaired(dst []byte, indent int) []byte {
	beside := len(dst)
	dst = v.appendHuman(dst, indent)
	if bytes.IndexByte(dst[beside:], '\n') < 0 {
		return dst
	}
	return slices.Insert(dst, beside, appendSpaces([]byte{'\n'}, indent)...)
}

func appendSpaces(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, ' ')
	}
	return dst
}

// appendQuoted appends s in double quotes, such that the inline form reads it
// back: every byte that is not printable ASCII is escaped.
func appendQuoted(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ' && c <= '~':
			dst = append(dst, c)
		case c >= '\a' && c <= '\r' && c != '\v' && c != '\f':
			dst = append(dst, '\\', "abtn\v\fr"[c-'\a'])
		default:
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(dst, '"')
}
