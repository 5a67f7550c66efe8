package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

const rangeOfStreamComplexity = "O(log(N)+M), N being the number of entries and M that of those returned."

// xrange makes XRANGE, or XREVRANGE, which gives the upper end first.
func xrange(reverse bool) func(c *Ctx) error {
	return func(c *Ctx) error {
		low, high := c.Args[2], c.Args[3]
		if reverse {
			low, high = high, low
		}
		from, err := parseStreamStart(low)
		if err != nil {
			return err
		}
		to, err := parseStreamEnd(high)
		if err != nil {
			return err
		}
		count, err := parseStreamCount(c.Args[4:])
		if err != nil {
			return err
		}
		stream, found, err := Read[*ds.Stream](c, c.Args[1])
		switch {
		case err != nil:
			return err
		case !found:
			c.Out.Array(0)
		case count == 0:
			c.Out.NullArray()
		default:
			writeStreamRange(c, stream, from, to, count, reverse)
		}
		return nil
	}
}

// parseStreamCount reads the option COUNT, any number of times. Without it there is no
// limit.
func parseStreamCount(args [][]byte) (count int, err error) {
	count = math.MaxInt
	for i := 0; i < len(args); i += 2 {
		if i+1 == len(args) || !Is(args[i], "COUNT") {
			return 0, ErrSyntax
		}
		n, ok := ParseInt(args[i+1])
		if !ok {
			return 0, ErrNotInteger
		}
		count = int(max(n, 0))
	}
	return count, nil
}

// writeStreamRange replies with at most count entries between two IDs.
func writeStreamRange(c *Ctx, stream *ds.Stream, from, to ds.StreamID, count int, reverse bool) {
	count = stream.Count(from, to, count)
	c.Out.Array(count)
	if count == 0 {
		return
	}
	walk := stream.Range
	if reverse {
		walk = stream.Backward
	}
	for e := range walk(from, to) {
		writeStreamEntry(c.Out, e)
		if count--; count == 0 {
			return
		}
	}
}
