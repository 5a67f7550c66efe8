package lua

import (
	"math"
	"math/bits"

	glua "github.com/yuin/gopher-lua"
)

// The library "bit": 32-bit operations whose results are signed.

func (s *state) bitLibrary() library {
	return s.functions(map[string]glua.LGFunction{
		"tobit":   bitUnary("tobit", func(a uint32) uint32 { return a }),
		"bnot":    bitUnary("bnot", func(a uint32) uint32 { return ^a }),
		"bswap":   bitUnary("bswap", bits.ReverseBytes32),
		"band":    bitFold("band", func(a, b uint32) uint32 { return a & b }),
		"bor":     bitFold("bor", func(a, b uint32) uint32 { return a | b }),
		"bxor":    bitFold("bxor", func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  bitShift("lshift", func(a uint32, n int) uint32 { return a << n }),
		"rshift":  bitShift("rshift", func(a uint32, n int) uint32 { return a >> n }),
		"arshift": bitShift("arshift", func(a uint32, n int) uint32 { return uint32(int32(a) >> n) }),
		"rol":     bitShift("rol", bits.RotateLeft32),
		"ror":     bitShift("ror", func(a uint32, n int) uint32 { return bits.RotateLeft32(a, -n) }),
		"tohex":   bitHex,
	})
}

// roundingBias is so large that the sum of it and a number has no bits left for a
// fraction: it rounds to an integer, whose low bits are those of the sum.
const roundingBias = 3 << 51

// checkBits rounds to an integer and keeps its low 32 bits. Beyond 2^51 it does
// what the bit library does, which warns of that.
func checkBits(l *glua.LState, n int, function string) uint32 {
	return uint32(math.Float64bits(float64(checkNumber(l, n, function)) + roundingBias))
}

func pushBits(l *glua.LState, a uint32) int {
	l.Push(glua.LNumber(int32(a)))
	return 1
}

func bitUnary(name string, compute func(uint32) uint32) glua.LGFunction {
	return func(l *glua.LState) int { return pushBits(l, compute(checkBits(l, 1, name))) }
}

func bitFold(name string, compute func(a, b uint32) uint32) glua.LGFunction {
	return func(l *glua.LState) int {
		a := checkBits(l, 1, name)
		for i := 2; i <= l.GetTop(); i++ {
			a = compute(a, checkBits(l, i, name))
		}
		return pushBits(l, a)
	}
}

func bitShift(name string, compute func(a uint32, n int) uint32) glua.LGFunction {
	return func(l *glua.LState) int {
		return pushBits(l, compute(checkBits(l, 1, name), int(checkBits(l, 2, name)&31)))
	}
}

func bitHex(l *glua.LState) int {
	a := checkBits(l, 1, "tohex")
	n := int32(8)
	if l.Get(2) != glua.LNil {
		n = int32(checkBits(l, 2, "tohex"))
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
	l.Push(glua.LString(text))
	return 1
}
