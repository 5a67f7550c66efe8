package exec

// Memory that large deletions leave goes back to the system. The collector would find it
// at its next run, which it begins when the heap has grown to twice of what was live at
// the last one: after FLUSHALL that is never. So the machine, which knows what its data
// takes, asks the shell to collect when that has fallen by a lot, and rests: in the
// middle of deletions it would be too early, and a collection has to read all that is
// left, so it must be worth its while.

type giveBack struct {
	mostBytes int64 // that the data took since memory was last given back
	lastBytes int64 // that it took at the last tick
	fellAtUs  int64 // when that was last less than at the tick before
	notBefore int64 // us
}

const (
	giveBackBytes = 16 << 20  // the least that is worth it
	giveBackPart  = 4         // and this part of what there was
	giveBackEvery = 5_000_000 // us, at least between two
	giveBackRest  = 50_000    // us without deletions: ticks that expire keys come every ms
)

// owed reports whether so much less is in use than there was that it is worth giving back.
func (g *giveBack) owed(usedBytes int64) bool {
	g.mostBytes = max(g.mostBytes, usedBytes)
	return g.mostBytes-usedBytes >= max(giveBackBytes, g.mostBytes/giveBackPart)
}

// tickMemory gives memory back if it is time to.
func (m *Machine) tickMemory() {
	g, used := &m.memory.giveBack, m.space.UsedBytes()
	if used < g.lastBytes {
		g.fellAtUs = m.nowUs
	}
	g.lastBytes = used
	rests := m.nowUs >= g.fellAtUs+giveBackRest
	if !g.owed(used) || !rests || m.nowUs < g.notBefore || m.options.FreeMemory == nil {
		return
	}
	g.mostBytes, g.notBefore = used, m.nowUs+giveBackEvery
	m.options.FreeMemory()
}
