package command

import (
	"bytes"
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

const errStreamID Error = "ERR Invalid stream ID specified as stream command argument"

// parseStreamID reads an ID: ms-seq, or ms alone, which stands for ms with the sequence
// number given.
func parseStreamID(arg []byte, seq uint64) (ds.StreamID, error) {
	id, seqGiven, err := parseStreamParts(arg, seq)
	if err == nil && !seqGiven {
		err = errStreamID
	}
	return id, err
}

// parseStreamParts reads an ID that may leave the sequence number to us, as ms-*; then
// seqGiven is false.
func parseStreamParts(arg []byte, seq uint64) (id ds.StreamID, seqGiven bool, err error) {
	const mostBytes = 127
	if len(arg) > mostBytes {
		return id, true, errStreamID
	}
	ms, rest, hasSeq := bytes.Cut(cString(arg), []byte("-"))
	id = ds.StreamID{Seq: seq}
	ok, seqGiven := false, true
	if id.Ms, ok = parseUint(ms); !ok {
		return id, true, errStreamID
	}
	switch {
	case hasSeq && string(rest) == "*":
		id.Seq, seqGiven = 0, false
	case hasSeq:
		if id.Seq, ok = parseUint(rest); !ok {
			return id, true, errStreamID
		}
	}
	return id, seqGiven, nil
}

// parseStreamBound is parseStreamID that takes - for the lowest ID and + for the largest.
func parseStreamBound(arg []byte, seq uint64) (ds.StreamID, error) {
	switch string(cString(arg)) {
	case "-":
		return ds.StreamID{}, nil
	case "+":
		return ds.MaxStreamID, nil
	default:
		return parseStreamID(arg, seq)
	}
}

// parseStreamStart reads the lower end of a range, which is left out after a parenthesis.
func parseStreamStart(arg []byte) (ds.StreamID, error) {
	if len(arg) < 2 || arg[0] != '(' {
		return parseStreamBound(arg, 0)
	}
	id, err := parseStreamID(arg[1:], 0)
	if err != nil {
		return id, err
	}
	id, ok := id.Next()
	if !ok {
		return id, Error("ERR invalid start ID for the interval")
	}
	return id, nil
}

// parseStreamEnd reads the upper end of a range, which is left out after a parenthesis.
func parseStreamEnd(arg []byte) (ds.StreamID, error) {
	if len(arg) < 2 || arg[0] != '(' {
		return parseStreamBound(arg, math.MaxUint64)
	}
	id, err := parseStreamID(arg[1:], math.MaxUint64)
	if err != nil {
		return id, err
	}
	id, ok := id.Prev()
	if !ok {
		return id, Error("ERR invalid end ID for the interval")
	}
	return id, nil
}

// parseStreamIDs reads several IDs; one that is wrong spoils them all.
func parseStreamIDs(args [][]byte) ([]ds.StreamID, error) {
	ids := make([]ds.StreamID, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = parseStreamID(arg, 0); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// parseUint reads one half of an ID, as Redis does with C's strtoull: blanks in front, a
// sign and leading zeros are fine, and what is below zero wraps around, unless it is
// written as ParseInt has it.
func parseUint(b []byte) (uint64, bool) {
	if n, ok := ParseInt(b); ok {
		return uint64(n), n >= 0
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	negative := len(b) > 0 && b[0] == '-'
	if negative || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	var n uint64
	for _, digit := range b {
		d := uint64(digit - '0')
		if digit < '0' || digit > '9' || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		n = -n
	}
	return n, len(b) > 0
}

// cString is the part of b that C takes for the whole: up to the first zero byte.
func cString(b []byte) []byte {
	before, _, _ := bytes.Cut(b, []byte{0})
	return before
}

func writeStreamID(out *resp.Writer, id ds.StreamID) {
	var text [41]byte // two numbers of 20 digits
	out.Bulk(id.Append(text[:0]))
}

// writeStreamEntry replies with an entry: its ID, then its fields and values in turn.
func writeStreamEntry(out *resp.Writer, e ds.StreamEntry) {
	out.Array(2)
	writeStreamID(out, e.ID)
	out.Array(2 * e.Len())
	for field, value := range e.Fields() {
		out.Bulk(field)
		out.Bulk(value)
	}
}
