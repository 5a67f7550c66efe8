package lua

import (
	"math"
	"math/bits"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The library "bit": 32-bit operations whose results are signed.

func (s *state) bitLibrary() library {
	return s.functions(map[string]lua51.GoFunction{
		"tobit":   bitUnary(func(a uint32) uint32 { return a }),
		"bnot":    bitUnary(func(a uint32) uint32 { return ^a }),
		"bswap":   bitUnary(bits.ReverseBytes32),
		"band":    bitFold(func(a, b uint32) uint32 { return a & b }),
		"bor":     bitFold(func(a, b uint32) uint32 { return a | b }),
		"bxor":    bitFold(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  bitShift(func(a uint32, n int) uint32 { return a << n }),
		"rshift":  bitShift(func(a uint32, n int) uint32 { return a >> n }),
		"arshift": bitShift(func(a uint32, n int) uint32 { return uint32(int32(a) >> n) }),
		"rol":     bitShift(bits.RotateLeft32),
		"ror":     bitShift(func(a uint32, n int) uint32 { return bits.RotateLeft32(a, -n) }),
		"tohex":   bitHex,
	})
}

// roundingBias is so large that the sum of it and a number has no bits left for a
// fraction: it rounds to an integer, whose low bits are those of the sum.
const roundingBias = 3 << 51

// checkBits rounds to an integer and keeps its low 32 bits. Beyond 2^51 it does
// what the bit library does, which warns of that.
func checkBits(l *lua51.Thread, n int) uint32 {
	return uint32(math.Float64bits(checkNumber(l, n) + roundingBias))
}

func pushBits(l *lua51.Thread, a uint32) int {
	l.PushInt(int(int32(a)))
	return 1
}

func bitUnary(compute func(uint32) uint32) lua51.GoFunction {
	return func(l *lua51.Thread) int { return pushBits(l, compute(checkBits(l, 1))) }
}

func bitFold(compute func(a, b uint32) uint32) lua51.GoFunction {
	return func(l *lua51.Thread) int {
		a := checkBits(l, 1)
		for i := 2; i <= l.Top(); i++ {
			a = compute(a, checkBits(l, i))
		}
		return pushBits(l, a)
	}
}

func bitShift(compute func(a uint32, n int) uint32) lua51.GoFunction {
	return func(l *lua51.Thread) int {
		return pushBits(l, compute(checkBits(l, 1), int(checkBits(l, 2)&31)))
	}
}

func bitHex(l *lua51.Thread) int {
	a := checkBits(l, 1)
	n := int32(8)
	if !l.Arg(2).IsNil() {
		n = int32(checkBits(l, 2))
	}
	digits := "0123456789abcdef"
	if n < 0 {
		n, digits = -n, "0123456789ABCDEF"
	}
	n = min(n, 8)
	if n < 0 { // the smallest integer has no positive twin
		n = 8
	}
	text := make([]byte, n)
	for i := n - 1; i >= 0; i-- {
		text[i] = digits[a&15]
		a >>= 4
	}
	l.Push(l.State().Text(text))
	return 1
}
