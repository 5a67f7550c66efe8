package command

import "github.com/signalbox-io/signalbox/engine/internal/ds"

const (
	errRankZero Error = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
		"or use negative to start from the end of the list"
	errCountNegative  Error = "ERR COUNT can't be negative"
	errMaxLenNegative Error = "ERR MAXLEN can't be negative"
)

// positionOptions are the options of LPOS.
type positionOptions struct {
	rank     int64 // report from this match on; 1 is the first
	backward bool  // search from the tail
	many     bool  // COUNT was given: the reply is an array
	count    int64 // how many matches to report; 0 is all
	maxLen   int64 // how many elements to look at; 0 is all
}

// parsePosition reads the options of LPOS, given after its value.
func parsePosition(args [][]byte) (positionOptions, error) {
	o := positionOptions{rank: 1, count: 1}
	for ; len(args) > 1; args = args[2:] {
		if err := o.set(args[0], args[1]); err != nil {
			return o, err
		}
	}
	if len(args) > 0 {
		return o, ErrSyntax
	}
	return o, nil
}

func (o *positionOptions) set(option, arg []byte) error {
	n, ok := ParseInt(arg)
	switch {
	case Is(option, "RANK") && !ok:
		return ErrNotInteger
	case Is(option, "RANK") && n == 0:
		return errRankZero
	case Is(option, "RANK"):
		// The least integer has no opposite and stays; so in Redis, where it
		// makes every match count and COUNT end nothing. See find.
		if o.rank, o.backward = n, n < 0; o.backward {
			o.rank = -n
		}
	case Is(option, "COUNT") && (!ok || n < 0):
		return errCountNegative
	case Is(option, "COUNT"):
		o.many, o.count = true, n
	case Is(option, "MAXLEN") && (!ok || n < 0):
		return errMaxLenNegative
	case Is(option, "MAXLEN"):
		o.maxLen = n
	default:
		return ErrSyntax
	}
	return nil
}

// find returns the positions of elements that equal value, in the order of the
// search.
func (o *positionOptions) find(list *ds.Deque, value []byte) []int {
	last := list.Len() - 1
	looked := list.Len()
	if o.maxLen > 0 {
		looked = int(min(o.maxLen, int64(looked)))
	}
	elements := list.Range(0, looked-1)
	if o.backward {
		elements = list.Backward(last-looked+1, last)
	}
	var positions []int
	var matches int64
	for i, element := range elements {
		if element != string(value) {
			continue
		}
		if matches++; matches < o.rank {
			continue
		}
		positions = append(positions, i)
		if o.count > 0 && matches-o.rank+1 >= o.count {
			break
		}
	}
	return positions
}

func lpos(c *Ctx) error {
	options, err := parsePosition(c.Args[3:])
	if err != nil {
		return err
	}
	list, found, err := Read[*ds.Deque](c, c.Args[1])
	if err != nil {
		return err
	}
	var positions []int
	if found {
		positions = options.find(list, c.Args[2])
	}
	switch {
	case options.many:
		c.Out.Array(len(positions))
		for _, position := range positions {
			c.Out.Int(int64(position))
		}
	case len(positions) > 0:
		c.Out.Int(int64(positions[0]))
	default:
		c.Out.Null()
	}
	return nil
}

var listPositionSpecs = []Spec{
	{
		Name: "lpos", Arity: -3, Flags: ReadOnly, Keys: Key(1), Group: "list", Since: "6.0.6",
		Summary:    "Finds where a value is in a list.",
		Complexity: "O(N), N being the number of elements looked at.",
		Run:        lpos,
	},
}
