package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// transaction is the commands between MULTI and EXEC.
type transaction struct {
	calls []queuedCall
	bytes int // of their arguments
	// aborted: a command was refused while queueing; EXEC will refuse all.
	aborted bool
}

type queuedCall struct {
	spec *command.Spec
	args [][]byte
}

// queue keeps a call for EXEC, which will not want it if it refuses all.
func (t *transaction) queue(spec *command.Spec, args [][]byte) {
	if t.aborted {
		return
	}
	t.calls = append(t.calls, queuedCall{spec, cloneArgs(args)})
	t.bytes += bytesOf(args) + len(args)*argBytes
}

// runsInsideMulti names the commands that are run at once, not queued.
func runsInsideMulti(spec *command.Spec) bool {
	switch spec.Name {
	case "exec", "discard", "multi", "watch", "quit", "reset":
		return true
	}
	return false
}

func (m *Machine) transactionSpecs() []command.Spec {
	const flags = command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy
	return []command.Spec{
		{
			Name: "multi", Arity: 1, Flags: flags, Group: "transactions", Since: "1.2.0",
			Summary: "Starts a transaction: the commands that follow are queued.", Complexity: "O(1)", Run: m.multi,
		},
		{
			Name: "exec", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.SkipSlowlog,
			Group: "transactions", Since: "1.2.0",
			Summary: "Runs the queued commands as one, unless a watched key has changed.", Complexity: "that of the queued commands together", Run: m.exec,
		},
		{
			Name: "discard", Arity: 1, Flags: flags, Group: "transactions", Since: "2.0.0",
			Summary: "Forgets the queued commands and all watched keys.", Complexity: "O(N) for N queued commands", Run: m.discard,
		},
		{
			Name: "watch", Arity: -2, Flags: flags, Keys: command.KeysFrom(1), Group: "transactions", Since: "2.2.0",
			Summary: "Makes the next transaction depend on keys staying as they are.", Complexity: "O(1) a key", Run: m.watch,
		},
		{
			Name: "unwatch", Arity: 1, Flags: flags, Group: "transactions", Since: "2.2.0",
			Summary: "Forgets all watched keys.", Complexity: "O(1)", Run: m.unwatch,
		},
	}
}

func (m *Machine) multi(c *command.Ctx) error {
	s := session(c)
	if s.transaction != nil {
		return command.Error("ERR MULTI calls can not be nested")
	}
	s.transaction = &transaction{}
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) exec(c *command.Ctx) error {
	s := session(c)
	t := s.transaction
	if t == nil {
		return command.Error("ERR EXEC without MULTI")
	}
	broken := s.watch.Broken(c.NowMs())
	s.transaction = nil
	s.watch.Clear()
	if t.aborted {
		return command.Error("EXECABORT Transaction discarded because of previous errors.")
	}
	if broken {
		c.Out.NullArray()
		return nil
	}
	c.Out.Array(len(t.calls))
	m.executing = true
	for _, call := range t.calls {
		if !s.free() {
			if err := m.stillPermitted(s, call); err != nil {
				m.count(call.spec).rejected++
				c.Out.Error(err.Error())
				continue
			}
		}
		m.call(s, call.spec, call.args, c.Out, false)
	}
	m.executing = false
	return nil
}

func (m *Machine) discard(c *command.Ctx) error {
	s := session(c)
	if s.transaction == nil {
		return command.Error("ERR DISCARD without MULTI")
	}
	s.transaction = nil
	s.watch.Clear()
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) watch(c *command.Ctx) error {
	s := session(c)
	if s.transaction != nil {
		return command.Error("ERR WATCH inside MULTI is not allowed")
	}
	for _, key := range c.Args[1:] {
		s.watch.Add(s.db, key, c.NowMs())
	}
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) unwatch(c *command.Ctx) error {
	session(c).watch.Clear()
	c.Out.SimpleString("OK")
	return nil
}
