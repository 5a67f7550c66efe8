package exec

import "github.com/signalbox-io/signalbox/engine/internal/command"

// SHUTDOWN ends the engine, which is not the process: whoever has opened the
// engine sees it closed.

func (m *Machine) shutdownSpecs() []command.Spec {
	return []command.Spec{{
		Name: "shutdown", Arity: -1, Group: "server", Since: "1.0.0",
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
		Summary: "Ends the server.", Complexity: "O(1)", Run: m.shutdown,
	}}
}

func (m *Machine) shutdown(c *command.Ctx) error {
	var noSave, save, other, abort bool
	for _, a := range c.Args[1:] {
		switch {
		case command.Is(a, "NOSAVE"):
			noSave = true
		case command.Is(a, "SAVE"):
			save = true
		case command.Is(a, "NOW"), command.Is(a, "FORCE"):
			other = true
		case command.Is(a, "ABORT"):
			abort = true
		default:
			return command.ErrSyntax
		}
	}
	switch {
	case abort && (noSave || save || other), noSave && save:
		return command.ErrSyntax
	case abort:
		return command.Error("ERR No shutdown in progress.")
	case m.Busy() && !noSave:
		return m.errBusy()
	}
	session(c).closing = true
	m.effects.Shutdown = true
	return nil
}
