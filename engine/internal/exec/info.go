package exec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// INFO. Its fields have Redis's names where they mean the same; fields about what
// does not exist here (forks, fragmentation inside jemalloc, I/O threads) are
// left out, but for those that dashboards expect, which say that there is none.

// RedisVersion is the version of Redis whose behaviour the engine has. Clients
// choose by it what they may use.
const RedisVersion = "7.0.15"

// section is one part of INFO.
type section struct {
	name  string
	usual bool // shown without being asked for
	write func(w *strings.Builder)
}

func (m *Machine) infoSpecs() []command.Spec {
	const flags = command.Loading | command.Stale
	return []command.Spec{
		{Name: "info", Arity: -1, Flags: flags, Group: "server", Since: "1.0.0", Summary: "Describes the server.", Complexity: "O(1)", Run: m.info},
		{Name: "time", Arity: 1, Flags: flags | command.Fast, Group: "server", Since: "2.6.0", Summary: "Answers with the server's time: seconds and microseconds.", Complexity: "O(1)", Run: timeNow},
		m.debugSpec(),
	}
}

func timeNow(c *command.Ctx) error {
	c.Out.Array(2)
	c.Out.BulkInt(c.NowUs / 1e6)
	c.Out.BulkInt(c.NowUs % 1e6)
	return nil
}

func (m *Machine) info(c *command.Ctx) error {
	wanted := map[string]bool{}
	for _, a := range c.Args[1:] {
		wanted[strings.ToLower(string(a))] = true
	}
	all := wanted["all"] || wanted["everything"]
	usual := len(wanted) == 0 || wanted["default"]
	var text strings.Builder
	for _, sec := range m.infoSections() {
		name := strings.ToLower(sec.name)
		if !wanted[name] && !all && (!usual || !sec.usual) {
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
	process := m.process()
	return []section{
		{"Server", true, func(w *strings.Builder) { m.infoServer(w, process) }},
		{"Clients", true, m.infoClients},
		{"Memory", true, func(w *strings.Builder) { m.infoMemory(w, process) }},
		{"Persistence", true, m.infoPersistence},
		{"Stats", true, m.infoStats},
		{"Replication", true, m.infoReplication},
		{"CPU", true, func(w *strings.Builder) { infoCPU(w, process) }},
		{"Modules", true, func(*strings.Builder) {}},
		{"Commandstats", false, m.infoCommandStats},
		{"Errorstats", true, m.infoErrorStats},
		{"Latencystats", false, m.infoLatencyStats},
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
		"redis_version", RedisVersion, "redis_git_sha1", "00000000", "redis_git_dirty", 0, "server_name", "signalbox", "redis_mode", "standalone",
		"os", process.OS, "arch_bits", strconv.IntSize, "monotonic_clock", "Go runtime", "multiplexing_api", "Go netpoll",
		"process_id", process.PID, "process_supervised", "no", "run_id", m.options.RunID,
		"tcp_port", m.options.Port, "server_time_usec", m.nowUs, "uptime_in_seconds", uptime,
		"uptime_in_days", uptime/86400, "hz", 10, "configured_hz", 10, "lru_clock", m.nowUs/1e6&(1<<24-1),
		"executable", process.Executable, "config_file", "", "io_threads_active", 0)
	if m.ending != nil {
		fields(w, "shutdown_in_milliseconds", max(m.ending.untilUs-m.nowUs, 0)/1000)
	}
}

func (m *Machine) infoClients(w *strings.Builder) {
	connected, pubsub, timed, input, output := 0, 0, 0, 0, 0
	for _, s := range m.sessions {
		if s.Addr == localAddr {
			continue
		}
		connected++
		if s.Subscriber() {
			pubsub++
		}
		if s.blocked != nil && s.blocked.untilUs != 0 {
			timed++
		}
		input = max(input, s.Buffers.QueryBytes)
		if s.Unread != nil {
			output = max(output, s.Unread())
		}
	}
	fields(w,
		"connected_clients", connected, "cluster_connections", 0, "maxclients", m.limits.maxClients,
		"client_recent_max_input_buffer", input, "client_recent_max_output_buffer", output,
		"blocked_clients", m.space.Waiters, "tracking_clients", m.tracker.sessions, "pubsub_clients", pubsub,
		"clients_in_timeout_table", timed)
}

func (m *Machine) infoMemory(w *strings.Builder, process Process) {
	m.weighAgain()
	used := m.usedBytes()
	m.stats.peakBytes = max(m.stats.peakBytes, used)
	var tables int64
	for i := range keyspace.Databases {
		if db := m.space.DB(i); db.Len() > 0 {
			tables += db.TableBytes()
		}
	}
	overhead := used - m.space.UsedBytes() + tables
	rss := int64(process.RSSBytes)
	fields(w,
		"used_memory", used, "used_memory_human", human(used), "used_memory_rss", rss, "used_memory_rss_human", human(rss),
		"used_memory_peak", m.stats.peakBytes, "used_memory_peak_human", human(m.stats.peakBytes),
		"used_memory_peak_perc", fmt.Sprintf("%.2f%%", percent(used, m.stats.peakBytes)),
		"used_memory_overhead", overhead, "used_memory_startup", 0, "used_memory_dataset", used-overhead,
		"used_memory_dataset_perc", fmt.Sprintf("%.2f%%", percent(used-overhead, used)),
		"allocator_allocated", process.HeapBytes, "allocator_active", process.HeapInUseBytes, "allocator_resident", rss,
		"maxmemory", m.memory.maxBytes, "maxmemory_human", human(m.memory.maxBytes), "maxmemory_policy", m.space.Policy(),
		"mem_fragmentation_ratio", fmt.Sprintf("%.2f", ratio(rss, used)), "mem_fragmentation_bytes", rss-used,
		"mem_not_counted_for_evict", 0, "mem_replication_backlog", m.repl.history.Kept(),
		"mem_clients_normal", m.clientBytes(), "mem_clients_slaves", 0, "mem_aof_buffer", 0,
		"mem_allocator", "go", "active_defrag_running", 0, "lazyfree_pending_objects", 0, "lazyfreed_objects", m.space.FreedLater,
		"number_of_cached_scripts", m.scripts.ScriptCount(), "number_of_functions", len(m.library.functions),
		"number_of_libraries", len(m.library.byName))
}

func (m *Machine) infoStats(w *strings.Builder) {
	s := &m.stats
	kbps := func(r *rate, n int64) string { return fmt.Sprintf("%.2f", r.perSec(m.nowUs, n)/1024) }
	fields(w,
		"total_connections_received", s.connections, "total_commands_processed", s.commands,
		"instantaneous_ops_per_sec", int64(m.rates.commands.perSec(m.nowUs, s.commands)),
		"total_net_input_bytes", s.inputBytes, "total_net_output_bytes", s.outputBytes,
		"total_net_repl_input_bytes", m.repl.inputBytes, "total_net_repl_output_bytes", m.repl.outputBytes,
		"instantaneous_input_kbps", kbps(&m.rates.input, s.inputBytes), "instantaneous_output_kbps", kbps(&m.rates.output, s.outputBytes),
		"rejected_connections", s.refused,
		"sync_full", m.repl.fulls, "sync_partial_ok", m.repl.partials, "sync_partial_err", m.repl.refused,
		"expired_keys", m.space.Expired, "evicted_keys", m.space.Evicted, "evicted_clients", m.clients.evicted,
		"keyspace_hits", m.space.Hits, "keyspace_misses", m.space.Misses,
		"pubsub_channels", len(m.broker.channels), "pubsub_patterns", len(m.broker.patterns), "pubsubshard_channels", len(m.broker.shards),
		"latest_fork_usec", 0, "total_forks", 0,
		"tracking_total_keys", m.tracker.keys.Len(), "tracking_total_items", m.tracker.items, "tracking_total_prefixes", len(m.tracker.prefixes),
		"unexpected_error_replies", 0, "total_error_replies", s.errorReplies,
		"total_reads_processed", s.reads, "total_writes_processed", s.writes)
}

func infoCPU(w *strings.Builder, process Process) {
	system, user := fmt.Sprintf("%.6f", process.CPUSysSec), fmt.Sprintf("%.6f", process.CPUUserSec)
	fields(w, "used_cpu_sys", system, "used_cpu_user", user, "used_cpu_sys_children", "0.000000", "used_cpu_user_children", "0.000000")
}

// eachCount visits the counters of the commands that have been called or
// refused, by their names.
func (m *Machine) eachCount(visit func(name string, n *callStats)) {
	var specs []*command.Spec
	add := func(spec *command.Spec) {
		if n := m.count(spec); n.calls > 0 || n.rejected > 0 {
			specs = append(specs, spec)
		}
	}
	for _, spec := range m.table.All() {
		add(spec)
		for i := range spec.Sub {
			add(&spec.Sub[i])
		}
	}
	slices.SortFunc(specs, func(a, b *command.Spec) int { return strings.Compare(a.FullName(), b.FullName()) })
	for _, spec := range specs {
		visit(spec.FullName(), m.count(spec))
	}
}

func (m *Machine) infoCommandStats(w *strings.Builder) {
	m.eachCount(func(name string, n *callStats) {
		fmt.Fprintf(w, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d\r\n",
			name, n.calls, n.ns/1000, float64(n.ns)/1000/float64(max(n.calls, 1)), n.rejected, n.failed)
	})
}

func (m *Machine) infoErrorStats(w *strings.Builder) {
	for _, code := range sortedKeys(m.stats.errors) {
		fmt.Fprintf(w, "errorstat_%s:count=%d\r\n", code, m.stats.errors[code])
	}
}

func (m *Machine) infoLatencyStats(w *strings.Builder) {
	m.eachCount(func(name string, n *callStats) {
		if n.latency.total == 0 {
			return
		}
		fmt.Fprintf(w, "latency_percentiles_usec_%s:", name)
		for i, p := range m.latency.percentiles {
			if i > 0 {
				w.WriteByte(',')
			}
			fmt.Fprintf(w, "p%s=%.3f", strconv.FormatFloat(p, 'f', -1, 64), float64(n.latency.percentile(p))/1000)
		}
		w.WriteString("\r\n")
	})
}

// Keys is how many keys there are, in all databases.
func (m *Machine) Keys() (keys int) {
	for i := range keyspace.Databases {
		keys += m.space.DB(i).Len()
	}
	return keys
}

func (m *Machine) infoKeyspace(w *strings.Builder) {
	for i := range keyspace.Databases {
		if db := m.space.DB(i); db.Len() > 0 {
			fmt.Fprintf(w, "db%d:keys=%d,expires=%d,avg_ttl=%d\r\n", i, db.Len(), db.VolatileLen(), db.AverageTTLMs(m.rand, m.nowUs/1000))
		}
	}
}
