package command

import (
	"math"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Lists. One file per concept:
//
//	list.go           elements: push, pop, read, replace, remove
//	list_move.go      popping from several lists, moving from one to another
//	list_position.go  LPOS, which has a search of its own
//	list_blocking.go  the popping and moving commands that wait
//
// Most commands come in two, for the head and for the tail. They are one
// function that is told the end.

// listEnd is one of the two ends of a list.
type listEnd bool

const (
	listHead listEnd = false
	listTail listEnd = true
)

func (end listEnd) push(list *ds.Deque, element string) {
	if end == listTail {
		list.PushBack(element)
	} else {
		list.PushFront(element)
	}
}

// pop takes an element off a list that is not empty.
func (end listEnd) pop(list *ds.Deque) string {
	var element string
	if end == listTail {
		element, _ = list.PopBack()
	} else {
		element, _ = list.PopFront()
	}
	return element
}

func (end listEnd) pushed() keyspace.Event {
	if end == listTail {
		return eventRPush
	}
	return eventLPush
}

// name is how Redis writes the end itself.
func (end listEnd) name() string {
	if end == listTail {
		return "right"
	}
	return "left"
}

// popCommand is the command that pops at this end.
func (end listEnd) popCommand() string {
	if end == listTail {
		return "RPOP"
	}
	return "LPOP"
}

func (end listEnd) popped() keyspace.Event {
	if end == listTail {
		return eventRPop
	}
	return eventLPop
}

// parseEnd reads LEFT or RIGHT.
func parseEnd(arg []byte) (listEnd, error) {
	switch {
	case Is(arg, "LEFT"):
		return listHead, nil
	case Is(arg, "RIGHT"):
		return listTail, nil
	default:
		return listHead, ErrSyntax
	}
}

// push makes LPUSH and RPUSH.
func push(end listEnd) func(c *Ctx) error {
	return func(c *Ctx) error {
		list, err := ReadOrCreate(c, c.Args[1], ds.NewDeque)
		if err != nil {
			return err
		}
		pushAll(c, list, end)
		return nil
	}
}

// pushPresent makes LPUSHX and RPUSHX, which never create a list.
func pushPresent(end listEnd) func(c *Ctx) error {
	return func(c *Ctx) error {
		list, found, err := Read[*ds.Deque](c, c.Args[1])
		if err != nil {
			return err
		}
		if !found {
			c.Out.Int(0)
			return nil
		}
		pushAll(c, list, end)
		return nil
	}
}

func pushAll(c *Ctx, list *ds.Deque, end listEnd) {
	list.Expect(c.Args[2:], end == listHead)
	for _, element := range c.Args[2:] {
		end.push(list, stringOf(element))
	}
	c.Touch(c.Args[1], end.pushed())
	c.Out.Int(int64(list.Len()))
}

// pop makes LPOP and RPOP: one element, or with a count an array of up to so
// many.
func pop(name string, end listEnd) func(c *Ctx) error {
	return func(c *Ctx) error {
		if len(c.Args) == 2 {
			return popOne(c, end)
		}
		if len(c.Args) > 3 {
			return errArity(name)
		}
		count, ok := ParseInt(c.Args[2])
		if !ok || count < 0 {
			return ErrPositive
		}
		list, found, err := Read[*ds.Deque](c, c.Args[1])
		if err != nil {
			return err
		}
		if !found {
			c.Out.NullArray()
			return nil
		}
		popMany(c, c.Args[1], list, end, count)
		return nil
	}
}

func popOne(c *Ctx, end listEnd) error {
	key := c.Args[1]
	list, found, err := Read[*ds.Deque](c, key)
	if err != nil {
		return err
	}
	if !found {
		c.Out.Null()
		return nil
	}
	c.Out.BulkString(end.pop(list))
	Shrunk(c, key, list, end.popped())
	return nil
}

// popMany pops up to count elements and replies with an array of them.
func popMany(c *Ctx, key []byte, list *ds.Deque, end listEnd, count int64) {
	n := int(min(count, int64(list.Len())))
	c.Out.Array(n)
	for range n {
		c.Out.BulkString(end.pop(list))
	}
	if n > 0 {
		Shrunk(c, key, list, end.popped())
	}
}

func llen(c *Ctx) error {
	list, found, err := Read[*ds.Deque](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	c.Out.Int(int64(list.Len()))
	return nil
}

// listIndex turns an index, negative from the tail, into a position, which may
// lie outside the list.
func listIndex(index int64, list *ds.Deque) int {
	if index < 0 {
		index += int64(list.Len())
	}
	return int(index)
}

func lindex(c *Ctx) error {
	list, found, err := Read[*ds.Deque](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Null()
		return nil
	}
	index, err := c.Int(2)
	if err != nil {
		return err
	}
	element, ok := list.At(listIndex(index, list))
	if !ok {
		c.Out.Null()
		return nil
	}
	c.Out.BulkString(element)
	return nil
}

// startStop reads the two bounds at arguments 2 and 3.
func startStop(c *Ctx) (start, stop int64, err error) {
	if start, err = c.Int(2); err != nil {
		return 0, 0, err
	}
	stop, err = c.Int(3)
	return start, stop, err
}

func lrange(c *Ctx) error {
	start, stop, err := startStop(c)
	if err != nil {
		return err
	}
	list, found, err := Read[*ds.Deque](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Array(0)
		return nil
	}
	from, to, ok := Span(start, stop, list.Len())
	if !ok {
		c.Out.Array(0)
		return nil
	}
	c.Out.Array(to - from + 1)
	for _, element := range list.Range(from, to) {
		c.Out.BulkString(element)
	}
	return nil
}

func ltrim(c *Ctx) error {
	start, stop, err := startStop(c)
	if err != nil {
		return err
	}
	list, found, err := Read[*ds.Deque](c, c.Args[1])
	if err != nil {
		return err
	}
	if found {
		from, to, ok := Span(start, stop, list.Len())
		if !ok {
			from, to = 0, -1
		}
		list.Trim(from, to)
		Shrunk(c, c.Args[1], list, eventLTrim)
	}
	c.Out.SimpleString("OK")
	return nil
}

// lrem removes elements equal to a value: the first count, the last -count, or
// with 0 all.
func lrem(c *Ctx) error {
	key, value := c.Args[1], c.Args[3]
	count, err := c.Int(2)
	if err != nil {
		return err
	}
	list, found, err := Read[*ds.Deque](c, key)
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	limit, backward := count, count < 0
	switch {
	case count == 0 || count == math.MinInt64:
		limit = math.MaxInt
	case backward:
		limit = -count
	}
	equal := func(element string) bool { return element == string(value) }
	removed := list.RemoveMatching(equal, int(limit), backward)
	if removed > 0 {
		Shrunk(c, key, list, eventLRem)
	}
	c.Out.Int(int64(removed))
	return nil
}

func lset(c *Ctx) error {
	list, found, err := Read[*ds.Deque](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		return ErrNoSuchKey
	}
	index, err := c.Int(2)
	if err != nil {
		return err
	}
	if !list.Set(listIndex(index, list), c.Arg(3)) {
		return ErrIndex
	}
	c.Touch(c.Args[1], eventLSet)
	c.Out.SimpleString("OK")
	return nil
}

// linsert inserts next to the first element that equals the pivot. Its answer
// is the new length, 0 if there is no list, -1 if there is no such element.
func linsert(c *Ctx) error {
	after := Is(c.Args[2], "AFTER")
	if !after && !Is(c.Args[2], "BEFORE") {
		return ErrSyntax
	}
	list, found, err := Read[*ds.Deque](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	at := indexOf(list, c.Args[3])
	if at < 0 {
		c.Out.Int(-1)
		return nil
	}
	if after {
		at++
	}
	list.InsertAt(at, c.Arg(4))
	c.Touch(c.Args[1], eventLInsert)
	c.Out.Int(int64(list.Len()))
	return nil
}

// indexOf is where value is first in the list, or -1.
func indexOf(list *ds.Deque, value []byte) int {
	for i, element := range list.Range(0, list.Len()-1) {
		if element == string(value) {
			return i
		}
	}
	return -1
}

var listSpecs = slices.Concat(listElementSpecs, listMoveSpecs, listPositionSpecs)

var listElementSpecs = []Spec{
	{
		Name: "lpush", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Puts elements before the head of a list, one after the other; the list is created if there is none.",
		Complexity: "O(1) for each element.",
		Run:        push(listHead),
	},
	{
		Name: "rpush", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Puts elements after the tail of a list, which is created if there is none.",
		Complexity: "O(1) for each element.",
		Run:        push(listTail),
	},
	{
		Name: "lpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "list", Since: "2.2.0",
		Summary:    "Puts elements before the head of a list, if there is one.",
		Complexity: "O(1) for each element.",
		Run:        pushPresent(listHead),
	},
	{
		Name: "rpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "list", Since: "2.2.0",
		Summary:    "Puts elements after the tail of a list, if there is one.",
		Complexity: "O(1) for each element.",
		Run:        pushPresent(listTail),
	},
	{
		Name: "lpop", Arity: -2, Flags: Write | Fast, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Takes one or more elements off the head of a list, and the list away with its last element.",
		Complexity: "O(1) for each element.",
		Run:        pop("lpop", listHead),
	},
	{
		Name: "rpop", Arity: -2, Flags: Write | Fast, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Takes one or more elements off the tail of a list, and the list away with its last element.",
		Complexity: "O(1) for each element.",
		Run:        pop("rpop", listTail),
	},
	{
		Name: "llen", Arity: 2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Counts the elements of a list.",
		Complexity: "O(1).",
		Run:        llen,
	},
	{
		Name: "lindex", Arity: 3, Flags: ReadOnly, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Shows the element at an index, which is negative from the tail.",
		Complexity: "O(1) at the ends; O(N) with a very small factor in lists changed in the middle.",
		Run:        lindex,
	},
	{
		Name: "lrange", Arity: 4, Flags: ReadOnly, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Lists the elements between two indexes, both included.",
		Complexity: "O(N), N being the number of elements shown.",
		Run:        lrange,
	},
	{
		Name: "ltrim", Arity: 4, Flags: Write, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Removes all elements but those between two indexes, both included.",
		Complexity: "O(N), N being the number of elements removed.",
		Run:        ltrim,
	},
	{
		Name: "lrem", Arity: 4, Flags: Write, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Removes elements that equal a value: some from the head, some from the tail, or all.",
		Complexity: "O(N), N being the length of the list.",
		Run:        lrem,
	},
	{
		Name: "lset", Arity: 4, Flags: Write | DenyOOM, Keys: Key(1), Group: "list", Since: "1.0.0",
		Summary:    "Replaces the element at an index.",
		Complexity: "O(1) at the ends; O(N) with a very small factor in lists changed in the middle.",
		Run:        lset,
	},
	{
		Name: "linsert", Arity: 5, Flags: Write | DenyOOM, Keys: Key(1), Group: "list", Since: "2.2.0",
		Summary:    "Inserts an element before or after the first one that equals a pivot.",
		Complexity: "O(N), N being the number of elements before the pivot.",
		Run:        linsert,
	},
}
