package command

import (
	"encoding/binary"
	"math/bits"
)

// BITCOUNT and BITPOS take a range in bytes or in bits. Inside there are only
// bits: a range of bytes is one of bits with round ends.

// bitRange is bits from first to last, both included; empty if first > last.
type bitRange struct{ first, last int64 }

// bitsBetween turns start and end, negative from the end, into the bits of a
// string of so many bytes. Unlike in the ranges of lists (Span), an end before
// the beginning is the first byte or bit.
func bitsBetween(start, end int64, inBits bool, length int) bitRange {
	units, width := int64(length), int64(8)
	if inBits {
		units, width = units*8, 1
	}
	if start < 0 {
		start = max(start+units, 0)
	}
	if end < 0 {
		end = max(end+units, 0)
	}
	end = min(end, units-1)
	if start > end {
		return bitRange{0, -1}
	}
	return bitRange{start * width, end*width + width - 1}
}

// parseBitUnit reads BYTE or BIT.
func parseBitUnit(arg []byte) (inBits bool, err error) {
	switch {
	case Is(arg, "BIT"):
		return true, nil
	case Is(arg, "BYTE"):
		return false, nil
	default:
		return false, ErrSyntax
	}
}

// bitcount finds nothing in a missing key whatever the arguments after it are,
// as Redis 7.0 does.
func bitcount(c *Ctx) error {
	data, err := readBits(c, c.Args[1])
	if err != nil {
		return err
	}
	var within bitRange
	if data == nil {
		within.last = -1
	} else if within, err = c.countRange(len(data)); err != nil {
		return err
	}
	c.Out.Int(countBits(data, within))
	return nil
}

// countRange reads the range of BITCOUNT. When both ends count from the end,
// the wrong way round, nothing further is looked at.
func (c *Ctx) countRange(length int) (bitRange, error) {
	switch len(c.Args) {
	case 2:
		return bitsBetween(0, -1, false, length), nil
	case 4, 5:
	default:
		return bitRange{}, ErrSyntax
	}
	start, err := c.Int(2)
	if err != nil {
		return bitRange{}, err
	}
	end, err := c.Int(3)
	if err != nil {
		return bitRange{}, err
	}
	if start < 0 && end < 0 && start > end {
		return bitRange{0, -1}, nil
	}
	inBits := false
	if len(c.Args) == 5 {
		if inBits, err = parseBitUnit(c.Args[4]); err != nil {
			return bitRange{}, err
		}
	}
	return bitsBetween(start, end, inBits, length), nil
}

// countBits counts the bits that are set within a range of data.
func countBits(data []byte, within bitRange) int64 {
	if within.first > within.last {
		return 0
	}
	from, to := within.first>>3, within.last>>3
	before := data[from] &^ (0xff >> (within.first & 7))
	after := data[to] & (0x7f >> (within.last & 7))
	n := -bits.OnesCount8(before) - bits.OnesCount8(after)
	data = data[from : to+1]
	for ; len(data) >= 32; data = data[32:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(data)) +
			bits.OnesCount64(binary.LittleEndian.Uint64(data[8:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(data[16:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(data[24:]))
	}
	for _, b := range data {
		n += bits.OnesCount8(b)
	}
	return int64(n)
}

// bitpos looks at the range only if there is a key. A string is followed by
// zeros without end, so a search for a clear bit finds one, unless the range
// says where to stop; a missing key consists of them.
func bitpos(c *Ctx) error {
	bit, err := c.Int(2)
	if err != nil {
		return err
	}
	if bit != 0 && bit != 1 {
		return Error("ERR The bit argument must be 1 or 0.")
	}
	data, err := readBits(c, c.Args[1])
	if err != nil {
		return err
	}
	if data == nil {
		c.Out.Int(-bit)
		return nil
	}
	within, bounded, err := c.searchRange(len(data))
	if err != nil {
		return err
	}
	at := findBit(data, bit == 1, within)
	if at < 0 && bit == 0 && !bounded && within.first <= within.last {
		at = int64(len(data)) * 8
	}
	c.Out.Int(at)
	return nil
}

// searchRange reads the range of BITPOS; bounded says that it gives an end.
func (c *Ctx) searchRange(length int) (within bitRange, bounded bool, err error) {
	var start, end int64 = 0, -1
	inBits := false
	if len(c.Args) > 6 {
		return within, false, ErrSyntax
	}
	if len(c.Args) > 3 {
		if start, err = c.Int(3); err != nil {
			return within, false, err
		}
	}
	if len(c.Args) == 6 {
		if inBits, err = parseBitUnit(c.Args[5]); err != nil {
			return within, false, err
		}
	}
	if len(c.Args) > 4 {
		if end, err = c.Int(4); err != nil {
			return within, false, err
		}
		bounded = true
	}
	return bitsBetween(start, end, inBits, length), bounded, nil
}

// findBit is the position of the first bit within a range of data that is set,
// or clear; -1 if there is none.
func findBit(data []byte, set bool, within bitRange) int64 {
	if within.first > within.last {
		return -1
	}
	flip := ^uint64(0) // makes a search for clear bits one for set bits
	if set {
		flip = 0
	}
	i, end := int(within.first>>3), int(within.last>>3)+1
	found := int64(-1)
	if first := (data[i] ^ byte(flip)) & (0xff >> (within.first & 7)); first != 0 {
		found = int64(i*8 + bits.LeadingZeros8(first))
	}
	for i++; found < 0 && i+8 <= end; i += 8 {
		if word := binary.BigEndian.Uint64(data[i:]) ^ flip; word != 0 {
			found = int64(i*8 + bits.LeadingZeros64(word))
		}
	}
	for ; found < 0 && i < end; i++ {
		if b := data[i] ^ byte(flip); b != 0 {
			found = int64(i*8 + bits.LeadingZeros8(b))
		}
	}
	if found > within.last {
		return -1
	}
	return found
}
