package resp

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// ErrIncomplete says that the bytes end before the reply does. With more of
// them the same call may succeed.
var ErrIncomplete = errors.New("reply is incomplete")

const okText = "OK"

// maxDepth bounds how deep aggregates may nest, and with it the stack.
const maxDepth = 512

// Parse decodes the reply at the front of b and returns how many bytes it
// took. It gives ErrIncomplete when b is cut short, and a [ProtocolError] when
// b is no reply; v and n are zero then. The nulls of RESP2 ($-1 and *-1) give
// Null like the one of RESP3. Attributes in front of a reply are dropped. The
// value shares no memory with b.
//
// It costs O(n), each time anew: whoever reads a long reply in pieces should
// call it when a good deal more has come, not after every piece.
func Parse(b []byte) (v Value, n int, err error) {
	p := parser{rest: b}
	v, err = p.value(0)
	if err != nil {
		return Value{}, 0, err
	}
	return v, len(b) - len(p.rest), nil
}

// AppendCommand appends a request to dst: an array of bulk strings.
func AppendCommand(dst []byte, args ...string) []byte {
	w := Writer{buf: dst}
	w.Array(len(args))
	for _, arg := range args {
		w.BulkString(arg)
	}
	return w.buf
}

// parser is the part of the input that was not read yet.
type parser struct{ rest []byte }

// value reads one reply, after any attributes.
func (p *parser) value(depth int) (Value, error) {
	for {
		kind, line, err := p.line()
		if err != nil {
			return Value{}, err
		}
		if kind != '|' {
			return p.body(kind, line, depth)
		}
		if _, err := p.aggregate(Map, line, depth); err != nil {
			return Value{}, err
		}
	}
}

// body decodes a reply whose first line was read.
func (p *parser) body(kind byte, line []byte, depth int) (v Value, err error) {
	v.Kind = Kind(kind)
	switch v.Kind {
	case SimpleString, Error:
		if v.Str = okText; string(line) != okText { // the most frequent one is not copied
			v.Str = string(line)
		}
	case Integer:
		v.Int, err = number(line)
	case Double:
		v.Float, err = double(line)
	case BigNumber:
		v.Str, err = bigNumber(line)
	case Bool:
		v.Int, err = boolean(line)
	case Null:
		if len(line) != 0 {
			err = malformed("null", line)
		}
	case BulkString, Verbatim, '!':
		return p.bulk(v.Kind, line)
	case Array, Map, Set, Push:
		return p.aggregate(v.Kind, line, depth)
	default:
		err = ProtocolError("unknown kind of reply " + strconv.QuoteToASCII(string([]byte{kind})))
	}
	return v, err
}

// line reads up to the next line break; the first byte is the reply's kind.
func (p *parser) line() (kind byte, line []byte, err error) {
	end := bytes.IndexByte(p.rest, '\n')
	if end < 0 {
		return 0, nil, ErrIncomplete
	}
	if end < 2 || p.rest[end-1] != '\r' {
		return 0, nil, malformed("line", p.rest[:end])
	}
	kind, line = p.rest[0], p.rest[1:end-1]
	p.rest = p.rest[end+1:]
	return kind, line, nil
}

// bulk reads the bytes that a length announced.
func (p *parser) bulk(kind Kind, line []byte) (Value, error) {
	length, err := number(line)
	if err != nil {
		return Value{}, err
	}
	if length == -1 && kind == BulkString {
		return Value{Kind: Null}, nil
	}
	if length < 0 {
		return Value{}, malformed("length", line)
	}
	if int64(len(p.rest))-2 < length {
		return Value{}, ErrIncomplete
	}
	text, tail := p.rest[:length], p.rest[length:length+2]
	if tail[0] != '\r' || tail[1] != '\n' {
		return Value{}, malformed("end of string", tail)
	}
	p.rest = p.rest[length+2:]
	switch kind {
	case '!':
		kind = Error
	case Verbatim:
		// The text follows its format: three bytes and a colon.
		if len(text) < 4 || text[3] != ':' {
			return Value{}, malformed("verbatim string", text)
		}
		text = text[4:]
	}
	return Value{Kind: kind, Str: string(text)}, nil
}

// aggregate reads the elements that a count announced.
func (p *parser) aggregate(kind Kind, line []byte, depth int) (Value, error) {
	count, err := number(line)
	if err != nil {
		return Value{}, err
	}
	if count == -1 && kind == Array {
		return Value{Kind: Null}, nil
	}
	if count < 0 || count > math.MaxInt32 {
		return Value{}, malformed("count", line)
	}
	if depth == maxDepth {
		return Value{}, ProtocolError("reply is nested too deep")
	}
	if kind == Map {
		count *= 2
	}
	v := Value{Kind: kind}
	if count > 0 {
		// The count is only a claim, hence no more than a few at first. An
		// element takes three bytes at least.
		v.Elems = make([]Value, 0, min(count, int64(len(p.rest)/3), 64))
	}
	for ; count > 0; count-- {
		elem, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		v.Elems = append(v.Elems, elem)
	}
	return v, nil
}

func number(line []byte) (int64, error) {
	n, ok := parseInt(line)
	if !ok {
		return 0, malformed("number", line)
	}
	return n, nil
}

func boolean(line []byte) (int64, error) {
	switch string(line) {
	case "t":
		return 1, nil
	case "f":
		return 0, nil
	}
	return 0, malformed("boolean", line)
}

func double(line []byte) (float64, error) {
	switch string(line) {
	case "inf":
		return math.Inf(1), nil
	case "-inf":
		return math.Inf(-1), nil
	case "nan", "-nan":
		return math.NaN(), nil
	}
	// ParseFloat would take hexadecimal numbers and more names as well.
	for _, c := range line {
		if bytes.IndexByte([]byte("0123456789.eE+-"), c) < 0 {
			return 0, malformed("double", line)
		}
	}
	f, err := strconv.ParseFloat(string(line), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, malformed("double", line)
	}
	return f, nil // out of range is an infinity
}

func bigNumber(line []byte) (string, error) {
	digits := bytes.TrimPrefix(line, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return "", malformed("big number", line)
		}
	}
	if len(digits) == 0 {
		return "", malformed("big number", line)
	}
	return string(line), nil
}

// malformed is the error for bytes that are not what they should be; it
// shows the first of them.
func malformed(what string, got []byte) error {
	const shown = 32
	return ProtocolError("malformed " + what + " " + strconv.QuoteToASCII(string(got[:min(len(got), shown)])))
}
