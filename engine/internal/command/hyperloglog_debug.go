package command

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// pfdebug turns the string into a raw one whatever it is asked, as Redis does.
func pfdebug(c *Ctx) error {
	s, err := editSketch(c, c.Args[2])
	if err != nil {
		return err
	}
	if s == nil {
		return Error("ERR The specified key does not exist")
	}
	switch word := c.Args[1]; {
	case Is(word, "GETREG"):
		return pfdebugGetReg(c, s)
	case Is(word, "DECODE"):
		return pfdebugDecode(c, *s)
	case Is(word, "ENCODING"):
		c.Out.SimpleString(s.encoding())
	case Is(word, "TODENSE"):
		changed, err := pfdebugDense(c, s)
		if err != nil {
			return err
		}
		c.Out.Int(int64(oneIf(changed)))
	default:
		return Error(fmt.Sprintf("ERR Unknown PFDEBUG subcommand '%s'", word))
	}
	return nil
}

func (s sketch) encoding() string {
	if s.dense() {
		return "dense"
	}
	return "sparse"
}

// pfdebugDense makes a sketch dense. That is propagated, though the sketch means the same,
// and nobody who watches it is told.
func pfdebugDense(c *Ctx, s *sketch) (changed bool, err error) {
	if s.dense() {
		return false, nil
	}
	if !s.makeDense() {
		return false, errCorruptSketch
	}
	c.Space.Dirty++
	return true, nil
}

func pfdebugGetReg(c *Ctx, s *sketch) error {
	if _, err := pfdebugDense(c, s); err != nil {
		return err
	}
	c.Out.Array(registerCount)
	var all registers
	all.merge(*s)
	for _, value := range all {
		c.Out.Int(int64(value))
	}
	return nil
}

// pfdebugDecode writes runs of sparse registers: z and Z for those of 0, short and long,
// and v for others, with the value first.
func pfdebugDecode(c *Ctx, s sketch) error {
	if s.dense() {
		return Error("ERR HLL encoding is not sparse")
	}
	var text strings.Builder
	separator := ""
	for at := registersAt; at < len(s); {
		value, count, size := s.run(at)
		text.WriteString(separator)
		switch {
		case value > 0:
			fmt.Fprintf(&text, "v:%d,%d", value, count)
		case size == 1:
			fmt.Fprintf(&text, "z:%d", count)
		default:
			fmt.Fprintf(&text, "Z:%d", count)
		}
		separator = " "
		at += size
	}
	c.Out.BulkString(text.String())
	return nil
}

const (
	// selfTestRounds is how often all registers are written and read.
	selfTestRounds = 100
	// selfTestElements is how many elements are counted. Redis takes ten times as many,
	// and a second for it, in which it answers nobody.
	selfTestElements = 1_000_000
)

func pfselftest(c *Ctx) error {
	if err := testRegisters(c); err != nil {
		return err
	}
	if err := testEstimates(c); err != nil {
		return err
	}
	c.Out.SimpleString("OK")
	return nil
}

// testRegisters checks that each register keeps what is put into it.
func testRegisters(c *Ctx) error {
	for range selfTestRounds {
		s, want := make(sketch, denseBytes), registers{}
		for i := range want {
			want[i] = byte(c.Rand.IntN(registerMax + 1))
			s.raiseDense(i, want[i])
		}
		var got registers
		got.merge(s)
		for i := range want {
			if got[i] != want[i] {
				return Error(fmt.Sprintf("ERR TESTFAILED Register %d should be %d but is %d", i, want[i], got[i]))
			}
		}
	}
	return nil
}

// testEstimates checks that estimates are within six standard errors, and that dense and
// sparse registers agree.
func testEstimates(c *Ctx) error {
	var element [8]byte
	sparse, dense, seed, limit := newSketch(), newSketch(), c.Rand.Uint64(), c.Space.Limits.HyperLogLogBytes
	dense.makeDense()
	checkpoint := uint64(1)
	for n := uint64(1); n <= selfTestElements; n++ {
		binary.LittleEndian.PutUint64(element[:], n^seed)
		register, value := place(element[:])
		sparse.raise(register, value, limit)
		dense.raise(register, value, limit)
		if n < checkpoint {
			continue
		}
		checkpoint *= 10
		if sparse.dense() && n < uint64(limit/2) {
			return Error("ERR TESTFAILED sparse encoding not used")
		}
		few, _ := sparse.histogram()
		many, _ := dense.histogram()
		if few.estimate() != many.estimate() {
			return Error("ERR TESTFAILED dense/sparse disagree")
		}
		off := math.Abs(float64(n) - float64(many.estimate()))
		if off > max(math.Ceil(6*1.04/math.Sqrt(registerCount)*float64(n)), 1) {
			return Error(fmt.Sprintf("ERR TESTFAILED Too big error. card:%d abserr:%d", n, int64(off)))
		}
	}
	return nil
}
