package command

import (
	"slices"
)

// LCS finds the longest common subsequence of two strings by the textbook
// table: lengths[i][j] is the length for the first i bytes of the one and the
// first j of the other. It costs time and memory in proportion to the product
// of the lengths, so the table is bounded as a string is, in Redis, too.

const errNotStrings Error = "ERR The specified keys must contain string values"

type lcsOptions struct {
	onlyLength, ranges, withLengths bool
	leastLength                     int64
}

func parseLCS(args [][]byte) (o lcsOptions, err error) {
	for i := 0; i < len(args); i++ {
		switch {
		case Is(args[i], "IDX"):
			o.ranges = true
		case Is(args[i], "LEN"):
			o.onlyLength = true
		case Is(args[i], "WITHMATCHLEN"):
			o.withLengths = true
		case Is(args[i], "MINMATCHLEN") && i+1 < len(args):
			i++
			n, ok := ParseInt(args[i])
			if !ok {
				return o, ErrNotInteger
			}
			o.leastLength = n
		default:
			return o, ErrSyntax
		}
	}
	if o.ranges && o.onlyLength {
		return o, Error("ERR If you want both the length and indexes, please just use IDX.")
	}
	return o, nil
}

func lcs(c *Ctx) error {
	var texts [2][]byte
	for i := range texts {
		_, s, err := ReadString(c, c.Args[1+i])
		if err != nil {
			return errNotStrings
		}
		if s != nil {
			texts[i] = s.Text(nil)
		}
	}
	o, err := parseLCS(c.Args[3:])
	if err != nil {
		return err
	}
	if cells := int64(len(texts[0])+1) * int64(len(texts[1])+1); cells > c.MaxStringBytes/4 {
		return Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	}
	t := newLCSTable(texts[0], texts[1])
	switch {
	case o.onlyLength:
		c.Out.Int(t.total())
	case o.ranges:
		t.writeRanges(c, o)
	default:
		c.Out.Bulk(t.subsequence())
	}
	return nil
}

type lcsTable struct {
	a, b    []byte
	lengths []uint32 // rows of len(b)+1
}

func newLCSTable(a, b []byte) *lcsTable {
	t := &lcsTable{a: a, b: b, lengths: make([]uint32, (len(a)+1)*(len(b)+1))}
	width := len(b) + 1
	for i := range a {
		above, row := t.lengths[i*width:(i+1)*width], t.lengths[(i+1)*width:(i+2)*width]
		for j := range b {
			if a[i] == b[j] {
				row[j+1] = above[j] + 1
			} else {
				row[j+1] = max(above[j+1], row[j])
			}
		}
	}
	return t
}

func (t *lcsTable) at(i, j int) uint32 { return t.lengths[i*(len(t.b)+1)+j] }

func (t *lcsTable) total() int64 { return int64(t.at(len(t.a), len(t.b))) }

// lcsRun is a run of bytes that both strings have, before positions i and j.
type lcsRun struct{ i, j, length int }

// runs lists the runs of one longest common subsequence, last first. Of several
// such subsequences it is the one that Redis finds.
func (t *lcsTable) runs() (runs []lcsRun) {
	i, j := len(t.a), len(t.b)
	for i > 0 && j > 0 {
		n := 0
		for n < i && n < j && t.a[i-n-1] == t.b[j-n-1] {
			n++
		}
		switch {
		case n > 0:
			runs = append(runs, lcsRun{i, j, n})
			i, j = i-n, j-n
		case t.at(i-1, j) > t.at(i, j-1):
			i--
		default:
			j--
		}
	}
	return runs
}

func (t *lcsTable) subsequence() []byte {
	var text []byte
	for _, r := range slices.Backward(t.runs()) {
		text = append(text, t.a[r.i-r.length:r.i]...)
	}
	return text
}

func (t *lcsTable) writeRanges(c *Ctx, o lcsOptions) {
	runs := slices.DeleteFunc(t.runs(), func(r lcsRun) bool { return int64(r.length) < o.leastLength })
	c.Out.Map(2)
	c.Out.BulkString("matches")
	c.Out.Array(len(runs))
	for _, r := range runs {
		if o.withLengths {
			c.Out.Array(3)
		} else {
			c.Out.Array(2)
		}
		for _, end := range []int{r.i, r.j} {
			c.Out.Array(2)
			c.Out.Int(int64(end - r.length))
			c.Out.Int(int64(end - 1))
		}
		if o.withLengths {
			c.Out.Int(int64(r.length))
		}
	}
	c.Out.BulkString("len")
	c.Out.Int(t.total())
}
