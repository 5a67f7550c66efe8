package command

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// bitModel is bitmaps as slices of bits, next to those that commands work on.
type bitModel struct {
	c    *Ctx
	t    rapid.TB
	bits map[string][]bool
}

func (m *bitModel) set(key string, at int, bit bool) {
	bits := m.bits[key]
	for len(bits) < (at/8+1)*8 {
		bits = append(bits, false)
	}
	old := bits[at]
	bits[at] = bit
	m.bits[key] = bits
	expect(m.t, m.c, fmt.Sprintf("(integer) %d", oneIf(old)), "SETBIT", key, strconv.Itoa(at), strconv.Itoa(oneIf(bit)))
}

func (m *bitModel) count(key string, from, to int) {
	want := 0
	for i, bit := range m.bits[key] {
		want += oneIf(bit && from <= i && i <= to)
	}
	expect(m.t, m.c, fmt.Sprintf("(integer) %d", want), "BITCOUNT", key, strconv.Itoa(from), strconv.Itoa(to), "BIT")
}

func (m *bitModel) find(key string, bit bool, from, to int) {
	if len(m.bits[key]) == 0 {
		return // a missing key is full of zeros, whatever the range
	}
	want := -1
	for i := min(to, len(m.bits[key])-1); i >= from; i-- {
		if m.bits[key][i] == bit {
			want = i
		}
	}
	expect(m.t, m.c, fmt.Sprintf("(integer) %d", want),
		"BITPOS", key, strconv.Itoa(oneIf(bit)), strconv.Itoa(from), strconv.Itoa(to), "BIT")
}

func (m *bitModel) combine(name, to string, from []string, operation func(a, b bool) bool) {
	var result []bool
	for _, key := range from {
		for len(result) < len(m.bits[key]) {
			result = append(result, false)
		}
	}
	for i := range result {
		result[i] = m.at(from[0], i)
		for _, key := range from[1:] {
			result[i] = operation(result[i], m.at(key, i))
		}
	}
	m.bits[to] = result
	expect(m.t, m.c, fmt.Sprintf("(integer) %d", len(result)/8), append([]string{"BITOP", name, to}, from...)...)
}

func (m *bitModel) at(key string, i int) bool { return i < len(m.bits[key]) && m.bits[key][i] }

func (m *bitModel) check() {
	for key, bits := range m.bits {
		for i := range len(bits) + 9 {
			expect(m.t, m.c, fmt.Sprintf("(integer) %d", oneIf(m.at(key, i))), "GETBIT", key, strconv.Itoa(i))
		}
	}
}

func TestBitmapsMatchModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := &bitModel{c: newTestCtx(), t: r, bits: map[string][]bool{}}
		key := rapid.SampledFrom([]string{"a", "b", "c"})
		at := rapid.IntRange(0, 700) // several words, and what is left of them
		r.Repeat(map[string]func(*rapid.T){
			"set":   func(r *rapid.T) { m.set(key.Draw(r, "key"), at.Draw(r, "at"), rapid.Bool().Draw(r, "bit")) },
			"count": func(r *rapid.T) { m.count(key.Draw(r, "key"), at.Draw(r, "from"), at.Draw(r, "to")) },
			"find": func(r *rapid.T) {
				m.find(key.Draw(r, "key"), rapid.Bool().Draw(r, "bit"), at.Draw(r, "from"), at.Draw(r, "to"))
			},
			"and": func(r *rapid.T) {
				m.combine("AND", key.Draw(r, "to"), rapid.SliceOfN(key, 1, 3).Draw(r, "from"), func(a, b bool) bool { return a && b })
			},
			"or": func(r *rapid.T) {
				m.combine("OR", key.Draw(r, "to"), rapid.SliceOfN(key, 1, 3).Draw(r, "from"), func(a, b bool) bool { return a || b })
			},
			"xor": func(r *rapid.T) {
				m.combine("XOR", key.Draw(r, "to"), rapid.SliceOfN(key, 1, 3).Draw(r, "from"), func(a, b bool) bool { return a != b })
			},
			"not": func(r *rapid.T) {
				from := key.Draw(r, "from")
				inverse := slices.Clone(m.bits[from])
				for i := range inverse {
					inverse[i] = !inverse[i]
				}
				to := key.Draw(r, "to")
				m.bits[to] = inverse
				expect(r, m.c, fmt.Sprintf("(integer) %d", len(inverse)/8), "BITOP", "NOT", to, from)
			},
			"": func(*rapid.T) { m.check() },
		})
	})
}

// A field is where its bits are, whatever byte they begin in, and writing one
// leaves its neighbours alone.
func TestBitfieldsAreBits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c := newTestCtx()
		before := rapid.SliceOfN(rapid.Byte(), 24, 24).Draw(r, "before")
		width := rapid.IntRange(1, 63).Draw(r, "width")
		offset := rapid.IntRange(0, 120).Draw(r, "offset")
		value := rapid.Uint64Range(0, 1<<width-1).Draw(r, "value")
		run(r, c, "SET", "k", string(before))
		run(r, c, "BITFIELD", "k", "SET", fmt.Sprintf("u%d", width), strconv.Itoa(offset), strconv.FormatUint(value, 10))
		want := new(big.Int).SetBytes(before)
		shift := 24*8 - offset - width
		for i := range width {
			want.SetBit(want, shift+i, uint(value>>i&1))
		}
		if got := call(r, c, "GET", "k").Str; new(big.Int).SetBytes([]byte(got)).Cmp(want) != 0 {
			r.Fatalf("%x, want %x", got, want)
		}
		got := call(r, c, "BITFIELD_RO", "k", "GET", fmt.Sprintf("u%d", width), strconv.Itoa(offset)).Elems[0].Int
		if got != int64(value) {
			r.Fatalf("reads %d, want %d", got, value)
		}
	})
}

// INCRBY is exact arithmetic, cut to the type by each of the rules.
func TestBitfieldOverflowMatchesExactArithmetic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		kind := fieldType{signed: rapid.Bool().Draw(r, "signed")}
		kind.width = uint(rapid.IntRange(1, 63+oneIf(kind.signed)).Draw(r, "width"))
		lowest, highest := kind.bounds()
		value := rapid.Int64Range(lowest, highest).Draw(r, "value")
		delta := rapid.Int64().Draw(r, "delta")
		sum := new(big.Int).Add(big.NewInt(value), big.NewInt(delta))
		above, below := sum.Cmp(big.NewInt(highest)) > 0, sum.Cmp(big.NewInt(lowest)) < 0

		failed, ok := kind.fit(value, delta, overflowFail)
		if ok == (above || below) || (ok && failed != sum.Int64()) {
			r.Errorf("FAIL: %d, %v for %d", failed, ok, sum)
		}
		want := sum.Int64()
		if above {
			want = highest
		} else if below {
			want = lowest
		}
		if got, _ := kind.fit(value, delta, overflowSaturate); got != want {
			r.Errorf("SAT: %d, want %d", got, want)
		}
		wrapped, _ := kind.fit(value, delta, overflowWrap)
		size := new(big.Int).Lsh(big.NewInt(1), kind.width)
		if wrapped < lowest || wrapped > highest || new(big.Int).Mod(new(big.Int).Sub(sum, big.NewInt(wrapped)), size).Sign() != 0 {
			r.Errorf("WRAP: %d for %d", wrapped, sum)
		}
	})
}

func BenchmarkBitcount(b *testing.B) { benchmarkBits(b, "BITCOUNT", "k") }
func BenchmarkBitpos(b *testing.B)   { benchmarkBits(b, "BITPOS", "k", "0") }
func BenchmarkBitopAnd(b *testing.B) { benchmarkBits(b, "BITOP", "AND", "d", "k", "k") }

func benchmarkBits(b *testing.B, request ...string) {
	const size = 1 << 20
	c := newTestCtx()
	call(b, c, "SETRANGE", "k", strconv.Itoa(size-1), "x")
	call(b, c, "BITOP", "NOT", "k", "k")
	b.SetBytes(size)
	for b.Loop() {
		call(b, c, request...)
	}
}
