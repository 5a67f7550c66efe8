package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// What changes is propagated: to a file from which it can be replayed (replay.go), and
// to replicas (replication.go). What a command is there is said in command/journal.go; here is when
// something is written, and what belongs together:
//
//   - what one request does, with all that its transaction or its script does, and the
//     expired keys that it came across on the way;
//   - what a blocked client does when it is served, which comes after what served it;
//   - each key by itself that expires while nobody looks, or is evicted.
//
// Nobody pays for it as long as it is off, and then it is one test of a pointer.

// Propagate turns Effects.Propagate on or off; it is off at first. The first change after
// it was turned on begins with a SELECT.
func (m *Machine) Propagate(on bool) {
	if on && !m.logging {
		m.PropagateAnew()
	}
	m.logging = on
	m.adjustStream()
}

// PropagateAnew makes the next change begin with a SELECT: whoever reads from there on has
// not seen what came before.
func (m *Machine) PropagateAnew() {
	if m.journal != nil {
		m.journal.Anew()
	}
}

// journalOf takes what a command of the session propagates; nil if nobody wants it.
func (m *Machine) journalOf(s *Session) *command.Journal {
	if m.replay != nil || s == m.script && m.running.unlogged {
		return nil
	}
	return m.journal
}

// endGroup ends what belongs together. Whoever comes in while a script is busy is in the
// middle of its group. It reports whether there was anything.
func (m *Machine) endGroup(together bool) (any bool) {
	return m.journal != nil && !m.Busy() && m.journal.End(together)
}

// keyRemoved is told which keys have expired or were evicted. A script cannot hide them.
func (m *Machine) keyRemoved(db *keyspace.DB, key []byte, later bool) {
	m.journal.Remove(db.Index, key, later)
}
