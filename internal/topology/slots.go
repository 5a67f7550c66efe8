package topology

import "strconv"

// While a slot moves, its old owner serves what has all its keys there, and sends everything else to the new one, which
// serves only what has all its keys there by then: a script with keys in both places, or with keys that do not exist
// yet, is told TRYAGAIN until the move is over.

// Halfway is called while a slot moves: when one key has moved, and, with all set, when none is left.
type Halfway func(all bool)

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
	for first := true; ; first = false {
		batch := 100
		if first {
			batch = 1
		}
		keys, err := from.Client.ClusterGetKeysInSlot(ctx, slot, batch).Result()
		must(c.t, err)
		if len(keys) > 0 {
			c.migrate(from, to, keys)
		}
		if len(keys) == 0 {
			break
		}
		if first && halfway != nil {
			halfway(false)
		}
	}
	if halfway != nil {
		halfway(true)
	}
	setSlot(to, "NODE", to.id)
	setSlot(from, "NODE", to.id)
	c.AwaitWhole()
}

// migrate moves keys, some of which may be gone by now.
func (c *Cluster) migrate(from, to *Node, keys []string) {
	c.t.Helper()
	host, port := to.HostPort()
	command := []any{"MIGRATE", host, port, "", 0, strconv.FormatInt(patience.Milliseconds(), 10), "KEYS"}
	for _, key := range keys {
		command = append(command, key)
	}
	must(c.t, from.Client.Do(c.t.Context(), command...).Err())
}
