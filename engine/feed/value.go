package feed

import (
	"bytes"
	"errors"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

var errPayload = errors.New("not what DUMP answers, or of a version of the format that cannot be read")

// Same reports whether two answers to DUMP hold the same value. Servers write one value in many ways: where the bytes
// differ the values are read, and their digests compared.
func Same(a, b []byte) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	limits := ds.DefaultLimits()
	var values [2]any
	for i, payload := range [][]byte{a, b} {
		if !rdb.CheckPayloadVersion(payload) {
			return false, errPayload
		}
		var err error
		if values[i], err = rdb.DecodePayload(payload, &limits); err != nil {
			return false, err
		}
	}
	if command.DigestOf(values[0]) != command.DigestOf(values[1]) {
		return false, nil
	}
	if _, ok := values[0].(*ds.Stream); !ok {
		return true, nil
	}
	// The digest of a stream leaves its groups out; written anew by one hand, they are in one order.
	var written [2][]byte
	for i, value := range values {
		var err error
		if written[i], err = rdb.AppendPayload(nil, value); err != nil {
			return false, err
		}
	}
	return bytes.Equal(written[0], written[1]), nil
}
