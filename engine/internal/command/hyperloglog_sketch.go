package command

import (
	"encoding/binary"
	"math/bits"
)

// sketch is the string of a HyperLogLog, laid out as in Redis:
//
//	0   HYLL
//	4   0: dense, 1: sparse
//	5   nothing
//	8   the last estimate, 8 bytes, least first; the highest bit says that it does not hold any more
//	16  the registers
//
// There are 16,384 registers, one for each value of 14 bits of an element's hash. A
// register is the longest run of zeros, and the one after it, that the other 50 bits of
// any such element began with. Dense registers are of six bits, the first in the lowest
// bits of the first byte; sparse ones see hyperloglog_sparse.go.
type sketch []byte

const (
	sketchMagic    = "HYLL"
	encodingAt     = 4
	encodingDense  = 0
	encodingSparse = 1
	countAt        = 8
	staleAt        = 15 // the byte with the highest bit of the estimate
	staleBit       = 0x80
	registersAt    = 16

	indexBits     = 14
	registerCount = 1 << indexBits
	registerBits  = 6
	registerMax   = 1<<registerBits - 1
	highestRun    = 64 - indexBits + 1 // what a register may really be
	denseBytes    = registersAt + registerCount*registerBits/8
)

// newSketch makes an empty one: a single run of zeros.
func newSketch() sketch {
	s := append(make(sketch, 0, 32), sketchMagic...)
	s = append(s, encodingSparse)
	s = append(s, make([]byte, registersAt-len(s))...)
	return appendRun(s, 0, registerCount)
}

// valid reports whether a string looks like a sketch. Sparse registers may still be none.
func (s sketch) valid() bool {
	return len(s) >= registersAt && string(s[:encodingAt]) == sketchMagic &&
		(s[encodingAt] == encodingSparse || s[encodingAt] == encodingDense && len(s) == denseBytes)
}

func (s sketch) dense() bool { return s[encodingAt] == encodingDense }

// known reports whether the last estimate still holds.
func (s sketch) known() bool { return s[staleAt]&staleBit == 0 }

// forget makes the last estimate hold no more.
func (s sketch) forget() { s[staleAt] |= staleBit }

// raise makes a register at least value, and says whether it was lower. It makes the sketch
// dense when sparse registers would take more than so many bytes in all. It is not ok if
// these are corrupt.
func (s *sketch) raise(register int, value byte, sparseBytes int) (raised, ok bool) {
	if s.dense() {
		return s.raiseDense(register, value), true
	}
	return s.raiseSparse(register, value, sparseBytes)
}

func (s sketch) raiseDense(register int, value byte) bool {
	at, shift := registersAt+register*registerBits/8, register*registerBits%8
	word := uint(s[at])
	two := shift > 8-registerBits // the register lies in two bytes
	if two {
		word |= uint(s[at+1]) << 8
	}
	if byte(word>>shift)&registerMax >= value {
		return false
	}
	word = word&^(registerMax<<shift) | uint(value)<<shift
	s[at] = byte(word)
	if two {
		s[at+1] = byte(word >> 8)
	}
	return true
}

const (
	eightBytes = 8 * registerBits / 8 // that eight dense registers take
	highBits   = 0x8080808080808080
)

// eight is the eight registers from a dense one on, each in a byte of its own.
func (s sketch) eight(register int) uint64 {
	b := s[registersAt+register/8*eightBytes:]
	x := uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32
	x = x&0xffffff | x>>24<<32
	x = x&0x00000fff00000fff | x&0x00fff00000fff000<<4
	return x&0x003f003f003f003f | x&0x0fc00fc00fc00fc0<<2
}

// registers is all registers, each in a byte of its own.
type registers [registerCount]byte

// merge raises the registers to those of a sketch. It is not ok if that is corrupt.
func (r *registers) merge(s sketch) (ok bool) {
	if !s.dense() {
		return s.eachRun(func(first, count int, value byte) {
			for i := range r[first : first+count] {
				r[first+i] = max(r[first+i], value)
			}
		})
	}
	for i := 0; i < registerCount; i += 8 {
		here, there := binary.LittleEndian.Uint64(r[i:]), s.eight(i)
		raised := ((there | highBits) - here) & highBits >> 7 * 0xff // all bits of the bytes that are not lower there
		binary.LittleEndian.PutUint64(r[i:], there&raised|here&^raised)
	}
	return true
}

// hashSeed is what Redis begins the hash of an element with.
const hashSeed = 0xadc83b19

// place is the register of an element, and what it has to be at least.
func place(element []byte) (register int, value byte) {
	hash := murmur64A(element, hashSeed)
	run := bits.TrailingZeros64(hash>>indexBits | 1<<(64-indexBits))
	return int(hash & (registerCount - 1)), byte(run + 1)
}

// murmur64A is MurmurHash64A, which Austin Appleby has put in the public domain: words of
// eight bytes, each mixed by itself and then into the hash, and at the end what is left.
func murmur64A(data []byte, seed uint64) uint64 {
	const (
		multiplier = 0xc6a4a7935bd1e995
		shift      = 47
	)
	hash := seed ^ uint64(len(data))*multiplier
	for ; len(data) >= 8; data = data[8:] {
		word := binary.LittleEndian.Uint64(data) * multiplier
		word = (word ^ word>>shift) * multiplier
		hash = (hash ^ word) * multiplier
	}
	if len(data) > 0 {
		var rest uint64
		for i, b := range data {
			rest |= uint64(b) << (8 * i)
		}
		hash = (hash ^ rest) * multiplier
	}
	hash = (hash ^ hash>>shift) * multiplier
	return hash ^ hash>>shift
}
