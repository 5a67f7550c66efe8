package exec

import (
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

// The sessions that are replicas, or about to be:
//
//	REPLCONF ──▶ PSYNC ─┬─ has most of it ─────────────────────────────▶ online
//	                    └─ waiting ─▶ sending ─▶ sent ─ acknowledges ──▶ online
//
// Those that wait at the same time share one snapshot (Sync). What changes from its moment on is
// kept once for all of them, and each gets it when it has acknowledged the snapshot: a replica that
// looks for the mark at the end must find nothing behind it.

// replicaState is how far a replica is.
type replicaState uint8

const (
	replicaUnknown replicaState = iota // it has said something of itself, and not asked for the stream
	replicaWaiting                     // for a snapshot to begin
	replicaSending                     // it is being sent one
	replicaSent                        // and has yet to say that it has it
	replicaOnline
)

func (s replicaState) String() string {
	return [...]string{"", "wait_bgsave", "send_bulk", "send_bulk", "online"}[s]
}

// replica is what is known of a session that is one.
type replica struct {
	state               replicaState
	port                int64
	address             string
	capaEOF, capaPSYNC2 bool
	snapshotOnly        bool // it goes when it has the snapshot
	functionsOnly       bool
	byPSYNC             bool
	sync                *Sync
	ackOffset, ackUs    int64
}

// Sync is one full synchronisation, of one replica or more.
type Sync struct {
	Snapshot *Snapshot
	Mark     string

	machine  *Machine
	sessions []*Session
	stream   replication.Pieces // since its moment
	sent     bool
}

// asReplica is what is known of a session as a replica.
func (s *Session) asReplica() *replica {
	if s.replica == nil {
		s.replica = &replica{}
	}
	return s.replica
}

// IsReplica reports whether the session has asked for the stream.
func (s *Session) IsReplica() bool { return s.replica != nil && s.replica.state != replicaUnknown }

func (m *Machine) replicaSpecs() []command.Spec {
	const flags = command.Admin | command.NoScript
	return []command.Spec{
		{
			Name: "psync", Arity: -3, Flags: flags | command.NoAsyncLoading | command.NoMulti, Group: "server", Since: "2.8.0",
			Summary: "Asks for the stream of changes, from an offset on if that is possible.", Complexity: "O(N) for N keys in a full synchronisation", Run: m.psync,
		},
		{
			Name: "sync", Arity: 1, Flags: flags | command.NoAsyncLoading | command.NoMulti, Group: "server", Since: "1.0.0",
			Summary: "The old form of PSYNC: asks for a snapshot and the stream.", Complexity: "O(N) for N keys", Run: m.sync,
		},
		{
			Name: "replconf", Arity: -1, Flags: flags | command.Loading | command.Stale | command.AllowBusy, Group: "server", Since: "3.0.0",
			Summary: "Tells of a replica, and what it has heard.", Complexity: "O(1)", Run: m.replConf,
		},
	}
}

func (m *Machine) replConf(c *command.Ctx) error {
	if len(c.Args)%2 == 0 {
		return command.ErrSyntax
	}
	s := session(c)
	for i := 1; i < len(c.Args); i += 2 {
		option, value := c.Args[i], c.Args[i+1]
		switch {
		case command.Is(option, "ACK"):
			return m.hearAck(s, c.Args[i:])
		case command.Is(option, "GETACK"):
			return nil // it is for replicas to hear from their primary
		case command.Is(option, "ANCESTORS"):
			c.Out.SimpleString("OK " + m.lineage())
			return nil
		}
		if err := s.asReplica().configure(option, value); err != nil {
			return err
		}
	}
	c.Out.SimpleString("OK")
	return nil
}

// configure takes what a replica says of itself.
func (r *replica) configure(option, value []byte) error {
	const mostAddress = 255
	switch {
	case command.Is(option, "LISTENING-PORT"):
		port, ok := command.ParseInt(value)
		if !ok {
			return command.ErrNotInteger
		}
		r.port = port
	case command.Is(option, "IP-ADDRESS"):
		if len(value) > mostAddress {
			return command.Error("ERR REPLCONF ip-address provided by replica instance is too long: " + strconv.Itoa(len(value)) + " bytes")
		}
		r.address = string(value)
	case command.Is(option, "CAPA"):
		r.capaEOF = r.capaEOF || command.Is(value, "EOF")
		r.capaPSYNC2 = r.capaPSYNC2 || command.Is(value, "PSYNC2")
	case command.Is(option, "RDB-ONLY"):
		only, ok := command.ParseInt(value)
		if !ok || only < 0 || only > 1 {
			return command.ErrNotInteger
		}
		r.snapshotOnly = only == 1
	case command.Is(option, "RDB-FILTER-ONLY"):
		if len(value) > 0 && !command.Is(value, "FUNCTIONS") {
			return command.Error("ERR Unsupported rdb-filter-only option: " + string(clip(value)))
		}
		r.functionsOnly = len(value) > 0
	default:
		return command.Error("ERR Unrecognized REPLCONF option: " + string(clip(option)))
	}
	return nil
}

func (m *Machine) sync(c *command.Ctx) error {
	if ok, err := m.maySync(session(c)); !ok {
		return err
	}
	return m.fullSync(c, false)
}

func (m *Machine) psync(c *command.Ctx) error {
	s := session(c)
	if s.IsReplica() {
		return nil
	}
	if len(c.Args) > 3 && command.Is(c.Args[3], "FAILOVER") {
		if err := m.takeOver(c.Arg(1)); err != nil {
			return err
		}
	}
	if ok, err := m.maySync(s); !ok {
		return err
	}
	from, ok := command.ParseInt(c.Args[2])
	if ok && !s.asReplica().snapshotOnly && m.repl.history.CanContinue(c.Arg(1), from) {
		m.partialSync(c, from)
		return nil
	}
	if c.Arg(1) != "?" {
		m.repl.refused++
	}
	return m.fullSync(c, true)
}

// maySync reports whether a session can have the stream now.
func (m *Machine) maySync(s *Session) (ok bool, err error) {
	link := m.repl.link
	switch {
	case s.IsReplica():
		return false, nil
	case s.Addr == localAddr:
		return false, command.Error("ERR a replica needs a connection")
	case m.failover.active():
		return false, command.Error("NOMASTERLINK Can't SYNC while failing over")
	case link != nil && link.state != LinkConnected:
		return false, command.Error("NOMASTERLINK Can't SYNC while not connected with my master")
	}
	return true, nil
}

// partialSync lets a replica go on from an offset.
func (m *Machine) partialSync(c *command.Ctx, from int64) {
	s := session(c)
	m.repl.partials++
	if s.replica.capaPSYNC2 {
		c.Out.SimpleString("CONTINUE " + m.repl.history.ID)
	} else {
		c.Out.SimpleString("CONTINUE")
	}
	s.Stream = m.repl.history.Since(from)
	m.follower(s, replicaOnline)
	s.replica.ackOffset = from - 1
	m.countGood()
}

// fullSync has a replica wait for a snapshot.
func (m *Machine) fullSync(c *command.Ctx, byPSYNC bool) error {
	s := session(c)
	r := s.asReplica()
	if !r.capaEOF {
		return command.Error("ERR a snapshot comes without its length here: say REPLCONF capa eof first")
	}
	m.repl.fulls++
	r.byPSYNC = byPSYNC
	m.follower(s, replicaWaiting)
	m.repl.waiting++
	delayUs := m.settings.Int("repl-diskless-sync-delay") * 1e6
	if m.repl.waiting == 1 {
		m.repl.syncAtUs = m.nowUs + delayUs
	}
	if most := m.settings.Int("repl-diskless-sync-max-replicas"); most > 0 && int64(m.repl.waiting) >= most {
		m.repl.syncAtUs = m.nowUs
	}
	m.beginScheduled()
	return nil
}

// follower makes a session one that the stream is for.
func (m *Machine) follower(s *Session, state replicaState) {
	r := &m.repl
	if r.link == nil && !r.history.Keeps() {
		r.history.Rename(m.newID())
	}
	r.history.Keep(m.settings.Int("repl-backlog-size"))
	s.replica.state, s.replica.ackUs = state, m.nowUs
	r.replicas = append(r.replicas, s)
	m.adjustStream()
}

// unfollow forgets a session that was a replica.
func (m *Machine) unfollow(s *Session) {
	if !s.IsReplica() {
		return
	}
	r := &m.repl
	if s.replica.state == replicaWaiting {
		r.waiting--
	}
	r.replicas = without(r.replicas, s)
	r.leftAt = r.history.Offset
	if sync := s.replica.sync; sync != nil {
		m.leaveSync(s, sync)
	}
	s.replica.state = replicaUnknown
	if len(r.replicas) == 0 {
		r.aloneUs = m.nowUs
	}
	m.countGood()
	m.adjustStream()
}

func without(sessions []*Session, s *Session) []*Session {
	kept := make([]*Session, 0, len(sessions))
	for _, one := range sessions {
		if one != s {
			kept = append(kept, one)
		}
	}
	return kept
}

// dropReplicas disconnects all replicas, which come back.
func (m *Machine) dropReplicas() {
	for _, s := range append([]*Session(nil), m.repl.replicas...) {
		m.drop(s)
	}
}

func (m *Machine) drop(s *Session) {
	m.Disconnect(s)
	m.effects.Close = append(m.effects.Close, s)
}

// syncIsDue reports whether a full synchronisation is to begin.
func (m *Machine) syncIsDue() bool { return m.repl.waiting > 0 && m.nowUs >= m.repl.syncAtUs }

// BeginSync begins a full synchronisation with all who wait for one: at this moment, after which
// everything is in their stream. nil if nobody waits any more. It is to be ended by JobEnded.
func (m *Machine) BeginSync(nowUs int64) (*Sync, error) {
	r := &m.repl
	m.nowUs = nowUs
	sync := &Sync{machine: m, Mark: m.newID()}
	options := SnapshotOptions{Stream: true}
	for _, s := range r.replicas {
		if s.replica.state != replicaWaiting {
			continue
		}
		if len(sync.sessions) > 0 && s.replica.functionsOnly != options.FunctionsOnly {
			continue // the next one is for them
		}
		options.FunctionsOnly = s.replica.functionsOnly
		sync.sessions = append(sync.sessions, s)
	}
	if len(sync.sessions) == 0 {
		return nil, nil
	}
	if r.link == nil {
		m.PropagateAnew()
	}
	var err error
	if sync.Snapshot, err = m.BeginSnapshot(nowUs, options); err != nil {
		return nil, err
	}
	for _, s := range sync.sessions {
		s.replica.state, s.replica.sync = replicaSending, sync
		r.waiting--
		if s.replica.byPSYNC {
			s.Out.SimpleString("FULLRESYNC " + r.history.ID + " " + strconv.FormatInt(r.history.Offset, 10))
		}
		s.replica.ackOffset = r.history.Offset
		s.Out.Raw([]byte(replication.Head(sync.Mark)))
		m.wake(s)
	}
	r.syncs = append(r.syncs, sync)
	return sync, nil
}

// Sessions are those that are to be sent the snapshot, as far as they are still there.
func (y *Sync) Sessions() []*Session { return y.sessions }

// WaitingBytes is how much memory is in use because the snapshot was not sent yet.
func (y *Sync) WaitingBytes() int64 { return int64(y.stream.Len() + y.Snapshot.PendingBytes()) }

// Sent tells that the snapshot was sent to all, with its mark.
func (y *Sync) Sent() {
	y.sent = true
	for _, s := range append([]*Session(nil), y.sessions...) {
		if s.replica.snapshotOnly { // it has what it wants
			y.machine.unfollow(s)
			s.closing = true
			y.machine.wake(s)
			continue
		}
		s.replica.state, s.replica.ackUs = replicaSent, y.machine.nowUs
	}
}

// GiveUp disconnects those who were not sent the whole of it: they try again.
func (y *Sync) GiveUp() {
	for _, s := range append([]*Session(nil), y.sessions...) {
		y.machine.drop(s)
	}
}

// leaveSync forgets a session in a full synchronisation, which is over with the last one.
func (m *Machine) leaveSync(s *Session, sync *Sync) {
	sync.sessions = without(sync.sessions, s)
	s.replica.sync = nil
	if len(sync.sessions) > 0 {
		return
	}
	for i, one := range m.repl.syncs {
		if one == sync {
			m.repl.syncs = append(m.repl.syncs[:i:i], m.repl.syncs[i+1:]...)
			return
		}
	}
}

// isOnline puts a replica that has its snapshot online.
func (m *Machine) isOnline(s *Session) {
	sync := s.replica.sync
	s.replica.state = replicaOnline
	s.Stream.Join(&sync.stream)
	m.repl.outputBytes += int64(sync.stream.Len())
	m.wake(s)
	m.leaveSync(s, sync)
}

// host is where a replica says that it is to be found.
func (s *Session) host() string {
	if s.replica.address != "" {
		return s.replica.address
	}
	host := s.Addr
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	return strings.Trim(host, "[]")
}
