package command

import (
	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// SORT reads a list, a set or a sorted set and answers with its elements in
// order, or with what other keys hold about them. One file per concept:
//
//	sort.go          what a call asks for, and the reply
//	sort_source.go   taking the elements out of the collection
//	sort_pattern.go  BY and GET: values of other keys, named after an element
//	sort_order.go    the order, and what is kept of many elements when few are wanted
//	sort_part.go     how to put only a part of many in place

const errSortScore Error = "ERR One or more scores can't be converted into double"

// sortRequest is what a call asks for.
type sortRequest struct {
	descending, alpha bool
	start, count      int64 // of LIMIT; a negative count is no limit
	by                *sortPattern
	unsorted          bool // BY a constant: the order of the collection
	get               []sortPattern
	destination       []byte // of STORE
	storing           bool
}

// parseSort reads the options; only SORT itself may store.
func (c *Ctx) parseSort(mayStore bool) (r sortRequest, err error) {
	r.count = -1
	for args := c.Args[2:]; len(args) > 0; {
		taken := 1
		switch option, left := args[0], len(args)-1; {
		case Is(option, "ASC"):
			r.descending = false
		case Is(option, "DESC"):
			r.descending = true
		case Is(option, "ALPHA"):
			r.alpha = true
		case Is(option, "LIMIT") && left >= 2:
			taken = 3
			err = r.limit(args[1], args[2])
		case mayStore && Is(option, "STORE") && left >= 1:
			taken = 2
			r.destination, r.storing = args[1], true
		case Is(option, "BY") && left >= 1:
			taken = 2
			pattern := parseSortPattern(args[1])
			// Once unsorted, always unsorted, as in Redis.
			r.by, r.unsorted = &pattern, r.unsorted || !pattern.variable
		case Is(option, "GET") && left >= 1:
			taken = 2
			r.get = append(r.get, parseSortPattern(args[1]))
		default:
			err = ErrSyntax
		}
		if err != nil {
			return r, err
		}
		args = args[taken:]
	}
	return r, nil
}

func (r *sortRequest) limit(start, count []byte) error {
	var startOK, countOK bool
	r.start, startOK = ParseInt(start)
	r.count, countOK = ParseInt(count)
	if !startOK || !countOK {
		return ErrNotInteger
	}
	return nil
}

// window is the part of a sequence of length n that the reply is to have.
func (r *sortRequest) window(n int) (from, to int) {
	start := min(max(r.start, 0), int64(n))
	if r.count < 0 {
		return int(start), n
	}
	return int(start), int(start + min(r.count, int64(n)-start))
}

func sortRead(c *Ctx) error {
	r, err := c.parseSort(false)
	if err != nil {
		return err
	}
	return c.sort(r)
}

func sortAny(c *Ctx) error {
	r, err := c.parseSort(true)
	if err != nil {
		return err
	}
	return c.sort(r)
}

func (c *Ctx) sort(r sortRequest) error {
	source, err := readSortSource(c, c.Args[1])
	if err != nil {
		return err
	}
	// The order of a set is nobody's business, but what is stored, or what a
	// script goes on with, should follow from the data alone.
	if _, isSet := source.(*ds.Set); isSet && r.unsorted && (r.storing || c.InScript) {
		r.unsorted, r.alpha, r.by = false, true, nil
	}
	var elements []string
	if r.unsorted {
		elements = takeUnsorted(source, &r)
	} else if elements, err = c.takeSorted(source, &r); err != nil {
		return err
	}
	if r.storing {
		c.storeSorted(elements, &r)
	} else {
		c.writeSorted(elements, &r)
	}
	return nil
}

// takeSorted returns the elements of the window, in order.
func (c *Ctx) takeSorted(source any, r *sortRequest) ([]string, error) {
	walk, n := walkSortSource(source)
	s := newSorter(r, n)
	for text := range walk {
		element, score, ok := c.weigh(text, r)
		if !ok {
			return nil, errSortScore
		}
		s.add(element, score)
	}
	return s.window(), nil
}

func (c *Ctx) writeSorted(elements []string, r *sortRequest) {
	c.Out.Array(len(elements) * max(len(r.get), 1))
	for _, element := range elements {
		if len(r.get) == 0 {
			c.Out.BulkString(element)
		}
		for i := range r.get {
			value, found := c.resolve(&r.get[i], element)
			if !found {
				c.Out.Null()
				continue
			}
			c.Out.BulkString(value)
		}
	}
}

// storeSorted makes a list of what the reply would be, with empty strings for
// nulls, in place of whatever the destination holds: nothing, if it is empty.
func (c *Ctx) storeSorted(elements []string, r *sortRequest) {
	list := ds.NewDeque()
	for _, element := range elements {
		if len(r.get) == 0 {
			list.PushBack(element)
		}
		for i := range r.get {
			value, _ := c.resolve(&r.get[i], element)
			list.PushBack(value)
		}
	}
	storeResult(c, r.destination, list, eventSortStore)
}

// findSortKeys is the positions of sortKeys. The keys of BY and GET depend on
// the data, so nobody can know them before.
func findSortKeys(args [][]byte) []int {
	var positions []int
	for _, use := range sortKeys(args) {
		positions = append(positions, use.Position)
	}
	return positions
}

var sortSpecs = []Spec{
	{
		Name: "sort", Arity: -2, Flags: Write | DenyOOM | MovableKeys, Keys: Key(1), FindKeys: findSortKeys, Group: "generic", Since: "1.0.0",
		Summary:    "Sorts a list, a set or a sorted set, by itself or by other keys, and may store the result.",
		Complexity: "O(N+M*log(M)) for N elements, M of them wanted", Run: sortAny,
	},
	{
		Name: "sort_ro", Arity: -2, Flags: ReadOnly | MovableKeys, Keys: Key(1), Group: "generic", Since: "7.0.0",
		Summary:    "Sorts a list, a set or a sorted set, by itself or by other keys.",
		Complexity: "O(N+M*log(M)) for N elements, M of them wanted", Run: sortRead,
	},
}
