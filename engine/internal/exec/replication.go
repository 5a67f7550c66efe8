package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

// Replication: the machine's part. What changes is passed on as a stream of requests to those
// sessions that are replicas, and kept for a while for those that come back; or, if the machine
// is itself a replica, what it hears of its primary is, byte for byte.
//
//	replication.go   the stream, and what it needs
//	link.go          as a replica: the link to the primary, the stream that is run
//	replacement.go   as a replica: other data in the place of all that there is
//	replicas.go      as a primary: who listens, full and partial synchronisation
//	acknowledge.go   who has how much: REPLCONF ACK, WAIT, min-replicas-to-write
//	replicaof.go     REPLICAOF, ROLE, INFO replication
//
// The stream is what goes to the log (propagate.go), made once, and a few requests that only
// replicas hear: PING, REPLCONF GETACK, PUBLISH.
//
// Invariant R1: as long as a replica, or somebody who may come back, has heard of an ID, every change
// is in the stream. So a primary that nobody follows makes no stream, and takes a new ID when the
// first replica comes.
// Invariant R2: a replica deletes nothing of its own accord. What has expired is hidden from its
// clients (keyspace.Space.Frozen), and is there for the stream (Loading), until the primary's DEL
// comes.

// replicating is the machine's part in replication.
type replicating struct {
	history  replication.History
	link     *Link      // to the primary; nil: this is one
	replicas []*Session // in the order in which they came
	syncs    []*Sync    // full synchronisations that are not over
	waiting  int        // replicas that wait for one to begin
	syncAtUs int64      // when it is to begin

	feeding   bool // the journal makes the stream
	restricts bool // there is something for mayReplicate to look at
	wantAcks  bool // somebody waits for acknowledgements
	good      int64
	waiters   []ackWaiter
	tickedUs  int64
	pingedUs  int64
	aloneUs   int64 // since when nobody follows
	leftAt    int64 // where the stream was when a replica left

	fulls, partials, refused int64 // of synchronisations, for INFO
	outputBytes, inputBytes  int64
}

// newID names a stream.
func (m *Machine) newID() string {
	const digits = "0123456789abcdef"
	var random [20]byte
	m.options.Secret(random[:])
	id := make([]byte, 0, 2*len(random))
	for _, b := range random {
		id = append(id, digits[b>>4], digits[b&15])
	}
	return string(id)
}

// adjustStream makes the journal write what somebody reads. It is called when it may have changed who
// does.
func (m *Machine) adjustStream() {
	r := &m.repl
	minimum := m.settings.Int("min-replicas-to-write") > 0 && m.settings.Int("min-replicas-max-lag") > 0
	r.restricts = r.link != nil || minimum || len(r.replicas) > 0
	m.freeze()
	feeding := r.link == nil && r.history.Keeps()
	if feeding && !r.feeding {
		m.PropagateAnew()
	}
	r.feeding = feeding
	switch {
	case !m.logging && !feeding:
		m.journal = nil
		m.space.OnRemoval(nil)
	case m.journal == nil:
		m.journal = &command.Journal{}
		m.space.OnRemoval(m.keyRemoved)
	}
}

// freeze keeps what has expired, though nobody sees it, while clients are paused, and in a replica.
func (m *Machine) freeze() { m.space.Frozen = m.paused() || m.repl.link != nil }

// feed passes a piece of the stream on.
func (m *Machine) feed(piece []byte) {
	if len(piece) == 0 {
		return
	}
	r := &m.repl
	shared := r.history.Append(piece)
	for _, sync := range r.syncs {
		for _, part := range shared {
			sync.stream.Add(part)
		}
	}
	for _, s := range r.replicas {
		if s.replica.state != replicaOnline {
			continue
		}
		for _, part := range shared {
			s.Stream.Add(part)
		}
		r.outputBytes += int64(len(piece))
		m.wake(s)
	}
}

// streamUnused reports whether no replica is to be sent anything of the stream between two offsets any more. One that has
// left may still be in the middle of what there was then.
func (m *Machine) streamUnused(from, upTo int64) bool {
	r := &m.repl
	if from < r.leftAt || len(r.syncs) > 0 {
		return false
	}
	for _, s := range r.replicas {
		if s.Unread == nil || int64(s.Stream.Len()+s.Unread()) > r.history.Offset-upTo {
			return false
		}
	}
	return true
}

// streamEnd is the offset of the last change.
func (m *Machine) streamEnd() int64 {
	if m.repl.feeding {
		return m.repl.history.Offset + int64(m.journal.Waiting())
	}
	return m.repl.history.Offset
}

// tickReplication does what only the time asks for. Once a second is often enough.
func (m *Machine) tickReplication() {
	const secondUs = 1e6
	r := &m.repl
	m.tickFailover()
	m.lookWhoLags()
	if r.waiting > 0 && m.nowUs >= r.syncAtUs {
		m.beginScheduled()
	}
	if m.nowUs-r.tickedUs < secondUs {
		return
	}
	r.tickedUs = m.nowUs
	m.cutSilentReplicas()
	for _, s := range r.replicas {
		if s.replica.state == replicaWaiting {
			s.Out.Raw([]byte("\n")) // it is not forgotten
			m.wake(s)
		}
	}
	quiet := m.failover.active() || m.savesLast()
	if r.link == nil && len(r.replicas) > 0 && !quiet && (m.nowUs-r.pingedUs)/secondUs >= m.settings.Int("repl-ping-replica-period") {
		r.pingedUs = m.nowUs
		m.feed(pingRequest)
	}
	m.countGood()
	m.forgetBacklog()
}

var (
	pingRequest = replication.AppendRequest(nil, "PING")
	ackRequest  = replication.AppendRequest(nil, "REPLCONF", "GETACK", "*")
)

// forgetBacklog gives the backlog up when nobody has followed for long. The stream has another name
// after that: what is written meanwhile is in none.
func (m *Machine) forgetBacklog() {
	r := &m.repl
	ttlSec := m.settings.Int("repl-backlog-ttl")
	if r.link != nil || len(r.replicas) > 0 || !r.history.Keeps() || ttlSec == 0 || (m.nowUs-r.aloneUs)/1e6 < ttlSec {
		return
	}
	r.history.Keep(0)
	r.history.Rename(m.newID())
	m.adjustStream()
}

// ticksReplication reports whether time alone can make something happen.
func (m *Machine) ticksReplication() bool {
	r := &m.repl
	return len(r.replicas) > 0 || r.link == nil && r.history.Keeps() || m.failover.active() || m.ending != nil
}

// mayReplicate refuses what replication does not allow: to write on a replica, or on a primary that
// too few replicas follow; to read what is stale; a replica's requests about data.
func (m *Machine) mayReplicate(s *Session, spec *command.Spec, args [][]byte) error {
	writes, reads, stale := spec.Flags&command.Write != 0, spec.Flags&command.ReadOnly != 0, spec.Flags&command.Stale != 0
	if flags, declared := m.declaredFlags(spec, args); declared {
		writes, stale = flags&lua.NoWrites == 0, flags&lua.AllowStale != 0
	}
	if spec.Name == "exec" && s.transaction != nil {
		for _, call := range s.transaction.calls {
			writes = writes || call.spec.Flags&command.Write != 0
			stale = stale && call.spec.Flags&command.Stale != 0
		}
	}
	if writes {
		if err := m.mayChange(); err != nil {
			return err
		}
	}
	switch {
	case !stale && m.isStale():
		return errMasterDown
	case s.IsReplica() && (writes || reads || spec.MayReplicate()):
		return command.Error("ERR Replica can't interact with the keyspace")
	}
	return nil
}

const (
	errMasterDown = command.Error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
	errReadOnly   = command.Error("READONLY You can't write against a read only replica.")
	errNoReplicas = command.Error("NOREPLICAS Not enough good replicas to write.")
)

// mayChange refuses to change data.
func (m *Machine) mayChange() error {
	switch {
	case m.repl.link == nil && !m.hasGoodReplicas():
		return errNoReplicas
	case m.isReadOnly():
		return errReadOnly
	}
	return nil
}

func (m *Machine) isReadOnly() bool {
	return m.repl.link != nil && m.settings.Bool("replica-read-only")
}

// isStale reports whether the data must not be shown, since the primary may have gone on.
func (m *Machine) isStale() bool {
	link := m.repl.link
	return link != nil && link.state != LinkConnected && !m.settings.Bool("replica-serve-stale-data")
}

// scriptMayReplicate is mayReplicate for a script that is about to run, and may have been let in before REPLICAOF in its
// transaction. Whether one that has declared nothing writes is found out when it does.
func (m *Machine) scriptMayReplicate(c *command.Ctx, flags lua.Flags) error {
	declared := flags&lua.EvalCompat == 0
	switch {
	case session(c).link != nil:
		return nil
	case !declared && m.isStale():
		return errMasterDown
	case declared && flags&lua.AllowStale == 0 && m.isStale():
		return command.Error("MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag is not set on the script.")
	case declared && flags&lua.NoWrites == 0 && m.isReadOnly():
		return command.Error("READONLY Can not run script with write flag on readonly replica")
	}
	return nil
}
