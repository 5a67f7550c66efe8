package rdb

import (
	"encoding/binary"
	"errors"
	"iter"
)

// A payload of libraries of functions, as FUNCTION DUMP hands them out, is their records
// as a file has them, with the footer of any payload (payload.go).

// Errors of DecodeFunctions; others are an *Error.
var (
	ErrOldFunction = errors.New("rdb: functions in a format that only release candidates of Redis 7.0 had")
	ErrNotFunction = errors.New("rdb: something else than a function")
)

// AppendFunctions appends libraries, by their code, as a payload.
func AppendFunctions(dst []byte, libraries iter.Seq[string]) []byte {
	e := encoder{sink: sink{buf: dst, summed: len(dst)}}
	for code := range libraries {
		e.buf = append(e.buf, opFunction)
		e.textString(code)
	}
	return e.sealed()
}

// DecodeFunctions walks over the code of the libraries of a payload that CheckPayload
// accepts, which is the caller's, and ends after an error.
func DecodeFunctions(p []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		d := decoder{source: newByteSource(p[:max(0, len(p)-footerBytes)])}
		for d.pos < d.end {
			code, err := d.function()
			if !yield(code, err) || err != nil {
				return
			}
		}
	}
}

func (d *decoder) function() ([]byte, error) {
	switch d.byte() {
	case opFunction:
	case opFunctionOld:
		return nil, ErrOldFunction
	default:
		return nil, ErrNotFunction
	}
	code := d.ownText()
	if d.failed() {
		return nil, d.err
	}
	return code, nil
}

// sealed returns what was written, with the footer of a payload.
func (e *encoder) sealed() []byte {
	e.buf = binary.LittleEndian.AppendUint16(e.buf, versionWritten)
	return binary.LittleEndian.AppendUint64(e.buf, e.checksum())
}
