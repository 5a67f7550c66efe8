package exec

import (
	"fmt"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// The slow log: the latest commands that took longer than
// slowlog-log-slower-than, newest first. It is bounded three ways, by the number
// of entries, of arguments of each, and of bytes of each argument, so that
// nobody fills the memory with slow commands.

const (
	slowLogArgs     = 32
	slowLogArgBytes = 128
)

type slowLog struct {
	slowerThanUs int64 // -1: nothing is logged
	maxLen       int64
	nextID       int64
	entries      []slowEntry // oldest first
}

type slowEntry struct {
	id, atSec, tookUs int64
	args              [][]byte
	addr, name        string
}

// cut drops the oldest entries above the bound.
func (l *slowLog) cut() {
	if extra := int64(len(l.entries)) - max(l.maxLen, 0); extra > 0 {
		l.entries = append(l.entries[:0:0], l.entries[extra:]...)
	}
}

func (l *slowLog) add(e slowEntry) {
	e.id = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	l.cut()
}

// logSlow logs a call. The commands of a script have no client.
func (m *Machine) logSlow(s *Session, spec *command.Spec, args [][]byte, tookUs int64) {
	m.slowLog.add(slowEntry{
		atSec: m.nowUs / 1e6, tookUs: tookUs, args: trimArgs(m.redacted(spec, args)), addr: s.Addr, name: s.name,
	})
}

// trimArgs copies what the log keeps of a call's arguments.
func trimArgs(args [][]byte) [][]byte {
	kept := make([][]byte, 0, min(len(args), slowLogArgs))
	for i, arg := range args {
		switch {
		case i == slowLogArgs-1 && len(args) > slowLogArgs:
			return append(kept, fmt.Appendf(nil, "... (%d more arguments)", len(args)-i))
		case len(arg) > slowLogArgBytes:
			kept = append(kept, fmt.Appendf(nil, "%s... (%d more bytes)", arg[:slowLogArgBytes], len(arg)-slowLogArgBytes))
		default:
			kept = append(kept, append([]byte(nil), arg...))
		}
	}
	return kept
}

func (m *Machine) slowLogSpecs() []command.Spec {
	const flags = command.Admin | command.Loading | command.Stale
	return []command.Spec{{
		Name: "slowlog", Arity: -2, Group: "server", Since: "2.2.12", Summary: "A container for commands on the slow log.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			{Name: "get", Arity: -2, Flags: flags, Since: "2.2.12", Summary: "Lists the latest slow commands.", Complexity: "O(N) for N entries", Run: m.slowLogGet},
			{Name: "len", Arity: 2, Flags: flags, Since: "2.2.12", Summary: "Counts the entries of the slow log.", Complexity: "O(1)", Run: m.slowLogLen},
			{Name: "reset", Arity: 2, Flags: flags, Since: "2.2.12", Summary: "Empties the slow log.", Complexity: "O(1)", Run: m.slowLogReset},
			command.HelpSpec("SLOWLOG", "6.2.0",
				"GET [<count>]", "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
				"    Entries are made of:", "    id, timestamp, time in microseconds, arguments array, client IP and port,",
				"    client name",
				"LEN", "    Return the length of the slowlog.",
				"RESET", "    Reset the slowlog."),
		},
	}}
}

func (m *Machine) slowLogGet(c *command.Ctx) error {
	count := int64(10)
	if len(c.Args) > 3 {
		return command.WrongSubcommand("SLOWLOG", c.Args[1])
	}
	if len(c.Args) == 3 {
		var ok bool
		if count, ok = command.ParseInt(c.Args[2]); !ok || count < -1 {
			return command.Error("ERR count should be greater than or equal to -1")
		}
	}
	entries := m.slowLog.entries
	if count == -1 || count > int64(len(entries)) {
		count = int64(len(entries))
	}
	c.Out.Array(int(count))
	for i := range int(count) {
		e := entries[len(entries)-1-i]
		c.Out.Array(6)
		c.Out.Int(e.id)
		c.Out.Int(e.atSec)
		c.Out.Int(e.tookUs)
		c.Out.Array(len(e.args))
		for _, arg := range e.args {
			c.Out.Bulk(arg)
		}
		c.Out.BulkString(e.addr)
		c.Out.BulkString(e.name)
	}
	return nil
}

func (m *Machine) slowLogLen(c *command.Ctx) error {
	c.Out.Int(int64(len(m.slowLog.entries)))
	return nil
}

func (m *Machine) slowLogReset(c *command.Ctx) error {
	m.slowLog.entries = nil
	c.Out.SimpleString("OK")
	return nil
}
