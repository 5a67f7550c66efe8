package exec

import (
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// The bound on memory, maxmemory, and the commands that tell of memory.
//
// What counts is an estimate of what the data takes of the heap, which the
// keyspace keeps (keyspace/memory.go), and of what sessions and the tracking
// table take. It is not the size of the process: the collector lets garbage
// gather before it looks, by default as much again as is live. Who bounds the
// process sets GOMEMLIMIT as well.
//
// Before each command keys are evicted until the estimate is below the bound. If
// none may be, commands that could need more memory are refused.

type memory struct {
	maxBytes int64 // 0 is no bound
	samples  int64
	short    bool // above the bound when the last command began, and nothing to evict
	behind   bool // eviction has more to do, and goes on between commands

	giveBack giveBack
}

const (
	// evictAtOnce bounds how long one command evicts for others.
	evictAtOnce = 10_000

	sessionBytes = 1 << 10 // a session, its connection and their buffers when idle
	trackedBytes = 64      // one reader of one key in the tracking table
)

const (
	errOOM       command.Error = "OOM command not allowed when used memory > 'maxmemory'."
	errScriptOOM command.Error = "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
)

// usedBytes is what INFO calls used_memory.
func (m *Machine) usedBytes() int64 {
	return m.space.UsedBytes() + m.clientBytes() + m.trackingBytes()
}

func (m *Machine) trackingBytes() int64 {
	return int64(m.tracker.keys.MemoryBytes()) + int64(m.tracker.items)*trackedBytes
}

// makeRoom evicts until the memory is below the bound. It reports whether
// there is nothing left to evict though it is not.
func (m *Machine) makeRoom() (short bool) {
	m.memory.behind = false
	if m.repl.link != nil && m.settings.Bool("replica-ignore-maxmemory") {
		return false // the primary evicts
	}
	if m.memory.maxBytes == 0 || m.usedBytes() <= m.memory.maxBytes {
		return false
	}
	if m.weighAgain(); m.usedBytes() <= m.memory.maxBytes {
		return false
	}
	if m.paused() {
		return false // the data stands still
	}
	began := m.options.Stopwatch()
	for range evictAtOnce {
		if !m.space.Evict(int(m.memory.samples), m.nowUs/1000) {
			short = true
			break
		}
		if m.usedBytes() <= m.memory.maxBytes {
			break
		}
	}
	m.endGroup(false)
	m.memory.behind = !short && m.usedBytes() > m.memory.maxBytes
	m.sample(eventEvictionCycle, m.options.Stopwatch()-began)
	return short
}

// hasMemory refuses a command that could need more memory when there is none.
// Queueing needs memory as well.
func (m *Machine) hasMemory(s *Session, spec *command.Spec, args [][]byte) error {
	m.memory.short = m.makeRoom()
	if !m.memory.short {
		return nil
	}
	refused := m.needsOf(spec, args).memory
	if t := s.transaction; t != nil {
		switch spec.Name {
		case "exec":
			for _, call := range t.calls {
				refused = refused || m.needsOf(call.spec, call.args).memory
			}
		case "discard", "quit", "reset":
		default:
			refused = true
		}
	}
	if refused {
		return errOOM
	}
	return nil
}

func (m *Machine) memorySpecs() []command.Spec {
	const since = "4.0.0"
	sub := func(name string, summary string, run func(*command.Ctx) error) command.Spec {
		return command.Spec{Name: name, Arity: 2, Since: since, Summary: summary, Complexity: "O(1)", Run: run}
	}
	return []command.Spec{{
		Name: "memory", Arity: -2, Group: "server", Since: since, Summary: "A container for commands on memory.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			sub("doctor", "Says in words how the memory is used.", m.memoryDoctor),
			sub("malloc-stats", "Describes the allocator.", m.memoryMallocStats),
			sub("purge", "Gives memory that nobody needs back to the system.", m.memoryPurge),
			sub("stats", "Tells how the memory is used.", m.memoryStats),
			{
				Name: "usage", Arity: -3, Flags: command.ReadOnly, Keys: command.Key(2), Since: since,
				Summary: "Estimates how much memory a key and its value take.", Complexity: "O(1)", Run: memoryUsage,
			},
			command.HelpSpec("MEMORY", since,
				"DOCTOR", "    Return memory problems reports.",
				"MALLOC-STATS", "    Return internal statistics report from the memory allocator.",
				"PURGE", "    Attempt to purge dirty pages for reclamation by the allocator.",
				"STATS", "    Return information about the memory usage of the server.",
				"USAGE <key> [SAMPLES <count>]",
				"    Return memory in bytes used by <key> and its value. Nested values are",
				"    sampled up to <count> times (default: 5, 0 means sample all)."),
		},
	}}
}

// memoryUsage needs no samples: containers know what they take.
func memoryUsage(c *command.Ctx) error {
	for i := 3; i < len(c.Args); i += 2 {
		if !command.Is(c.Args[i], "SAMPLES") || i+1 == len(c.Args) {
			return command.ErrSyntax
		}
		samples, ok := command.ParseInt(c.Args[i+1])
		switch {
		case !ok:
			return command.ErrNotInteger
		case samples < 0:
			return command.ErrSyntax
		}
	}
	size := c.DB.SizeOf(c.Args[2], c.NowMs())
	if size == 0 {
		c.Out.Null()
		return nil
	}
	c.Out.Int(size)
	return nil
}

func (m *Machine) memoryPurge(c *command.Ctx) error {
	if m.options.FreeMemory != nil {
		m.options.FreeMemory()
	}
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) memoryMallocStats(c *command.Ctx) error {
	p := m.process()
	c.Out.Verbatim("txt", fmt.Sprintf("allocator: Go\nlive objects: %d bytes\nheap in use: %d bytes\nmapped: %d bytes\ncollections: %d\n",
		p.HeapBytes, p.HeapInUseBytes, p.RSSBytes, p.Collections))
	return nil
}

func (m *Machine) memoryDoctor(c *command.Ctx) error {
	p, used := m.process(), m.usedBytes()
	var text strings.Builder
	fmt.Fprintf(&text, "The data takes about %s; the heap has %s of live objects and garbage, the process %s.\n",
		human(used), human(int64(p.HeapBytes)), human(int64(p.RSSBytes)))
	switch {
	case m.memory.maxBytes == 0:
		text.WriteString("There is no bound: maxmemory is 0.\n")
	case m.memory.short:
		fmt.Fprintf(&text, "Memory is short: maxmemory is %s, and the policy %s finds nothing to evict. Writes are refused.\n",
			human(m.memory.maxBytes), m.space.Policy())
	default:
		fmt.Fprintf(&text, "maxmemory is %s, with the policy %s; %d keys have been evicted.\n",
			human(m.memory.maxBytes), m.space.Policy(), m.space.Evicted)
	}
	c.Out.Verbatim("txt", text.String())
	return nil
}

// memoryStats tells by Redis's names what there is of it here.
func (m *Machine) memoryStats(c *command.Ctx) error {
	m.weighAgain()
	p, used := m.process(), m.usedBytes()
	data, keys := m.space.UsedBytes(), int64(0)
	var tables int64
	for i := range keyspace.Databases {
		keys += int64(m.space.DB(i).Len())
		tables += m.space.DB(i).TableBytes()
	}
	overhead := used - data + tables
	perKey := int64(0)
	if keys > 0 {
		perKey = data / keys
	}
	m.stats.peakBytes = max(m.stats.peakBytes, used)
	facts := []struct {
		name  string
		value any
	}{
		{"peak.allocated", m.stats.peakBytes},
		{"total.allocated", used},
		{"startup.allocated", int64(0)},
		{"replication.backlog", int64(0)},
		{"clients.slaves", int64(0)},
		{"clients.normal", m.clientBytes()},
		{"cluster.links", int64(0)},
		{"aof.buffer", int64(0)},
		{"overhead.total", overhead},
		{"keys.count", keys},
		{"keys.bytes-per-key", perKey},
		{"dataset.bytes", used - overhead},
		{"dataset.percentage", percent(used-overhead, used)},
		{"peak.percentage", percent(used, m.stats.peakBytes)},
		{"allocator.allocated", int64(p.HeapBytes)},
		{"allocator.active", int64(p.HeapInUseBytes)},
		{"allocator.resident", int64(p.RSSBytes)},
		{"fragmentation", ratio(int64(p.RSSBytes), used)},
		{"fragmentation.bytes", int64(p.RSSBytes) - used},
	}
	c.Out.Map(len(facts))
	for _, fact := range facts {
		c.Out.BulkString(fact.name)
		switch v := fact.value.(type) {
		case int64:
			c.Out.Int(v)
		case float64:
			c.Out.Double(v)
		}
	}
	return nil
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

func percent(a, b int64) float64 { return 100 * ratio(a, b) }

// process asks the shell about the process.
func (m *Machine) process() Process {
	if m.options.Process == nil {
		return Process{}
	}
	return m.options.Process()
}

// human is a number of bytes as people write it.
func human(bytes int64) string {
	units := []string{"K", "M", "G", "T", "P"}
	if bytes < 1024 {
		return fmt.Sprintf("%dB", bytes)
	}
	size := float64(bytes) / 1024
	for i, unit := range units {
		if size < 1024 || i == len(units)-1 {
			return fmt.Sprintf("%.2f%s", size, unit)
		}
		size /= 1024
	}
	return ""
}
