package exec

import (
	"context"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Scripts run inside the command that called them: nothing else runs until
// they end, and the time stands still. Their commands take the same way
// through call as any other; only the checks differ, since a script must not
// block, subscribe or open a transaction.

func evalKeys(args [][]byte) []int { return command.CountedKeys(2)(args) }

func (m *Machine) scriptingSpecs() []command.Spec {
	const (
		flags      = command.NoScript | command.SkipMonitor | command.Stale | command.MovableKeys | command.NoMandatoryKeys
		since      = "2.6.0"
		complexity = "that of the script"
	)
	return []command.Spec{
		{
			Name: "eval", Arity: -3, Flags: flags, FindKeys: evalKeys, Group: "scripting", Since: since,
			Summary: "Runs a Lua script on the server.", Complexity: complexity, Run: m.eval,
		},
		{
			Name: "evalsha", Arity: -3, Flags: flags, FindKeys: evalKeys, Group: "scripting", Since: since,
			Summary: "Runs a Lua script that the server knows by its SHA1.", Complexity: complexity, Run: m.evalSHA,
		},
		{
			Name: "script", Arity: -2, Group: "scripting", Since: since, Summary: "A container for commands on the script cache.",
			Complexity: "that of the subcommand", Sub: m.scriptSubcommands(),
		},
	}
}

func (m *Machine) scriptSubcommands() []command.Spec {
	const flags = command.NoScript
	return []command.Spec{
		{Name: "load", Arity: 3, Flags: flags | command.Stale, Since: "2.6.0", Summary: "Compiles a script and keeps it.", Run: m.scriptLoad},
		{Name: "exists", Arity: -3, Flags: flags, Since: "2.6.0", Summary: "Says which scripts are known.", Run: m.scriptExists},
		{Name: "flush", Arity: -2, Flags: flags, Since: "2.6.0", Summary: "Forgets all scripts.", Run: m.scriptFlush},
		{Name: "kill", Arity: 2, Flags: flags | command.AllowBusy, Since: "2.6.0", Summary: "Ends the script that is running.", Run: m.scriptKill},
		helpSpec("SCRIPT", "5.0.0",
			"DEBUG (YES|SYNC|NO)", "    Set the debug mode for subsequent scripts executed.",
			"EXISTS <sha1> [<sha1> ...]", "    Return information about the existence of the scripts in the script cache.",
			"FLUSH [ASYNC|SYNC]", "    Flush the Lua scripts cache. Very dangerous on replicas.",
			"    When called without the optional mode argument, the behavior is determined",
			"    by the lazyfree-lazy-user-flush configuration directive. Valid modes are:",
			"    * ASYNC: Asynchronously flush the scripts cache.",
			"    * SYNC: Synchronously flush the scripts cache.",
			"KILL", "    Kill the currently executing Lua script.",
			"LOAD <script>", "    Load a script into the scripts cache without executing it."),
	}
}

func (m *Machine) eval(c *command.Ctx) error {
	keys, args, err := scriptArgs(c)
	if err != nil {
		return err
	}
	sha, err := m.scripts.Load(c.Args[1])
	if err != nil {
		return command.Error(err.Error())
	}
	m.runScript(c, sha, keys, args)
	return nil
}

func (m *Machine) evalSHA(c *command.Ctx) error {
	keys, args, err := scriptArgs(c)
	if err != nil {
		return err
	}
	sha := lowerSHA(c.Args[1])
	if !m.scripts.Exists(sha) {
		return command.Error("NOSCRIPT No matching script. Please use EVAL.")
	}
	m.runScript(c, sha, keys, args)
	return nil
}

// scriptArgs splits the arguments after the script into keys and others.
func scriptArgs(c *command.Ctx) (keys, args [][]byte, err error) {
	n, ok := command.ParseInt(c.Args[2])
	rest := c.Args[3:]
	switch {
	case !ok:
		return nil, nil, command.ErrNotInteger
	case n > int64(len(rest)):
		return nil, nil, command.Error("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return nil, nil, command.Error("ERR Number of keys can't be negative")
	}
	return rest[:n], rest[n:], nil
}

func lowerSHA(b []byte) string {
	lower := make([]byte, len(b))
	for i, ch := range b {
		if 'A' <= ch && ch <= 'F' {
			ch += 'a' - 'A'
		}
		lower[i] = ch
	}
	return string(lower)
}

func (m *Machine) runScript(c *command.Ctx, sha string, keys, args [][]byte) {
	caller := session(c)
	m.script.db = caller.db
	m.script.name = caller.name
	m.script.user = caller.user
	m.script.Out.Proto = 2
	m.scripts.Run(context.Background(), m, sha, keys, args, c.Out)
}

// Call runs one command of a script. It is lua.Host.
func (m *Machine) Call(args [][]byte, out *resp.Writer) {
	spec, err := m.findForScript(args)
	if err == nil && !m.script.free() {
		err = m.permittedToScript(m.script, spec, args)
	}
	if err != nil {
		if spec != nil {
			m.count(spec).rejected++
		}
		out.Error(err.Error())
		return
	}
	m.script.Out.Proto = out.Proto
	m.call(m.script, spec, args, out, false)
}

var _ lua.Host = (*Machine)(nil)

func (m *Machine) findForScript(args [][]byte) (*command.Spec, error) {
	spec, err := m.find(args)
	switch {
	case spec == nil:
		return nil, command.Error("ERR Unknown Redis command called from script")
	case err != nil:
		return spec, command.Error("ERR Wrong number of args calling Redis command from script")
	case spec.Flags&command.NoScript != 0:
		return spec, command.Error("ERR This Redis command is not allowed from script")
	}
	return spec, m.scriptHasMemory(spec)
}

func (m *Machine) scriptLoad(c *command.Ctx) error {
	sha, err := m.scripts.Load(c.Args[2])
	if err != nil {
		return command.Error(err.Error())
	}
	c.Out.BulkString(sha)
	return nil
}

func (m *Machine) scriptExists(c *command.Ctx) error {
	c.Out.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		known := int64(0)
		if m.scripts.Exists(lowerSHA(sha)) {
			known = 1
		}
		c.Out.Int(known)
	}
	return nil
}

func (m *Machine) scriptFlush(c *command.Ctx) error {
	if len(c.Args) > 3 || len(c.Args) == 3 && !command.Is(c.Args[2], "SYNC") && !command.Is(c.Args[2], "ASYNC") {
		return command.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	m.scripts.Flush()
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) scriptKill(*command.Ctx) error {
	return command.Error("NOTBUSY No scripts in execution right now.")
}

// helpSpec is the HELP subcommand of a container.
func helpSpec(container, since string, lines ...string) command.Spec {
	return command.Spec{
		Name: "help", Arity: 2, Flags: command.Loading | command.Stale, Since: since, Summary: "Shows what the subcommands are.",
		Run: func(c *command.Ctx) error {
			c.Out.Array(len(lines) + 3)
			c.Out.SimpleString(container + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
			for _, line := range lines {
				c.Out.SimpleString(line)
			}
			c.Out.SimpleString("HELP")
			c.Out.SimpleString("    Prints this help.")
			return nil
		},
	}
}
