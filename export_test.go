package signalbox

import (
	"fmt"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// Remembered is how much a Box remembers of acquisitions and leases: all of it must be gone when they are.
func (b *Box) Remembered() (lives, relays, alarms int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lives), len(b.relays), len(b.alarms)
}

// In tests an event in a state where it cannot be is an error of ours.
func init() { //nolint:gochecknoinits // for every test
	misfit = func(s acquisition.State, what acquisition.Happening) {
		panic(fmt.Sprintf("internal error: %v came in state %v", what, s))
	}
}
