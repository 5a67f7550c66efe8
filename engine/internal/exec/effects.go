package exec

// Effects is what the shell has to carry out after one or more steps.
type Effects struct {
	// Wake are other sessions that have something in their Out, or have been
	// unblocked and may have requests waiting.
	Wake []*Session
	// Close are other sessions whose connections are to be closed.
	Close []*Session
	// Shutdown asks for the end of the engine.
	Shutdown bool
	// Begin asks for a job to begin with the data as it is now; JobEnded tells its end.
	Begin Job
	// EndLog asks for the end of the append-only file, which is turned off.
	EndLog bool
	// Relink says that Machine.Link is another one, or none. Replaced says that there is other data in the
	// place of all that there was: what is on disk has nothing to do with it.
	Relink, Replaced bool
	// Propagate is what has changed, as requests that make the same changes; see
	// Machine.Propagate. It is valid until the next TakeEffects, and more than 1 MB of it
	// are the caller's.
	Propagate []byte
	// Wrote is whether there is more in Propagate than keys that have expired or were evicted, which
	// would be gone after a crash as well.
	Wrote bool
}

// TakeEffects ends a batch of steps and returns what has accumulated since the
// last call.
func (m *Machine) TakeEffects() Effects {
	if len(m.tracker.prefixes) > 0 {
		m.tellPrefixes()
	}
	log := m.takeJournal()
	taken := m.effects
	taken.Propagate, taken.Wrote = log, m.journal != nil && m.journal.Wrote()
	if taken.Wake == nil && taken.Close == nil && !taken.Shutdown && taken.Begin == NoJob && !taken.EndLog && !taken.Relink && !taken.Replaced {
		return taken
	}
	m.effects = Effects{}
	for _, s := range taken.Wake {
		s.woken = false
	}
	return taken
}

// takeJournal passes what has changed on to replicas, and returns what the log is to have.
func (m *Machine) takeJournal() []byte {
	if m.journal == nil {
		return nil
	}
	log, stream := m.journal.Take()
	if m.repl.feeding {
		m.feed(stream)
	}
	if m.repl.wantAcks {
		m.repl.wantAcks = false
		m.feed(ackRequest)
	}
	if m.passedOn != nil {
		log, m.passedOn = append(m.passedOn, log...), nil
	}
	if !m.logging {
		return nil
	}
	return log
}

// passOn passes on what has changed so far in the middle of a batch, since the stream is about to be another server's.
func (m *Machine) passOn() {
	if m.journal == nil || !m.repl.feeding {
		return
	}
	log, stream := m.journal.Take()
	m.feed(stream)
	m.passedOn = append(m.passedOn, log...)
}

// wake notes that a session other than the caller has something to be written.
func (m *Machine) wake(s *Session) {
	// The one whose script runs is in the middle of its reply.
	if !s.woken && s != m.running.caller {
		s.woken = true
		m.effects.Wake = append(m.effects.Wake, s)
	}
}
