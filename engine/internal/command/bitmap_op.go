package command

import (
	"encoding/binary"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// bitwise is an operation. The sources of BITOP count as followed by zeros up
// to the longest of them.
type bitwise struct {
	name string
	// into combines the beginning of result with source, which is not longer.
	// Each has a loop of its own, since a call for every word takes longer than
	// what is done with it.
	into func(result, source []byte)
}

var bitwises = []bitwise{{"AND", andInto}, {"OR", orInto}, {"XOR", xorInto}, {"NOT", notInto}}

func parseBitwise(arg []byte) (bitwise, error) {
	for _, operation := range bitwises {
		if Is(arg, operation.name) {
			return operation, nil
		}
	}
	return bitwise{}, ErrSyntax
}

func bitop(c *Ctx) error {
	operation, err := parseBitwise(c.Args[1])
	if err != nil {
		return err
	}
	destination, keys := c.Args[2], c.Args[3:]
	if operation.name == "NOT" && len(keys) != 1 {
		return Error("ERR BITOP NOT must be called with a single source key.")
	}
	sources, longest := make([][]byte, len(keys)), 0
	for i, key := range keys {
		if sources[i], err = readBits(c, key); err != nil {
			return err
		}
		longest = max(longest, len(sources[i]))
	}
	if longest > 0 {
		c.DB.Put(destination, keyspace.NewRawString(operation.combine(sources, longest)), c.NowMs())
		c.Touch(destination, eventSet)
	} else if c.DB.Delete(destination) {
		c.Touch(destination, eventDel)
	}
	c.Out.Int(int64(longest))
	return nil
}

// combine makes a string of so many bytes out of the sources.
func (o bitwise) combine(sources [][]byte, length int) []byte {
	result := make([]byte, length)
	copy(result, sources[0])
	if o.name == "NOT" {
		o.into(result, sources[0])
	}
	for _, source := range sources[1:] {
		o.into(result, source)
		if o.name == "AND" {
			clear(result[len(source):])
		}
	}
	return result
}

func andInto(result, source []byte) {
	for ; len(source) >= 8; result, source = result[8:], source[8:] {
		binary.LittleEndian.PutUint64(result, binary.LittleEndian.Uint64(result)&binary.LittleEndian.Uint64(source))
	}
	for i, b := range source {
		result[i] &= b
	}
}

func orInto(result, source []byte) {
	for ; len(source) >= 8; result, source = result[8:], source[8:] {
		binary.LittleEndian.PutUint64(result, binary.LittleEndian.Uint64(result)|binary.LittleEndian.Uint64(source))
	}
	for i, b := range source {
		result[i] |= b
	}
}

func xorInto(result, source []byte) {
	for ; len(source) >= 8; result, source = result[8:], source[8:] {
		binary.LittleEndian.PutUint64(result, binary.LittleEndian.Uint64(result)^binary.LittleEndian.Uint64(source))
	}
	for i, b := range source {
		result[i] ^= b
	}
}

func notInto(result, source []byte) {
	for ; len(source) >= 8; result, source = result[8:], source[8:] {
		binary.LittleEndian.PutUint64(result, ^binary.LittleEndian.Uint64(source))
	}
	for i, b := range source {
		result[i] = ^b
	}
}
