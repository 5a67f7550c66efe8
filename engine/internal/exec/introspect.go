package exec

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// The COMMAND command: the table, told to clients. Nothing here is written
// down twice; all of it derives from the records.

func (m *Machine) introspectSpecs() []command.Spec {
	const flags = command.Loading | command.Stale
	return []command.Spec{{
		Name: "command", Arity: -1, Flags: flags, Group: "server", Since: "2.8.13", Summary: "Describes all commands.",
		Complexity: "O(N) for N commands in the table",
		Run:        m.commandAll,
		Sub: []command.Spec{
			{Name: "count", Arity: 2, Flags: flags, Since: "2.8.13", Summary: "Counts the commands.", Run: m.commandCount},
			{Name: "docs", Arity: -2, Flags: flags, Since: "7.0.0", Summary: "Documents commands.", Run: m.commandDocs},
			{Name: "info", Arity: -2, Flags: flags, Since: "2.8.13", Summary: "Describes commands.", Run: m.commandInfo},
			{Name: "list", Arity: -2, Flags: flags, Since: "7.0.0", Summary: "Names all commands.", Run: m.commandList},
			{Name: "getkeys", Arity: -4, Flags: flags, Since: "2.8.13", Summary: "Finds the keys of a call.", Run: m.commandGetKeys},
			helpSpec("COMMAND", "5.0.0",
				"(no subcommand)", "    Return details about all Redis commands.",
				"COUNT", "    Return the total number of commands in this Redis server.",
				"LIST [FILTERBY (MODULE <module-name>|PATTERN <pattern>)]", "    Return a list of all commands in this Redis server.",
				"INFO [<command-name> ...]", "    Return details about multiple Redis commands.",
				"    If no command names are given, documentation details for all",
				"    commands are returned.",
				"DOCS [<command-name> ...]", "    Return documentation details about multiple Redis commands.",
				"    If no command names are given, documentation details for all",
				"    commands are returned.",
				"GETKEYS <full-command>", "    Return the keys from a full Redis command."),
		},
	}}
}

func (m *Machine) commandAll(c *command.Ctx) error {
	c.Out.Array(len(m.table.All()))
	for _, spec := range m.table.All() {
		describeSpec(c.Out, spec)
	}
	return nil
}

func (m *Machine) commandCount(c *command.Ctx) error {
	c.Out.Int(int64(len(m.table.All())))
	return nil
}

func (m *Machine) commandList(c *command.Ctx) error {
	matches, err := parseFilter(c.Args[2:])
	if err != nil {
		return err
	}
	var names []string
	for _, spec := range m.table.All() {
		names = appendNames(names, spec, matches)
	}
	c.Out.Array(len(names))
	for _, name := range names {
		c.Out.BulkString(name)
	}
	return nil
}

// parseFilter reads FILTERBY PATTERN pattern and FILTERBY MODULE name, of which
// there are none. There are no ACL categories to filter by.
func parseFilter(args [][]byte) (matches func(name string) bool, err error) {
	switch {
	case len(args) == 0:
		return func(string) bool { return true }, nil
	case len(args) == 3 && command.Is(args[0], "FILTERBY") && command.Is(args[1], "PATTERN"):
		return func(name string) bool { return command.Glob(args[2], []byte(name), true) }, nil
	case len(args) == 3 && command.Is(args[0], "FILTERBY") && command.Is(args[1], "MODULE"):
		return func(string) bool { return false }, nil
	}
	return nil, command.ErrSyntax
}

// appendNames appends the names of a command and its subcommands that match.
func appendNames(names []string, spec *command.Spec, matches func(string) bool) []string {
	if name := spec.FullName(); matches(name) {
		names = append(names, name)
	}
	for i := range spec.Sub {
		names = appendNames(names, &spec.Sub[i], matches)
	}
	return names
}

// named finds the commands that a call names, nil for one that does not exist;
// without names it is all of them.
func (m *Machine) named(names [][]byte) []*command.Spec {
	if len(names) == 0 {
		return m.table.All()
	}
	specs := make([]*command.Spec, len(names))
	for i, name := range names {
		container, sub, isSub := strings.Cut(string(name), "|")
		spec, ok := m.table.Lookup([]byte(container))
		if ok && isSub {
			spec, ok = spec.Subcommand([]byte(sub))
		}
		if ok {
			specs[i] = spec
		}
	}
	return specs
}

func (m *Machine) commandInfo(c *command.Ctx) error {
	specs := m.named(c.Args[2:])
	c.Out.Array(len(specs))
	for _, spec := range specs {
		if spec == nil {
			c.Out.Null()
			continue
		}
		describeSpec(c.Out, spec)
	}
	return nil
}

// describeSpec writes the ten fields of COMMAND INFO. ACL categories beyond
// read and write, tips and key specifications stay empty until there are ACLs.
func describeSpec(out *resp.Writer, spec *command.Spec) {
	out.Array(10)
	out.BulkString(spec.FullName())
	out.Int(int64(spec.Arity))
	flags := spec.Flags.Names()
	out.Set(len(flags))
	for _, flag := range flags {
		out.SimpleString(flag)
	}
	out.Int(int64(spec.Keys.First))
	out.Int(int64(spec.Keys.Last))
	out.Int(int64(spec.Keys.Step))
	out.Set(0)
	out.Array(0)
	out.Array(0)
	out.Array(len(spec.Sub))
	for i := range spec.Sub {
		describeSpec(out, &spec.Sub[i])
	}
}

func (m *Machine) commandDocs(c *command.Ctx) error {
	var specs []*command.Spec
	for _, spec := range m.named(c.Args[2:]) {
		if spec != nil {
			specs = append(specs, spec)
		}
	}
	c.Out.Map(len(specs))
	for _, spec := range specs {
		documentSpec(c.Out, spec)
	}
	return nil
}

func documentSpec(out *resp.Writer, spec *command.Spec) {
	facts := [][2]string{{"summary", spec.Summary}, {"since", spec.Since}, {"group", spec.Group}, {"complexity", spec.Complexity}}
	n := len(facts)
	if spec.Sub != nil {
		n++
	}
	out.BulkString(spec.FullName())
	out.Map(n)
	for _, fact := range facts {
		out.BulkString(fact[0])
		out.BulkString(fact[1])
	}
	if spec.Sub == nil {
		return
	}
	out.BulkString("subcommands")
	out.Map(len(spec.Sub))
	for i := range spec.Sub {
		documentSpec(out, &spec.Sub[i])
	}
}

func (m *Machine) commandGetKeys(c *command.Ctx) error {
	call := c.Args[2:]
	spec, err := m.find(call)
	switch {
	case spec == nil:
		return command.Error("ERR Invalid command specified")
	case spec.FindKeys == nil && spec.Keys.First == 0:
		return command.Error("ERR The command has no key arguments")
	case err != nil:
		return command.Error("ERR Invalid number of arguments specified for command")
	}
	positions := spec.KeyPositions(call)
	if len(positions) == 0 && spec.Flags&command.NoMandatoryKeys == 0 {
		return command.Error("ERR Invalid arguments specified for command")
	}
	c.Out.Array(len(positions))
	for _, i := range positions {
		c.Out.Bulk(call[i])
	}
	return nil
}

func replyOK(out *resp.Writer) { out.SimpleString("OK") }
