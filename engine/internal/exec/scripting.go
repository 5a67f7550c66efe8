package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
)

// The commands on scripts. The script and the time that it takes are the
// matter of running.go; the commands of a script take the same way through
// call as any other, only the checks differ, since a script must not block,
// subscribe or open a transaction.

func evalKeys(args [][]byte) []int { return command.CountedKeys(2)(args) }

// scriptCallFlags are those of all commands that run a script or a function.
const scriptCallFlags = command.NoScript | command.SkipMonitor | command.Stale | command.MovableKeys | command.NoMandatoryKeys

func (m *Machine) scriptingSpecs() []command.Spec {
	run := func(name, since, summary string, flags command.Flags, run func(*command.Ctx) error) command.Spec {
		return command.Spec{
			Name: name, Arity: -3, Flags: scriptCallFlags | flags, FindKeys: evalKeys, Group: "scripting", Since: since,
			Summary: summary, Complexity: "that of the script", Run: run,
		}
	}
	return []command.Spec{
		run("eval", "2.6.0", "Runs a Lua script on the server.", 0, m.eval),
		run("evalsha", "2.6.0", "Runs a Lua script that the server knows by its SHA1.", 0, m.evalSHA),
		run("eval_ro", "7.0.0", "Runs a Lua script that only reads.", command.ReadOnly, m.evalReadOnly),
		run("evalsha_ro", "7.0.0", "Runs a Lua script, known by its SHA1, that only reads.", command.ReadOnly, m.evalSHAReadOnly),
		{
			Name: "script", Arity: -2, Group: "scripting", Since: "2.6.0", Summary: "A container for commands on the script cache.",
			Complexity: "that of the subcommand", Sub: m.scriptSubcommands(),
		},
	}
}

func (m *Machine) scriptSubcommands() []command.Spec {
	const flags = command.NoScript
	return []command.Spec{
		{Name: "load", Arity: 3, Flags: flags | command.Stale, Since: "2.6.0", Summary: "Compiles a script and keeps it.", Complexity: "O(N) for a script of N bytes", Run: m.scriptLoad},
		{Name: "exists", Arity: -3, Flags: flags, Since: "2.6.0", Summary: "Says which scripts are known.", Complexity: "O(N) for N scripts asked for", Run: m.scriptExists},
		{Name: "flush", Arity: -2, Flags: flags, Since: "2.6.0", Summary: "Forgets all scripts.", Complexity: "O(N) for N scripts", Run: m.scriptFlush},
		{Name: "kill", Arity: 2, Flags: flags | command.AllowBusy, Since: "2.6.0", Summary: "Ends the script that is running.", Complexity: "O(1)", Run: m.scriptKill},
		{Name: "debug", Arity: 3, Flags: flags, Since: "3.2.0", Summary: "Says that there is no debugger.", Complexity: "O(1)", Run: scriptDebug},
		command.HelpSpec("SCRIPT", "5.0.0",
			"DEBUG (YES|SYNC|NO)", "    Set the debug mode for subsequent scripts executed.",
			"EXISTS <sha1> [<sha1> ...]", "    Return information about the existence of the scripts in the script cache.",
			"FLUSH [ASYNC|SYNC]", "    Flush the Lua scripts cache. Very dangerous on replicas.",
			"    When called without the optional mode argument, the behavior is determined by the",
			"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
			"    * ASYNC: Asynchronously flush the scripts cache.",
			"    * SYNC: Synchronously flush the scripts cache.",
			"KILL", "    Kill the currently executing Lua script.",
			"LOAD <script>", "    Load a script into the scripts cache without executing it."),
	}
}

func (m *Machine) eval(c *command.Ctx) error            { return m.runText(c, false) }
func (m *Machine) evalReadOnly(c *command.Ctx) error    { return m.runText(c, true) }
func (m *Machine) evalSHA(c *command.Ctx) error         { return m.runKnown(c, false) }
func (m *Machine) evalSHAReadOnly(c *command.Ctx) error { return m.runKnown(c, true) }

// runText runs the script whose text is given.
func (m *Machine) runText(c *command.Ctx, readOnly bool) error {
	keys, args, err := scriptArgs(c)
	if err != nil {
		return err
	}
	script, err := m.scripts.Load(c.Args[1])
	if err != nil {
		return command.Error(err.Error())
	}
	return m.runScript(c, script, keys, args, readOnly)
}

// runKnown runs the script whose SHA1 is given.
func (m *Machine) runKnown(c *command.Ctx, readOnly bool) error {
	const errUnknown command.Error = "NOSCRIPT No matching script. Please use EVAL."
	const shaLen = 40
	if len(c.Args[1]) != shaLen {
		return errUnknown
	}
	keys, args, err := scriptArgs(c)
	if err != nil {
		return err
	}
	script := m.findScript(c.Args[1])
	if script == nil {
		return errUnknown
	}
	return m.runScript(c, script, keys, args, readOnly)
}

func (m *Machine) runScript(c *command.Ctx, script *lua.Script, keys, args [][]byte, readOnly bool) error {
	if err := m.startScript(c, script.Flags, readOnly); err != nil {
		return err
	}
	m.scripts.Run(m, script, keys, args, c.Out)
	m.endScript()
	return nil
}

// needs is what a call wants of the engine.
type needs struct {
	memory bool // it may need more, and is refused when that is short
	writes bool // it may change data, or send something to others
}

// needsOf is what a call needs. A script or function that has declared flags needs what
// they say, others what their command may.
func (m *Machine) needsOf(spec *command.Spec, args [][]byte) needs {
	if flags, declared := m.declaredFlags(spec, args); declared {
		return needs{memory: flags&(lua.AllowOOM|lua.NoWrites) == 0, writes: flags&lua.NoWrites == 0}
	}
	return needs{memory: spec.Flags&command.DenyOOM != 0, writes: spec.Flags&command.Write != 0 || spec.MayReplicate()}
}

// declaredFlags are the flags of the script or function that a call would run.
func (m *Machine) declaredFlags(spec *command.Spec, args [][]byte) (flags lua.Flags, declared bool) {
	switch spec.FullName() {
	case "eval", "eval_ro":
		flags, err := lua.ScriptFlags(string(args[1]))
		return flags, err == nil && flags&lua.EvalCompat == 0
	case "evalsha", "evalsha_ro":
		if script := m.findScript(args[1]); script != nil {
			return script.Flags, script.Flags&lua.EvalCompat == 0
		}
	case "fcall", "fcall_ro":
		if fn := m.library.find(args[1]); fn != nil {
			return fn.Flags, true
		}
	}
	return 0, false
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

func (m *Machine) findScript(sha []byte) *lua.Script { return m.scripts.Find(sha) }

func (m *Machine) scriptLoad(c *command.Ctx) error {
	script, err := m.scripts.Load(c.Args[2])
	if err != nil {
		return command.Error(err.Error())
	}
	c.Out.BulkString(script.SHA)
	return nil
}

func (m *Machine) scriptExists(c *command.Ctx) error {
	c.Out.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		known := int64(0)
		if m.findScript(sha) != nil {
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

func (m *Machine) scriptKill(c *command.Ctx) error { return m.killScript(c, false) }

// scriptDebug refuses what a debugger would have to answer.
func scriptDebug(c *command.Ctx) error {
	switch {
	case command.Is(c.Args[2], "NO"):
		c.Out.SimpleString("OK")
		return nil
	case command.Is(c.Args[2], "YES"), command.Is(c.Args[2], "SYNC"):
		return command.Error("ERR There is no Lua debugger here")
	}
	return command.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
}
