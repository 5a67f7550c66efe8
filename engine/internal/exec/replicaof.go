package exec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

// Whom the machine follows, and what it tells of that: REPLICAOF, ROLE, INFO replication.

func (m *Machine) replicaOfSpecs() []command.Spec {
	const flags = command.Admin | command.NoScript | command.Stale | command.NoAsyncLoading
	return []command.Spec{
		{
			Name: "role", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast, Group: "server", Since: "2.8.12",
			Summary: "Says what the server is in replication, and who is on the other side.", Complexity: "O(1)", Run: m.role,
		},
		{
			Name: "replicaof", Arity: 3, Flags: flags, Group: "server", Since: "5.0.0",
			Summary: "Makes the server a replica of another one, or a master.", Complexity: "O(1)", Run: m.replicaOf,
		},
		{
			Name: "slaveof", Arity: 3, Flags: flags, Group: "server", Since: "1.0.0",
			Summary: "The old name of REPLICAOF.", Complexity: "O(1)", Run: m.replicaOf,
		},
	}
}

func (m *Machine) replicaOf(c *command.Ctx) error {
	const notice = 2
	if m.failover.active() {
		return command.Error("ERR REPLICAOF not allowed while failing over.")
	}
	if command.Is(c.Args[1], "NO") && command.Is(c.Args[2], "ONE") {
		if m.repl.link != nil {
			m.endLink()
			m.options.Log(notice, "this is a primary now, by REPLICAOF NO ONE of "+session(c).Addr)
		}
		c.Out.SimpleString("OK")
		return nil
	}
	if session(c).IsReplica() {
		return command.Error("ERR Command is not valid when client is a replica.")
	}
	port, ok := command.ParseInt(c.Args[2])
	if !ok || port < 0 || port > 65535 {
		return command.Error("ERR Invalid master port")
	}
	host := c.Arg(1)
	if err := conf.CheckReplicaOf(host + " " + strconv.FormatInt(port, 10)); err != nil {
		return command.Error("ERR " + err.Error())
	}
	if link := m.repl.link; link != nil && strings.EqualFold(link.Host, host) && link.Port == int(port) && !link.stopped {
		c.Out.SimpleString("OK Already connected to specified master")
		return nil
	}
	m.startLink(host, int(port))
	m.options.Log(notice, "this is a replica of "+m.repl.link.String()+" now, by REPLICAOF of "+session(c).Addr)
	c.Out.SimpleString("OK")
	return nil
}

// Follow makes the machine a replica of whom its settings name, if they name one. The shell calls it once,
// when what was kept is loaded.
func (m *Machine) Follow(nowUs int64) {
	m.nowUs = nowUs
	host, port, ok := strings.Cut(m.settings.Text("replicaof"), " ")
	if n, err := strconv.Atoi(port); ok && err == nil {
		m.startLink(host, n)
		m.repl.link.offers, m.repl.link.db = m.restored.whole(), m.restored.db
	}
}

func (m *Machine) role(c *command.Ctx) error {
	if link := m.repl.link; link != nil {
		c.Out.Array(5)
		c.Out.BulkString("slave")
		c.Out.BulkString(link.Host)
		c.Out.Int(int64(link.Port))
		c.Out.BulkString(link.state.String())
		offset := int64(-1)
		if link.state == LinkConnected {
			offset = m.repl.history.Offset
		}
		c.Out.Int(offset)
		return nil
	}
	c.Out.Array(3)
	c.Out.BulkString("master")
	c.Out.Int(m.repl.history.Offset)
	var online []*Session
	for _, s := range m.repl.replicas {
		if s.replica.state == replicaOnline {
			online = append(online, s)
		}
	}
	c.Out.Array(len(online))
	for _, s := range online {
		c.Out.Array(3)
		c.Out.BulkString(s.host())
		c.Out.BulkInt(s.replica.port)
		c.Out.BulkInt(s.replica.ackOffset)
	}
	return nil
}

// roleName is how HELLO names the server's role.
func (m *Machine) roleName() string {
	if m.repl.link != nil {
		return "replica"
	}
	return "master"
}

func (m *Machine) infoReplication(w *strings.Builder) {
	r := &m.repl
	if r.link != nil {
		fields(w, "role", "slave")
		m.infoLink(w)
	} else {
		fields(w, "role", "master")
	}
	fields(w, "connected_slaves", len(r.replicas))
	if m.settings.Int("min-replicas-to-write") > 0 && m.settings.Int("min-replicas-max-lag") > 0 {
		fields(w, "min_slaves_good_slaves", r.good)
	}
	for i, s := range r.replicas {
		lag := int64(0)
		if s.replica.state == replicaOnline {
			lag = (m.nowUs - s.replica.ackUs) / 1e6
		}
		fmt.Fprintf(w, "slave%d:ip=%s,port=%d,state=%s,offset=%d,lag=%d\r\n",
			i, s.host(), s.replica.port, s.replica.state, s.replica.ackOffset, lag)
	}
	active, first := 0, int64(0)
	if r.history.Keeps() {
		active, first = 1, r.history.First()
	}
	fields(w,
		"master_failover_state", m.failover.state(),
		"master_replid", r.history.ID, "master_replid2", r.history.SecondID, "master_repl_offset", r.history.Offset,
		"second_repl_offset", r.history.SecondOffset, "repl_backlog_active", active, "repl_backlog_size", m.settings.Int("repl-backlog-size"),
		"repl_backlog_first_byte_offset", first, "repl_backlog_histlen", r.history.Kept())
}

// infoLink writes what INFO says of the link to the primary.
func (m *Machine) infoLink(w *strings.Builder) {
	link := m.repl.link
	status, silent := "down", int64(-1)
	if link.state == LinkConnected {
		status, silent = "up", (m.nowUs-link.heardUs)/1e6
	}
	offset := m.repl.history.Offset
	fields(w,
		"master_host", link.Host, "master_port", link.Port, "master_link_status", status, "master_last_io_seconds_ago", silent,
		"master_sync_in_progress", flag(link.state == LinkSync), "slave_read_repl_offset", offset, "slave_repl_offset", offset)
	if link.state == LinkSync {
		left, perc := link.total-link.read, 0.0
		if link.total < 0 {
			left = -1
		} else {
			perc = percent(link.read, link.total)
		}
		fields(w,
			"master_sync_total_bytes", link.total, "master_sync_read_bytes", link.read, "master_sync_left_bytes", left,
			"master_sync_perc", fmt.Sprintf("%.2f", perc), "master_sync_last_io_seconds_ago", (m.nowUs-link.heardUs)/1e6)
	}
	if link.state != LinkConnected {
		fields(w, "master_link_down_since_seconds", (m.nowUs-link.downSinceUs)/1e6)
		if link.trouble != "" {
			fields(w, "master_link_error", link.trouble)
		}
	}
	fields(w,
		"slave_priority", m.settings.Int("replica-priority"), "slave_read_only", flag(m.settings.Bool("replica-read-only")),
		"replica_announced", flag(m.settings.Bool("replica-announced")))
}

// debugChangeID takes another name, so that nobody can go on from what was heard under the old one.
func (m *Machine) debugChangeID(c *command.Ctx) error {
	h := &m.repl.history
	h.ID, h.SecondID, h.SecondOffset = m.newID(), replication.NoID, -1
	c.Out.SimpleString("OK")
	return nil
}
