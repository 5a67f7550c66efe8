package rdb

import (
	"encoding/binary"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// A payload is one value, as DUMP hands it out and RESTORE takes it:
//
//	type | value | version of the format (2) | checksum of all before it (8)
//
// The two numbers at the end are little endian.

const footerBytes = 2 + checksumLength

// EnvelopeBytes is how much longer a payload is than its value: by the type and the footer.
const EnvelopeBytes = 1 + footerBytes

// AppendPayload appends value as a payload. The error is for what is no value.
// O(n) in the size of the value.
func AppendPayload(dst []byte, value any) ([]byte, error) {
	number, err := kind(value)
	if err != nil {
		return dst, err
	}
	e := encoder{sink: sink{buf: dst, summed: len(dst)}}
	e.buf = append(e.buf, number)
	e.value(value)
	return e.sealed(), nil
}

// CheckPayload reports whether p is a payload that arrived whole, in a version of
// the format that this package reads. It says nothing of the value.
func CheckPayload(p []byte) bool {
	sum := len(p) - checksumLength
	return CheckPayloadVersion(p) && updateCRC(0, p[:sum]) == binary.LittleEndian.Uint64(p[sum:])
}

// CheckPayloadVersion is CheckPayload without the checksum.
func CheckPayloadVersion(p []byte) bool {
	return len(p) >= footerBytes && binary.LittleEndian.Uint16(p[len(p)-footerBytes:]) <= versionMax
}

// DecodePayload returns the value of a payload that CheckPayload accepts. The
// value keeps no reference to p, but is within the limits from then on. The error is an *Error. Bytes between the value
// and the end of the payload are ignored, as Redis ignores them. O(n) in the size
// of the value.
func DecodePayload(p []byte, limits *ds.Limits) (any, error) {
	d := decoder{source: newByteSource(p[:max(0, len(p)-footerBytes)]), limits: limits}
	value := d.value(d.byte())
	if isEmptyCollection(value) {
		d.fail("a collection without elements")
	}
	if d.failed() {
		return nil, d.err
	}
	return value, nil
}
