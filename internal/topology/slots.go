package topology

import "strconv"

// While a slot moves, its old owner serves what has all its keys there, and sends everything else to the new one, which
// serves only what has all its keys there by then: a script with keys in both places, or with keys that do not exist
// yet, is told TRYAGAIN until the move is over.

// Stage is how far a slot is on its way.
type Stage int

// The stages of a move.
const (
	Begun    Stage = iota // both owners know of it, no key has moved
	OneMoved              // one key has, if there was any
	AllMoved              // all have, and the others have not been told
)

// Halfway is called at each stage of a move.
type Halfway func(Stage)

// MigrateSlot moves the slot of a resource to another primary and returns that. halfway may be nil.
func (c *Cluster) MigrateSlot(name string, halfway Halfway) *Node {
	c.t.Helper()
	from := c.PrimaryOf(name)
	view := c.AwaitWhole()
	for _, n := range c.live() {
		if n != from && view[n.id].has("master") && len(view[n.id].slots) > 0 {
			c.MoveSlot(name, n, halfway)
			return n
		}
	}
	c.t.Fatal("there is no other primary")
	return nil
}

// MoveSlot moves the slot of a resource to a given primary, as MigrateSlot does.
func (c *Cluster) MoveSlot(name string, to *Node, halfway Halfway) {
	c.t.Helper()
	ctx, slot, from := c.t.Context(), c.SlotOf(name), c.PrimaryOf(name)
	setSlot := func(at *Node, args ...any) {
		c.t.Helper()
		must(c.t, at.Client.Do(ctx, append([]any{"CLUSTER", "SETSLOT", slot}, args...)...).Err())
	}
	setSlot(to, "IMPORTING", from.id)
	setSlot(from, "MIGRATING", to.id)
	if halfway == nil {
		halfway = func(Stage) {}
	}
	halfway(Begun)
	c.moveKeys(slot, from, to, 1)
	halfway(OneMoved)
	for c.moveKeys(slot, from, to, 100) {
	}
	halfway(AllMoved)
	setSlot(to, "NODE", to.id)
	setSlot(from, "NODE", to.id)
	c.AwaitWhole()
}

// moveKeys moves up to `most` keys of a slot, some of which may be gone when it does, and reports whether it found any.
func (c *Cluster) moveKeys(slot int, from, to *Node, most int) bool {
	c.t.Helper()
	keys, err := from.Client.ClusterGetKeysInSlot(c.t.Context(), slot, most).Result()
	must(c.t, err)
	if len(keys) == 0 {
		return false
	}
	host, port := to.HostPort()
	command := []any{"MIGRATE", host, port, "", 0, strconv.FormatInt(patience.Milliseconds(), 10), "KEYS"}
	for _, key := range keys {
		command = append(command, key)
	}
	must(c.t, from.Client.Do(c.t.Context(), command...).Err())
	return true
}
