package exec

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// FAILOVER: a primary and one of its replicas change places, and nothing is lost. Writes wait; when the replica
// has heard everything, the primary becomes its replica, and tells it with PSYNC ... FAILOVER to be the primary.
//
//	none ── FAILOVER ──▶ waiting for a replica ── has it all ──▶ in progress ── the stream flows ──▶ none
//	  ▲                        │ time is up, ABORT                   │ it refuses, ABORT
//	  └────────────────────────┴─────────────────────────────────────┘
//
// A link that breaks while it is in progress is tried again: the other one may have heard it, and two primaries
// would be worse than a moment without any.

// failover is the one that is under way.
type failover struct {
	step    failoverStep
	host    string // "": whoever has it all first
	port    int64
	force   bool  // go on when the time is up, whatever the replica has
	untilUs int64 // 0 is for ever
}

type failoverStep uint8

const (
	noFailover failoverStep = iota
	failoverWaits
	failoverRuns
)

func (f *failover) active() bool { return f.step != noFailover }

// state is how INFO names it.
func (f *failover) state() string {
	return [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}[f.step]
}

func (m *Machine) failoverSpecs() []command.Spec {
	return []command.Spec{{
		Name: "failover", Arity: -1, Flags: command.Admin | command.NoScript | command.Stale, Group: "server", Since: "6.2.0",
		Summary: "Has a replica take the server's place as the primary.", Complexity: "O(1)", Run: m.failOver,
	}}
}

func (m *Machine) failOver(c *command.Ctx) error {
	wanted, abort, err := parseFailover(c)
	if err != nil {
		return err
	}
	if abort {
		if !m.failover.active() {
			return command.Error("ERR No failover in progress.")
		}
		m.abortFailover("it was aborted by FAILOVER ABORT")
		c.Out.SimpleString("OK")
		return nil
	}
	if err := m.mayFailOver(&wanted); err != nil {
		return err
	}
	m.failover = wanted
	m.pause.untilUs = math.MaxInt64
	m.freeze()
	m.repl.wantAcks = true
	c.Out.SimpleString("OK")
	m.failoverHears()
	return nil
}

func parseFailover(c *command.Ctx) (f failover, abort bool, err error) {
	f.step = failoverWaits
	if len(c.Args) == 2 && command.Is(c.Args[1], "ABORT") {
		return f, true, nil
	}
	for i := 1; i < len(c.Args); i++ {
		left := len(c.Args) - i - 1
		switch {
		case command.Is(c.Args[i], "TIMEOUT") && left > 0 && f.untilUs == 0:
			ms, err := c.Int(i + 1)
			if err != nil {
				return f, false, err
			}
			if ms <= 0 {
				return f, false, command.Error("ERR FAILOVER timeout must be greater than 0")
			}
			f.untilUs = c.NowUs + min(ms, math.MaxInt32)*1000
			i++
		case command.Is(c.Args[i], "TO") && left > 1 && f.host == "":
			if f.port, err = c.Int(i + 2); err != nil {
				return f, false, err
			}
			f.host = c.Arg(i + 1)
			i += 2
		case command.Is(c.Args[i], "FORCE") && !f.force:
			f.force = true
		default:
			return f, false, command.ErrSyntax
		}
	}
	return f, false, nil
}

// mayFailOver refuses what cannot come to anything.
func (m *Machine) mayFailOver(f *failover) error {
	switch {
	case m.failover.active():
		return command.Error("ERR FAILOVER already in progress.")
	case m.repl.link != nil:
		return command.Error("ERR FAILOVER is not valid when server is a replica.")
	case len(m.repl.replicas) == 0:
		return command.Error("ERR FAILOVER requires connected replicas.")
	case f.force && (f.untilUs == 0 || f.host == ""):
		return command.Error("ERR FAILOVER with force option requires both a timeout and target HOST and IP are specified.")
	case f.host == "":
		return nil
	}
	target := m.findReplica(f.host, f.port)
	switch {
	case target == nil:
		return command.Error("ERR FAILOVER target HOST and PORT is not a replica.")
	case target.replica.state != replicaOnline:
		return command.Error("ERR FAILOVER target replica is not online.")
	}
	return nil
}

func (m *Machine) findReplica(host string, port int64) *Session {
	for _, s := range m.repl.replicas {
		if s.host() == host && s.replica.port == port {
			return s
		}
	}
	return nil
}

// failoverHears looks whether a replica has it all.
func (m *Machine) failoverHears() {
	f := &m.failover
	if f.step != failoverWaits || m.journal != nil && m.journal.Waiting() > 0 {
		return
	}
	for _, s := range m.repl.replicas {
		wanted := f.host == "" || s.host() == f.host && s.replica.port == f.port
		if wanted && s.replica.state == replicaOnline && s.replica.ackOffset >= m.repl.history.Offset {
			m.runFailover(s.host(), s.replica.port)
			return
		}
	}
}

func (m *Machine) runFailover(host string, port int64) {
	m.failover.step = failoverRuns
	m.startLink(host, int(port))
	m.repl.link.takeOver = true
}

// tickFailover ends the waiting when its time is up.
func (m *Machine) tickFailover() {
	f := &m.failover
	if f.step != failoverWaits {
		return
	}
	switch {
	case f.untilUs == 0 || m.nowUs < f.untilUs:
	case f.force:
		m.runFailover(f.host, f.port)
	default:
		m.abortFailover("no replica had caught up when its time was up")
	}
}

// abortFailover has the machine go on as the primary.
func (m *Machine) abortFailover(why string) {
	const warning = 3
	m.options.Log(warning, "the failover has come to nothing: "+why)
	if m.failover.step == failoverRuns {
		m.endLink()
	}
	m.endFailover()
}

// endFailover lets clients go on: they are told where they are now.
func (m *Machine) endFailover() {
	if !m.failover.active() {
		return
	}
	m.failover = failover{}
	if m.current != nil { // a command does this, and is not over
		m.pause.ended = true
		return
	}
	m.resume()
}

// takeOver makes a replica the primary, since its primary says so.
func (m *Machine) takeOver(id string) error {
	switch {
	case m.repl.link == nil:
		return command.Error("ERR PSYNC FAILOVER can't be sent to a master.")
	case id != m.repl.history.ID:
		return command.Error("ERR PSYNC FAILOVER replid must match my replid.")
	}
	m.endLink()
	return nil
}
