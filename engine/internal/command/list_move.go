package command

import "github.com/signalbox-io/signalbox/engine/internal/ds"

const (
	errNumKeys       Error = "ERR numkeys should be greater than 0"
	errCountPositive Error = "ERR count should be greater than 0"
)

// errArity is the answer of commands that bound their arguments more tightly
// than a Spec's arity can say.
func errArity(name string) Error {
	return Error("ERR wrong number of arguments for '" + name + "' command")
}

// listMove is what a moving command does: pop an element at one end of a list,
// push it at one end of another, or of the same.
type listMove struct {
	source, destination []byte
	from, to            listEnd
}

// run moves one element out of list, which is what the source holds, and
// replies with it. Nothing is popped if the destination holds something else.
func (m *listMove) run(c *Ctx, list *ds.Deque) error {
	destination, err := ReadOrCreate(c, m.destination, ds.NewDeque)
	if err != nil {
		return err
	}
	element := m.from.pop(list)
	m.to.push(destination, element)
	c.Touch(m.destination, m.to.pushed())
	Shrunk(c, m.source, list, m.from.popped())
	c.Out.BulkString(element)
	return nil
}

// now moves at once, or replies with null if there is nothing.
func (m *listMove) now(c *Ctx) error {
	list, found, err := Read[*ds.Deque](c, m.source)
	if err != nil {
		return err
	}
	if !found {
		c.Out.Null()
		return nil
	}
	return m.run(c, list)
}

// parseMove reads source, destination, and the two ends: LMOVE and BLMOVE.
func parseMove(args [][]byte) (m listMove, err error) {
	m.source, m.destination = args[1], args[2]
	if m.from, err = parseEnd(args[3]); err != nil {
		return m, err
	}
	m.to, err = parseEnd(args[4])
	return m, err
}

func lmove(c *Ctx) error {
	m, err := parseMove(c.Args)
	if err != nil {
		return err
	}
	return m.now(c)
}

func rpoplpush(c *Ctx) error {
	m := listMove{source: c.Args[1], destination: c.Args[2], from: listTail, to: listHead}
	return m.now(c)
}

// listPop is what LMPOP and BLMPOP do: pop up to count elements at one end of
// the first of several lists that has any.
type listPop struct {
	keys  [][]byte
	end   listEnd
	count int64
}

// parseListPop reads numkeys, keys, the end, and COUNT, which may be given once.
func parseListPop(args [][]byte) (p listPop, err error) {
	numKeys, ok := ParseInt(args[0])
	if !ok || numKeys < 1 {
		return p, errNumKeys
	}
	args = args[1:]
	if numKeys >= int64(len(args)) {
		return p, ErrSyntax
	}
	p.keys, args = args[:numKeys], args[numKeys:]
	if p.end, err = parseEnd(args[0]); err != nil {
		return p, err
	}
	switch args = args[1:]; {
	case len(args) == 0:
		p.count = 1
		return p, nil
	case len(args) == 1 || !Is(args[0], "COUNT"):
		return p, ErrSyntax
	}
	if p.count, ok = ParseInt(args[1]); !ok || p.count < 1 {
		return p, errCountPositive
	}
	if len(args) > 2 {
		return p, ErrSyntax
	}
	return p, nil
}

// run pops and replies, and reports whether there was anything.
func (p *listPop) run(c *Ctx) (popped bool, err error) {
	key, list, found, err := ReadFirst[*ds.Deque](c, p.keys)
	if err != nil || !found {
		return false, err
	}
	c.Out.Array(2)
	c.Out.Bulk(key)
	n := min(p.count, int64(list.Len()))
	popMany(c, key, list, p.end, n)
	c.Propagate(3).Word(p.end.popCommand()).Bytes(key).Int(n)
	return true, nil
}

func lmpop(c *Ctx) error {
	p, err := parseListPop(c.Args[1:])
	if err != nil {
		return err
	}
	popped, err := p.run(c)
	if err == nil && !popped {
		c.Out.NullArray()
	}
	return err
}

var listMoveSpecs = []Spec{
	{
		Name: "lmove", Arity: 5, Flags: Write | DenyOOM, Keys: Keys{1, 2, 1}, Group: "list", Since: "6.2.0",
		Summary:    "Moves an element from either end of a list to either end of another, or of the same.",
		Complexity: "O(1).",
		Run:        lmove,
	},
	{
		Name: "rpoplpush", Arity: 3, Flags: Write | DenyOOM, Keys: Keys{1, 2, 1}, Group: "list", Since: "1.2.0",
		Summary:    "Moves the last element of a list to the head of another, or of the same. LMOVE does it too.",
		Complexity: "O(1).",
		Run:        rpoplpush,
	},
	{
		Name: "lmpop", Arity: -4, Flags: Write | MovableKeys, FindKeys: CountedKeys(1), Group: "list", Since: "7.0.0",
		Summary:    "Takes elements off an end of the first of several lists that has any.",
		Complexity: "O(N+M), N being the number of keys and M that of elements taken.",
		Run:        lmpop,
	},
}
