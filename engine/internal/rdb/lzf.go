package rdb

import "math/bits"

// LZF is the compression of long strings in the format. Compressed data is a
// sequence of two things, told apart by the upper three bits of a byte:
//
//	000nnnnn                    n+1 literal bytes follow
//	lllooooo oooooooo           copy l+2 bytes (l is 1 to 6) from o+1 bytes back
//	111ooooo llllllll oooooooo  copy l+9 bytes from o+1 bytes back
//
// A copy may reach into what it writes itself: one byte, copied from one back, is
// a run. The compressor is greedy. It remembers, for each hash of three bytes,
// where they were seen last, and takes that place if it is a match; the longer it
// finds none, the larger its steps, so that random data costs little.

const (
	lzfWindow     = 1 << 13 // how far back a copy may reach
	lzfLiteralMax = 32
	lzfCopyMin    = 3
	lzfCopyMax    = 264
	lzfSourceMax  = 1 << 30 // what is longer is not compressed

	lzfTableBitsMin = 6
	lzfTableBitsMax = 14
)

// lzfLength returns the length of what src is the compression of; ok is false if
// it is none. It costs no memory, so that a false claim of a length does not either.
func lzfLength(src []byte) (length int, ok bool) {
	i := 0
	for i < len(src) {
		control := int(src[i])
		i++
		if control < lzfLiteralMax {
			i += control + 1
			length += control + 1
			continue
		}
		n := control >> 5
		if n == 7 && i < len(src) {
			n += int(src[i])
			i++
		}
		if i >= len(src) {
			return 0, false
		}
		back := (control&0x1f)<<8 | int(src[i])
		i++
		if back >= length {
			return 0, false
		}
		length += n + 2
		if length < 0 { // more than an int holds
			return 0, false
		}
	}
	return length, i == len(src)
}

// lzfExpand appends to dst, which is empty, what src is the compression of.
// lzfLength has said that src is in order.
func lzfExpand(dst, src []byte) []byte {
	for i := 0; i < len(src); {
		control := int(src[i])
		i++
		if control < lzfLiteralMax {
			dst = append(dst, src[i:i+control+1]...)
			i += control + 1
			continue
		}
		n := control >> 5
		if n == 7 {
			n += int(src[i])
			i++
		}
		back := (control&0x1f)<<8 | int(src[i])
		i++
		dst = lzfCopy(dst, back+1, n+2)
	}
	return dst
}

// lzfCopy appends n bytes of dst itself, from so many bytes back.
func lzfCopy(dst []byte, back, n int) []byte {
	from := len(dst) - back
	for n > back { // what is there repeats: each round doubles it
		dst = append(dst, dst[from:]...)
		n -= back
		back = len(dst) - from
	}
	return append(dst, dst[from:from+n]...)
}

// lzf compresses. It keeps its table between calls.
type lzf struct {
	seen  []uint32 // hash of three bytes to their last position plus one
	shift uint     // from a hash to a place in the table
}

// compress appends to dst the compression of src; ok is false if that would take
// more than most bytes, and what was appended is of no use.
func (z *lzf) compress(dst, src []byte, most int) (out []byte, ok bool) {
	if len(src) > lzfSourceMax {
		return dst, false
	}
	table := z.reset(len(src))
	limit := len(dst) + most
	literals := 0 // where the bytes begin that no copy covers so far
	for i := 0; i+lzfCopyMin <= len(src); {
		slot := &table[z.hash(src[i:])]
		candidate := int(*slot) - 1
		*slot = uint32(i + 1)
		n := matchLength(src, candidate, i)
		if n < lzfCopyMin {
			i += 1 + (i-literals)>>5
			continue
		}
		dst = appendLiterals(dst, src[literals:i])
		dst = appendCopy(dst, i-candidate, n)
		if len(dst) > limit {
			return dst, false
		}
		for literals = i + n; i < literals && i+lzfCopyMin <= len(src); i++ {
			table[z.hash(src[i:])] = uint32(i + 1)
		}
	}
	dst = appendLiterals(dst, src[literals:])
	return dst, len(dst) <= limit
}

// reset returns an empty table, larger for a longer source: to empty it must not
// cost more than to compress.
func (z *lzf) reset(sourceLength int) []uint32 {
	size := min(max(bits.Len(uint(sourceLength)), lzfTableBitsMin), lzfTableBitsMax)
	z.shift = uint(32 - size)
	if len(z.seen) < 1<<size {
		z.seen = make([]uint32, 1<<size)
	}
	table := z.seen[:1<<size]
	clear(table)
	return table
}

func (z *lzf) hash(b []byte) uint32 {
	three := uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	return three * 2654435761 >> z.shift
}

// matchLength is how many bytes, as far as one copy goes, are the same at
// candidate and at i; none if candidate is no place or too far back.
func matchLength(src []byte, candidate, i int) int {
	if candidate < 0 || i-candidate > lzfWindow {
		return 0
	}
	most := min(len(src)-i, lzfCopyMax)
	n := 0
	for n < most && src[candidate+n] == src[i+n] {
		n++
	}
	return n
}

func appendLiterals(dst, literals []byte) []byte {
	for len(literals) > 0 {
		n := min(len(literals), lzfLiteralMax)
		dst = append(dst, byte(n-1))
		dst = append(dst, literals[:n]...)
		literals = literals[n:]
	}
	return dst
}

func appendCopy(dst []byte, back, n int) []byte {
	offset, length := back-1, n-2
	if length < 7 {
		return append(dst, byte(length<<5|offset>>8), byte(offset))
	}
	return append(dst, byte(7<<5|offset>>8), byte(length-7), byte(offset))
}
