package signalbox

import (
	"context"
	"fmt"
)

// Go has no name for "the same thread": what belongs together is said by a context. A lease acquired with Reentrant is a
// value of its own context and of the one Do passes on; an acquisition with Reentrant looks there first.

// heldKey is where a context carries the lease of a resource.
type heldKey struct {
	box  *Box
	name string
}

// carry returns ctx with the lease in it, if it may be entered again.
func (l *Lease) carry(ctx context.Context) context.Context {
	if !l.shared {
		return ctx
	}
	return context.WithValue(ctx, heldKey{l.box, l.resource.Name}, l)
}

// reenter returns the lease that ctx carries, nil if it carries none that is held.
func (s *Semaphore) reenter(ctx context.Context, t *terms) (*Lease, error) {
	lease, ok := ctx.Value(heldKey{s.box, s.name}).(*Lease)
	if !ok {
		return nil, nil //nolint:nilnil // none is no error
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if lease.ended {
		return nil, nil //nolint:nilnil // as above
	}
	if t.weight > lease.life.machine.Weight() {
		return nil, fmt.Errorf("acquire %q: %w: weight %d inside a lease of weight %d, which cannot grow: acquire what is "+
			"needed at the outermost", s.name, ErrInvalid, t.weight, lease.weight)
	}
	lease.holds++
	return lease, nil
}
