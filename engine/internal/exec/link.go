package exec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

// A replica's link to its primary. The shell has the connection, and tells what comes of it:
//
//	connect ─▶ connecting ─▶ handshake ─┬─ full ──▶ sync ─▶ connected
//	   ▲                                └─ continue ───────▶ connected
//	   └───────────── Down, after any of them; the shell tries again
//
// The stream is run on a session of its own, request by request, as a log is (replay.go); only that
// clients are served in between, and are told of changes. What it is in the middle of when the link
// breaks (a transaction) was not run, and is not counted as heard: it will come again.
//
// A request that cannot be run, or answers with an error, means that the data is not the primary's
// any more, or that this server does not know what the primary knows. Then the link stops for good:
// better to stand still, and say so, than to go on with other data.

// LinkState is how far a link is.
type LinkState uint8

// The states, as ROLE names them.
const (
	LinkConnect LinkState = iota
	LinkConnecting
	LinkHandshake
	LinkSync
	LinkConnected
)

func (s LinkState) String() string {
	return [...]string{"connect", "connecting", "handshake", "sync", "connected"}[s]
}

// Link is a machine's link to its primary. The machine's lock protects it.
type Link struct {
	Host string
	Port int

	machine     *Machine
	state       LinkState
	session     *Session // runs the stream; nil while none flows
	db          int      // that was selected last
	offers      bool     // what the history says may be gone on from
	takeOver    bool     // tells the other one to become the primary: FAILOVER
	wantsAck    bool
	downSinceUs int64
	heardUs     int64
	read, total int64 // bytes of the snapshot; total is -1 if nobody knows
	trouble     string
	stopped     bool
	ancestors   []string // the run IDs of the primary, of whom it follows, and so on, as far as they tell
}

// Link is the link to the primary; nil if the machine is one.
func (m *Machine) Link() *Link { return m.repl.link }

// startLink makes the machine a replica. Whoever blocks on what only a primary can give has waited in vain.
func (m *Machine) startLink(host string, port int) {
	r := &m.repl
	before := r.link
	m.passOn()
	r.link = &Link{Host: host, Port: port, machine: m, state: LinkConnecting, offers: true, downSinceUs: m.nowUs, total: -1}
	if before == nil {
		m.unblockAll()
	} else {
		r.link.db, r.link.offers, r.link.ancestors = before.db, before.offers, before.ancestors
		before.end()
	}
	m.settings.Overrule("replicaof", host+" "+strconv.Itoa(port))
	m.effects.Relink = true
	m.adjustStream()
}

// endLink makes the machine a primary, whose stream goes on under a new name.
func (m *Machine) endLink() {
	r := &m.repl
	if r.link == nil {
		return
	}
	r.link.end()
	r.link = nil
	r.history.Fork(m.newID())
	r.aloneUs = m.nowUs
	m.settings.Overrule("replicaof", "")
	m.effects.Relink = true
	m.dropReplicas() // they are to hear the name
	m.adjustStream()
}

func (l *Link) end() {
	if l.session != nil {
		l.db = l.session.db.Index
		l.machine.Disconnect(l.session)
		l.session = nil
	}
}

// unblockAll ends the wait of all who wait for keys.
func (m *Machine) unblockAll() {
	m.each(func(s *Session) {
		if s.blocked == nil || s.blocked.postponed || s.blocked.waiter.Keyless() && s.blocked.spec.Name != "wait" {
			return
		}
		s.closing = true
		out := s.replies()
		out.Error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
		m.unblock(s, out)
	})
}

// Terms are what the handshake is to say.
func (l *Link) Terms() replication.Terms {
	m, settings := l.machine, l.machine.settings
	t := replication.Terms{
		User: settings.Text("masteruser"), Password: settings.Text("masterauth"),
		Port: int(settings.Int("replica-announce-port")), Address: settings.Text("replica-announce-ip"), TakeOver: l.takeOver,
		Ancestors: true,
	}
	switch {
	case t.Port != 0:
	case settings.Bool("tls-replication") && settings.Int("tls-port") != 0:
		t.Port = int(settings.Int("tls-port"))
	default:
		t.Port = m.options.Port
	}
	if l.offers {
		t.ID, t.Offset = m.repl.history.ID, m.repl.history.Offset
	}
	return t
}

// Learn tells whom the primary follows: run IDs, its own first; nil if that is not known yet. Replicas ask anew when it
// changes. The error says that this server is among them, so that each would wait for the next one for ever.
func (l *Link) Learn(nowUs int64, ancestors []string) error {
	if ancestors == nil {
		return nil
	}
	m := l.machine
	m.nowUs = nowUs
	if l.takeOver { // it follows this server, and is about to follow nobody; its stream has another name then
		l.ancestors = ancestors[:min(len(ancestors), 1)]
		return nil
	}
	at := slices.Index(ancestors, m.options.RunID)
	others := ancestors
	if at >= 0 {
		others = ancestors[:at]
	}
	if !slices.Equal(others, l.ancestors) {
		l.ancestors = others
		m.dropReplicas()
	}
	switch {
	case at < 0:
		return nil
	case at == 0:
		return errors.New("the primary is this server itself, so that nobody writes here, as signalbox move leaves a source; " +
			"else say REPLICAOF NO ONE, or name another one")
	}
	return fmt.Errorf("the primary follows this server: %d replicas are in a circle, and there is no primary: say REPLICAOF NO ONE to one of them", at+1)
}

// lineage is what a replica is told of whom this server follows.
func (m *Machine) lineage() string {
	const most = 64 // of a line
	ids := []string{m.options.RunID}
	if link := m.repl.link; link != nil {
		ids = append(ids, link.ancestors[:min(len(link.ancestors), most)]...)
	}
	return strings.Join(ids, " ")
}

// Enter tells that the link has come to a state on the way to the stream.
func (l *Link) Enter(nowUs int64, state LinkState) {
	l.state, l.heardUs = state, nowUs
	l.read, l.total = 0, -1
}

// Progress tells how much of the snapshot was read, of how much; -1 if nobody knows.
func (l *Link) Progress(nowUs, read, total int64) { l.heardUs, l.read, l.total = nowUs, read, total }

// Continue begins the stream where the link broke off before.
func (l *Link) Continue(nowUs int64, id, addr, localAddr string) {
	m := l.machine
	m.nowUs = nowUs
	if history := &m.repl.history; id != history.ID {
		history.Fork(id)
		m.dropReplicas() // they are to hear the name
	}
	l.begin(addr, localAddr)
}

// begin begins the stream.
func (l *Link) begin(addr, localAddr string) {
	m := l.machine
	l.session = m.Connect(m.nowUs, addr, localAddr)
	l.session.user, l.session.authenticated, l.session.link = nil, true, l
	l.session.db = m.space.DB(l.db)
	l.offers, l.takeOver = true, false
	m.endFailover()
	l.state, l.heardUs, l.trouble = LinkConnected, m.nowUs, ""
	m.repl.history.Keep(m.settings.Int("repl-backlog-size"))
	m.adjustStream()
}

// Session is the one on which the stream is run; nil while none flows.
func (l *Link) Session() *Session { return l.session }

// Apply runs one request of the stream. whole reports whether what was heard so far is all run:
// no transaction is open. The error means that the link is to Stop.
func (l *Link) Apply(nowUs int64, args [][]byte) (whole bool, err error) {
	m, s := l.machine, l.session
	if command.Is(args[0], "REPLCONF") {
		l.wantsAck = l.wantsAck || len(args) > 1 && command.Is(args[1], "GETACK")
		return s.transaction == nil, nil
	}
	s.lastUs = nowUs
	m.current, m.replyFrom = s, 0
	m.space.Loading = true
	err = m.runPropagated(s, nowUs, args)
	m.space.Loading = false
	s.Out.Reset()
	m.hasRun(s)
	m.serveReady()
	return s.transaction == nil, err
}

// Advance tells the bytes of the stream that were run, which are passed on as they came.
func (l *Link) Advance(nowUs int64, heard []byte) {
	l.heardUs = nowUs
	l.machine.repl.inputBytes += int64(len(heard))
	l.machine.feed(heard)
}

// TakeAck reports whether the primary wants to know the offset now.
func (l *Link) TakeAck() bool {
	wanted := l.wantsAck
	l.wantsAck = false
	return wanted
}

// Offset is how much of the stream was heard.
func (l *Link) Offset() int64 { return l.machine.repl.history.Offset }

// Down tells that the link has broken, and why.
func (l *Link) Down(nowUs int64, why error) {
	if l.state == LinkConnected {
		l.downSinceUs = nowUs
	}
	m := l.machine
	m.nowUs = nowUs
	l.state, l.trouble = LinkConnect, oneLine(why.Error())
	l.end()
	switch {
	case !l.takeOver:
	case errors.Is(why, replication.ErrTaken):
		l.takeOver = false
		m.endFailover()
	case errors.Is(why, replication.ErrRefused):
		m.abortFailover(l.trouble)
	}
}

// Stop is Down for good.
func (l *Link) Stop(nowUs int64, why error) {
	l.Down(nowUs, why)
	l.stopped = true
}

// Stopped reports whether nobody is to try again.
func (l *Link) Stopped() bool { return l.stopped }

func (l *Link) String() string { return fmt.Sprintf("%s:%d", l.Host, l.Port) }
