package command

import (
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// The list commands that wait. Each does what its sister that does not wait
// does; where that would answer with nothing, it blocks on its keys. It is run
// again, from the start, when one of them is touched, so everything before
// Ctx.Block only reads. See ReadFirst for what counts when it is run again.

// blockingPop makes BLPOP and BRPOP. Its keys are all arguments but the last,
// which is the timeout.
func blockingPop(end listEnd) func(c *Ctx) error {
	return func(c *Ctx) error {
		last := len(c.Args) - 1
		timeoutUs, err := c.TimeoutUs(last)
		if err != nil {
			return err
		}
		keys := c.Args[1:last]
		key, list, found, err := ReadFirst[*ds.Deque](c, keys)
		if err != nil {
			return err
		}
		if !found {
			return c.Block(keys, timeoutUs, (*resp.Writer).NullArray)
		}
		c.Out.Array(2)
		c.Out.Bulk(key)
		c.Out.BulkString(end.pop(list))
		Shrunk(c, key, list, end.popped())
		c.Propagate(2).Word(end.popCommand()).Bytes(key)
		return nil
	}
}

func blmpop(c *Ctx) error {
	p, err := parseListPop(c.Args[2:])
	if err != nil {
		return err
	}
	timeoutUs, err := c.TimeoutUs(1)
	if err != nil {
		return err
	}
	popped, err := p.run(c)
	if err != nil || popped {
		return err
	}
	return c.Block(p.keys, timeoutUs, (*resp.Writer).NullArray)
}

func blmove(c *Ctx) error {
	m, err := parseMove(c.Args)
	if err != nil {
		return err
	}
	return m.waiting(c, 5)
}

func brpoplpush(c *Ctx) error {
	m := listMove{source: c.Args[1], destination: c.Args[2], from: listTail, to: listHead}
	return m.waiting(c, 3)
}

// waiting moves, or blocks on the source until the timeout, which is given at
// argument timeoutAt.
func (m *listMove) waiting(c *Ctx, timeoutAt int) error {
	timeoutUs, err := c.TimeoutUs(timeoutAt)
	if err != nil {
		return err
	}
	source := [][]byte{m.source}
	_, list, found, err := ReadFirst[*ds.Deque](c, source)
	if err != nil {
		return err
	}
	if found {
		return m.awaited(c, list)
	}
	// RESP2 has two nulls, and Redis answers with the one or the other.
	nothing := (*resp.Writer).NullArray
	if !c.CanBlock {
		nothing = (*resp.Writer).Null
	}
	return c.Block(source, timeoutUs, nothing)
}

// awaited moves one element, and propagates the command that does not wait.
func (m *listMove) awaited(c *Ctx, list *ds.Deque) error {
	if err := m.run(c, list); err != nil {
		return err
	}
	if len(c.Args) == brpoplpushArgs {
		c.Propagate(3).Word("RPOPLPUSH").Bytes(m.source).Bytes(m.destination)
		return nil
	}
	request := c.Propagate(5).Word("LMOVE").Bytes(m.source).Bytes(m.destination)
	if c.Ready != nil { // Redis has words of its own for who has waited
		request.Word(m.from.name()).Word(m.to.name())
		return nil
	}
	request.Bytes(c.Args[3]).Bytes(c.Args[4])
	return nil
}

const brpoplpushArgs = 4

var blockingListSpecs = []Spec{
	{
		Name: "blpop", Arity: -3, Flags: Write | NoScript | Blocking, Keys: Keys{1, -2, 1}, Group: "list", Since: "2.0.0",
		Summary:    "Takes an element off the head of the first of several lists that has any, and waits if none has.",
		Complexity: "O(N), N being the number of keys.",
		Run:        blockingPop(listHead),
	},
	{
		Name: "brpop", Arity: -3, Flags: Write | NoScript | Blocking, Keys: Keys{1, -2, 1}, Group: "list", Since: "2.0.0",
		Summary:    "Takes an element off the tail of the first of several lists that has any, and waits if none has.",
		Complexity: "O(N), N being the number of keys.",
		Run:        blockingPop(listTail),
	},
	{
		Name: "blmove", Arity: 6, Flags: Write | DenyOOM | NoScript | Blocking, Keys: Keys{1, 2, 1}, Group: "list", Since: "6.2.0",
		Summary:    "Moves an element from one list to another, and waits if there is none.",
		Complexity: "O(1).",
		Run:        blmove,
	},
	{
		Name: "brpoplpush", Arity: 4, Flags: Write | DenyOOM | NoScript | Blocking, Keys: Keys{1, 2, 1}, Group: "list", Since: "2.2.0",
		Summary:    "Moves the last element of a list to the head of another, and waits if there is none. BLMOVE does it too.",
		Complexity: "O(1).",
		Run:        brpoplpush,
	},
	{
		Name: "blmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, FindKeys: CountedKeys(2), Group: "list", Since: "7.0.0",
		Summary:    "Takes elements off an end of the first of several lists that has any, and waits if none has.",
		Complexity: "O(N+M), N being the number of keys and M that of elements taken.",
		Run:        blmpop,
	},
}
