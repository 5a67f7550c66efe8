package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// FUNCTION and FCALL: libraries of functions that stay, unlike scripts, which
// are only cached.

func (m *Machine) functionSpecs() []command.Spec {
	call := func(name, summary string, flags command.Flags, run func(*command.Ctx) error) command.Spec {
		return command.Spec{
			Name: name, Arity: -3, Flags: scriptCallFlags | flags, FindKeys: evalKeys, Group: "scripting", Since: "7.0.0",
			Summary: summary, Complexity: "that of the function", Run: run,
		}
	}
	return []command.Spec{
		call("fcall", "Calls a function of a library.", 0, m.fcall),
		call("fcall_ro", "Calls a function of a library that only reads.", command.ReadOnly, m.fcallReadOnly),
		{
			Name: "function", Arity: -2, Group: "scripting", Since: "7.0.0", Summary: "A container for commands on libraries of functions.",
			Complexity: "that of the subcommand", Sub: append(m.functionSubcommands(), functionHelp()),
		},
	}
}

func (m *Machine) functionSubcommands() []command.Spec {
	sub := func(name string, arity int, flags command.Flags, summary, complexity string, run func(*command.Ctx) error) command.Spec {
		return command.Spec{
			Name: name, Arity: arity, Flags: command.NoScript | flags, Since: "7.0.0",
			Summary: summary, Complexity: complexity, Run: run,
		}
	}
	return []command.Spec{
		sub("load", -3, command.Write|command.DenyOOM, "Loads a library.", "that of the library's text", m.functionLoad),
		sub("delete", 3, command.Write, "Deletes a library.", "O(N) for N functions in it", m.functionDelete),
		sub("flush", -2, command.Write, "Deletes all libraries.", "O(N) for N functions", m.functionFlush),
		sub("list", -2, 0, "Describes the libraries.", "O(N) for N functions", m.functionList),
		sub("stats", 2, command.AllowBusy, "Describes the function that is running.", "O(1)", m.functionStats),
		sub("kill", 2, command.AllowBusy, "Ends the function that is running.", "O(1)", m.functionKill),
		sub("dump", 2, 0, "Answers with all libraries as one string.", "O(N) for N functions", m.functionDump),
		sub("restore", -3, command.Write|command.DenyOOM, "Loads the libraries of a dump.", "O(N) for N functions in it", m.functionRestore),
	}
}

func (m *Machine) fcall(c *command.Ctx) error         { return m.callFunction(c, false) }
func (m *Machine) fcallReadOnly(c *command.Ctx) error { return m.callFunction(c, true) }

func (m *Machine) callFunction(c *command.Ctx, readOnly bool) error {
	fn := m.library.find(c.Args[1])
	if fn == nil {
		return command.Error("ERR Function not found")
	}
	if _, ok := command.ParseInt(c.Args[2]); !ok {
		return command.Error("ERR Bad number of keys provided")
	}
	keys, args, err := scriptArgs(c)
	if err != nil {
		return err
	}
	if err := m.startScript(c, fn.Flags, readOnly); err != nil {
		return err
	}
	m.running.function, m.running.name = true, fn.Name
	m.library.runner.Run(m, fn, keys, args, c.Out)
	m.endScript()
	return nil
}

// loadLibrary runs the text of a library for the caller.
func (m *Machine) loadLibrary(c *command.Ctx, into *libraries, code []byte, replace bool) (*lua.Library, error) {
	m.running = running{active: true, loading: true, caller: session(c)}
	defer m.endScript()
	return into.load(m, code, replace)
}

func (m *Machine) functionLoad(c *command.Ctx) error {
	options, code := c.Args[2:len(c.Args)-1], c.Args[len(c.Args)-1]
	replace := false
	for _, option := range options {
		if !command.Is(option, "REPLACE") {
			return command.Error("ERR Unknown option given: " + string(clip(option)))
		}
		replace = true
	}
	library, err := m.loadLibrary(c, &m.library, code, replace)
	if err != nil {
		return err
	}
	if err := m.library.add(library); err != nil {
		return err
	}
	c.Space.Dirty++
	c.Out.BulkString(library.Name)
	return nil
}

func (m *Machine) functionDelete(c *command.Ctx) error {
	library := m.library.byName[c.Arg(2)]
	if library == nil {
		return command.Error("ERR Library not found")
	}
	m.library.remove(library)
	c.Space.Dirty++
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) functionFlush(c *command.Ctx) error {
	switch {
	case len(c.Args) > 3:
		return command.WrongSubcommand("FUNCTION", c.Args[1])
	case len(c.Args) == 3 && !command.Is(c.Args[2], "SYNC") && !command.Is(c.Args[2], "ASYNC"):
		return command.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	}
	m.library.clear()
	c.Space.Dirty++
	c.Out.SimpleString("OK")
	return nil
}

// listing is the options of FUNCTION LIST.
type listing struct {
	withCode bool
	pattern  []byte // nil for all
}

func parseListing(args [][]byte) (listing, error) {
	var l listing
	for i := 0; i < len(args); i++ {
		switch {
		case !l.withCode && command.Is(args[i], "WITHCODE"):
			l.withCode = true
		case l.pattern == nil && command.Is(args[i], "LIBRARYNAME"):
			i++
			if i == len(args) {
				return l, command.Error("ERR library name argument was not given")
			}
			l.pattern = args[i]
		default:
			return l, command.Error("ERR Unknown argument " + string(clip(args[i])))
		}
	}
	return l, nil
}

func (m *Machine) functionList(c *command.Ctx) error {
	l, err := parseListing(c.Args[2:])
	if err != nil {
		return err
	}
	var chosen []*lua.Library
	for _, library := range m.library.sorted() {
		if l.pattern == nil || command.Glob(l.pattern, []byte(library.Name), true) {
			chosen = append(chosen, library)
		}
	}
	c.Out.Array(len(chosen))
	for _, library := range chosen {
		describeLibrary(c.Out, library, l.withCode)
	}
	return nil
}

func describeLibrary(out *resp.Writer, library *lua.Library, withCode bool) {
	n := 3
	if withCode {
		n++
	}
	out.Map(n)
	out.BulkString("library_name")
	out.BulkString(library.Name)
	out.BulkString("engine")
	out.BulkString("LUA")
	out.BulkString("functions")
	out.Array(len(library.Functions))
	for _, fn := range library.Functions {
		out.Map(3)
		out.BulkString("name")
		out.BulkString(fn.Name)
		out.BulkString("description")
		if fn.Described {
			out.BulkString(fn.Description)
		} else {
			out.Null()
		}
		out.BulkString("flags")
		flags := fn.Flags.Names()
		out.Set(len(flags))
		for _, flag := range flags {
			out.SimpleString(flag)
		}
	}
	if withCode {
		out.BulkString("library_code")
		out.BulkString(library.Code)
	}
}

func (m *Machine) functionStats(c *command.Ctx) error {
	r := &m.running
	if r.active && !r.function {
		return errBusyScript
	}
	c.Out.Map(2)
	c.Out.BulkString("running_script")
	if r.active {
		c.Out.Map(3)
		c.Out.BulkString("name")
		c.Out.BulkString(r.name)
		c.Out.BulkString("command")
		c.Out.Array(len(r.request))
		for _, a := range r.request {
			c.Out.Bulk(a)
		}
		c.Out.BulkString("duration_ms")
		c.Out.Int(max((c.NowUs-r.startedUs)/1000, 0))
	} else {
		c.Out.Null()
	}
	c.Out.BulkString("engines")
	c.Out.Map(1)
	c.Out.BulkString("LUA")
	c.Out.Map(2)
	c.Out.BulkString("libraries_count")
	c.Out.Int(int64(len(m.library.byName)))
	c.Out.BulkString("functions_count")
	c.Out.Int(int64(len(m.library.functions)))
	return nil
}

func (m *Machine) functionKill(c *command.Ctx) error { return m.killScript(c, true) }

func functionHelp() command.Spec {
	return command.HelpSpec("FUNCTION", "7.0.0",
		"LOAD [REPLACE] <FUNCTION CODE>", "    Create a new library with the given library name and code.",
		"DELETE <LIBRARY NAME>", "    Delete the given library.",
		"LIST [LIBRARYNAME PATTERN] [WITHCODE]", "    Return general information on all the libraries:",
		"    * Library name", "    * The engine used to run the Library", "    * Library description",
		"    * Functions list", "    * Library code (if WITHCODE is given)",
		"    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
		"STATS", "    Return information about the current function running:", "    * Function name",
		"    * Command used to run the function", "    * Duration in MS that the function is running",
		"    If no function is running, return nil", "    In addition, returns a list of available engines.",
		"KILL", "    Kill the current running function.",
		"FLUSH [ASYNC|SYNC]", "    Delete all the libraries.",
		"    When called without the optional mode argument, the behavior is determined by the",
		"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
		"    * ASYNC: Asynchronously flush the libraries.", "    * SYNC: Synchronously flush the libraries.",
		"DUMP", "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
		"RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
		"    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
		"    control how to handle existing libraries (default APPEND):",
		"    * FLUSH: delete all existing libraries.",
		"    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
		"    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
		"      libraries with the new libraries (notice that even on this option there is a chance of failure",
		"      in case of functions name collision with another library).")
}
