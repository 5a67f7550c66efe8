package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// RedisVersion is the version of Redis whose behaviour the engine has. Clients
// choose by it what they may use.
const RedisVersion = "7.0.15"

// section is one part of INFO.
type section struct {
	name   string
	always bool // shown without being asked for
	write  func(w *strings.Builder)
}

func (m *Machine) infoSpecs() []command.Spec {
	const flags = command.Loading | command.Stale
	return []command.Spec{
		{Name: "info", Arity: -1, Flags: flags, Group: "server", Since: "1.0.0", Summary: "Describes the server.", Complexity: "O(1)", Run: m.info},
		{Name: "time", Arity: 1, Flags: flags | command.Fast, Group: "server", Since: "2.6.0", Summary: "Answers with the server's time: seconds and microseconds.", Complexity: "O(1)", Run: timeNow},
		{
			Name: "debug", Arity: -2, Flags: command.Admin | command.NoScript | flags, Group: "server", Since: "1.0.0",
			Summary: "A container for commands for debugging.", Complexity: "that of the subcommand", Run: debug,
		},
	}
}

func timeNow(c *command.Ctx) error {
	c.Out.Array(2)
	c.Out.BulkInt(c.NowUs / 1e6)
	c.Out.BulkInt(c.NowUs % 1e6)
	return nil
}

func (m *Machine) info(c *command.Ctx) error {
	var wanted []string
	for _, a := range c.Args[1:] {
		wanted = append(wanted, strings.ToLower(string(a)))
	}
	all := slices.Contains(wanted, "all") || slices.Contains(wanted, "everything")
	usual := len(wanted) == 0 || slices.Contains(wanted, "default")
	var text strings.Builder
	for _, sec := range m.infoSections() {
		if !all && !slices.Contains(wanted, strings.ToLower(sec.name)) && (!usual || !sec.always) {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		fmt.Fprintf(&text, "# %s\r\n", sec.name)
		sec.write(&text)
	}
	c.Out.Verbatim("txt", text.String())
	return nil
}

func (m *Machine) infoSections() []section {
	var process Process
	if m.options.Process != nil {
		process = m.options.Process()
	}
	return []section{
		{"Server", true, func(w *strings.Builder) { m.infoServer(w, process) }},
		{"Clients", true, m.infoClients},
		{"Memory", true, func(w *strings.Builder) {
			fields(w, "used_memory", process.UsedMemoryBytes, "used_memory_rss", process.RSSBytes, "maxmemory", 0, "maxmemory_policy", "noeviction")
		}},
		{"Persistence", true, func(w *strings.Builder) { fields(w, "loading", 0, "aof_enabled", 0) }},
		{"Stats", true, m.infoStats},
		{"Replication", true, func(w *strings.Builder) {
			fields(w, "role", "master", "connected_slaves", 0, "master_replid", m.options.RunID, "master_repl_offset", 0)
		}},
		{"CPU", true, func(w *strings.Builder) {
			fields(w, "used_cpu_sys", fmt.Sprintf("%.6f", process.CPUSysSec), "used_cpu_user", fmt.Sprintf("%.6f", process.CPUUserSec))
		}},
		{"Modules", true, func(*strings.Builder) {}},
		{"Commandstats", false, m.infoCommandStats},
		{"Cluster", true, func(w *strings.Builder) { fields(w, "cluster_enabled", 0) }},
		{"Keyspace", true, m.infoKeyspace},
	}
}

// fields writes name:value lines.
func fields(w *strings.Builder, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(w, "%v:%v\r\n", pairs[i], pairs[i+1])
	}
}

func (m *Machine) infoServer(w *strings.Builder, process Process) {
	uptime := (m.nowUs - m.startedUs) / 1e6
	fields(w,
		"redis_version", RedisVersion, "server_name", "signalbox", "redis_mode", "standalone",
		"os", process.OS, "arch_bits", 64, "process_id", process.PID, "run_id", m.options.RunID,
		"tcp_port", m.options.Port, "server_time_usec", m.nowUs, "uptime_in_seconds", uptime,
		"uptime_in_days", uptime/86400, "executable", process.Executable, "config_file", "")
}

func (m *Machine) infoClients(w *strings.Builder) {
	connected := 0
	for _, s := range m.sessions {
		if s.Addr != localAddr {
			connected++
		}
	}
	fields(w, "connected_clients", connected, "blocked_clients", m.space.Waiters)
}

func (m *Machine) infoStats(w *strings.Builder) {
	fields(w,
		"total_connections_received", m.stats.connections, "total_commands_processed", m.stats.commands,
		"expired_keys", m.space.Expired, "pubsub_channels", len(m.broker.channels),
		"pubsub_patterns", len(m.broker.patterns), "pubsubshard_channels", len(m.broker.shards))
}

func (m *Machine) infoCommandStats(w *strings.Builder) {
	var lines []string
	each := func(spec *command.Spec) {
		n := m.stats.calls[spec.Number()]
		if n == (callStats{}) {
			return
		}
		lines = append(lines, fmt.Sprintf("cmdstat_%s:calls=%d,usec=0,usec_per_call=0.00,rejected_calls=%d,failed_calls=%d\r\n",
			spec.FullName(), n.calls, n.rejected, n.failed))
	}
	for _, spec := range m.table.All() {
		each(spec)
		for i := range spec.Sub {
			each(&spec.Sub[i])
		}
	}
	slices.Sort(lines)
	w.WriteString(strings.Join(lines, ""))
}

func (m *Machine) infoKeyspace(w *strings.Builder) {
	for i := range keyspace.Databases {
		if db := m.space.DB(i); db.Len() > 0 {
			fmt.Fprintf(w, "db%d:keys=%d,expires=%d,avg_ttl=0\r\n", i, db.Len(), db.VolatileLen())
		}
	}
}
