package command

import "slices"

// Sparse registers are runs of equal ones, in the order of the registers:
//
//	00nnnnnn            n+1 registers of 0
//	01nnnnnn nnnnnnnn   n+1 registers of 0
//	1vvvvvnn            n+1 registers of v+1
//
// What a register is raised to splits a run in up to three. Which runs are joined after
// it, and which are left as they are, shows in the string: it is done as Redis does it.
// Anybody may have written the string: runs may leave out registers, have too many, or
// end within the two bytes of a long one, whose second is 0 then.

const (
	valueRunBit = 0x80
	longRunBit  = 0x40

	sparseMax       = 32 // the largest register
	shortRunMax     = 64
	valueRunMax     = 4
	joinsLookedInto = 5 // runs
)

// run reads the run at a place: the registers in it, and the bytes that it takes.
func (s sketch) run(at int) (value byte, count, size int) {
	b := s[at]
	if b>>6 == longRunBit>>6 {
		return 0, s.longRun(at), 2
	}
	if b&valueRunBit != 0 {
		value = b>>2&0x1f + 1
	}
	return value, int(shortRuns[b]), 1
}

// shortRuns is how many registers are in the runs of one byte.
var shortRuns = func() (counts [256]uint8) {
	for b := range counts {
		counts[b] = uint8(b&0x3f) + 1
		if b&valueRunBit != 0 {
			counts[b] = uint8(b&3) + 1
		}
	}
	return counts
}()

// longRun is how many registers are in a run of two bytes.
func (s sketch) longRun(at int) int {
	count := int(s[at]&0x3f)<<8 + 1
	if at+1 < len(s) {
		count += int(s[at+1])
	}
	return count
}

// find is the run that a register is in, the run before it (0 if there is none), and the
// first register in it. It is where nearly all the time of an addition goes.
func (s sketch) find(register int) (at, before, first int) {
	for at = registersAt; at < len(s); {
		b, size := s[at], 1
		end := first + int(shortRuns[b])
		if b>>6 == longRunBit>>6 {
			end, size = first+s.longRun(at), 2
		}
		if register < end {
			break
		}
		before, first = at, end
		at += size
	}
	return at, before, first
}

func valueRun(value byte, count int) byte { return valueRunBit | (value-1)<<2 | byte(count-1) }

// appendRun appends a run of so many registers, if there are any.
func appendRun(to []byte, value byte, count int) []byte {
	switch {
	case count == 0:
		return to
	case value > 0:
		return append(to, valueRun(value, count))
	case count > shortRunMax:
		return append(to, longRunBit|byte((count-1)>>8), byte(count-1))
	default:
		return append(to, byte(count-1))
	}
}

// eachRun visits the runs that are not 0, none of which goes beyond the last register, and
// says whether all runs together are as many registers as there are.
func (s sketch) eachRun(visit func(first, count int, value byte)) (ok bool) {
	first := 0
	for at := registersAt; at < len(s); {
		value, count, size := s.run(at)
		if first+count > registerCount {
			return false
		}
		if value > 0 {
			visit(first, count, value)
		}
		at += size
		first += count
	}
	return first == registerCount
}

// makeDense makes the registers dense. It is not ok if they are corrupt.
func (s *sketch) makeDense() (ok bool) {
	if s.dense() {
		return true
	}
	dense := make(sketch, denseBytes)
	copy(dense, (*s)[:registersAt])
	dense[encodingAt] = encodingDense
	ok = s.eachRun(func(first, count int, value byte) {
		for register := first; register < first+count; register++ {
			dense.raiseDense(register, value)
		}
	})
	if ok {
		*s = dense
	}
	return ok
}

func (s *sketch) raiseSparse(register int, value byte, sparseBytes int) (raised, ok bool) {
	if value > sparseMax {
		return s.raiseInDense(register, value)
	}
	at, before, first := s.find(register)
	if at >= len(*s) {
		return false, false
	}
	old, count, size := s.run(at)
	switch {
	case old >= value:
		return false, true
	case count == 1 && size == 1:
		(*s)[at] = valueRun(value, 1)
	default:
		var buffer [5]byte
		parts := appendRun(buffer[:0], old, register-first)
		parts = append(parts, valueRun(value, 1))
		parts = appendRun(parts, old, first+count-1-register)
		if more := len(parts) - size; more > 0 && len(*s)+more > sparseBytes {
			return s.raiseInDense(register, value)
		}
		s.replace(at, size, parts)
	}
	s.join(max(before, registersAt))
	s.forget()
	return true, true
}

// raiseInDense makes the registers dense, and raises one.
func (s *sketch) raiseInDense(register int, value byte) (raised, ok bool) {
	if !s.makeDense() {
		return false, false
	}
	return s.raiseDense(register, value), true
}

// replace puts other runs in the place of one. If that ends within its two bytes the
// missing one counts, and the last of parts has no room.
func (s *sketch) replace(at, size int, parts []byte) {
	if missing := at + size - len(*s); missing > 0 {
		size -= missing
		parts = parts[:len(parts)-missing]
	}
	*s = slices.Replace(*s, at, at+size, parts...)
}

// join joins neighbours of the same value, from a place on.
func (s *sketch) join(at int) {
	for looked := 0; at < len(*s) && looked < joinsLookedInto; looked++ {
		value, count, size := s.run(at)
		if value > 0 && at+1 < len(*s) {
			next, more, _ := s.run(at + 1)
			if next == value && count+more <= valueRunMax {
				(*s)[at+1] = valueRun(value, count+more)
				*s = slices.Delete(*s, at, at+1)
				continue
			}
		}
		at += size
	}
}
