package signalbox

// Remembered is how much a Box remembers of acquisitions and leases: all of it must be gone when they are.
func (b *Box) Remembered() (members, relays, duties int) {
	b.mu.Lock()
	members, relays = len(b.members), len(b.relays)
	b.mu.Unlock()
	b.keeper.mu.Lock()
	defer b.keeper.mu.Unlock()
	return members, relays, len(b.keeper.duties)
}
