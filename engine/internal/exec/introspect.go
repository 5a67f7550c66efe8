package exec

import (
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
			{Name: "getkeysandflags", Arity: -4, Flags: flags, Since: "7.0.0", Summary: "Finds the keys of a call, and what it does to them.", Run: m.commandGetKeysAndFlags},
			command.HelpSpec("COMMAND", "5.0.0",
				"(no subcommand)", "    Return details about all Redis commands.",
				"COUNT", "    Return the total number of commands in this Redis server.",
				"LIST", "    Return a list of all commands in this Redis server.",
				"INFO [<command-name> ...]", "    Return details about multiple Redis commands.",
				"    If no command names are given, documentation details for all",
				"    commands are returned.",
				"DOCS [<command-name> ...]", "    Return documentation details about multiple Redis commands.",
				"    If no command names are given, documentation details for all",
				"    commands are returned.",
				"GETKEYS <full-command>", "    Return the keys from a full Redis command.",
				"GETKEYSANDFLAGS <full-command>", "    Return the keys and the access flags from a full Redis command."),
		},
	}}
}

// Table is all commands of the machine. It must not be changed.
func (m *Machine) Table() *command.Table { return m.table }

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

// parseFilter reads FILTERBY PATTERN pattern, FILTERBY ACLCAT category and
// FILTERBY MODULE name, of which there are none.
func parseFilter(args [][]byte) (matches func(*command.Spec) bool, err error) {
	switch {
	case len(args) == 0:
		return func(*command.Spec) bool { return true }, nil
	case len(args) != 3 || !command.Is(args[0], "FILTERBY"):
		return nil, command.ErrSyntax
	case command.Is(args[1], "PATTERN"):
		return func(s *command.Spec) bool { return command.Glob(args[2], []byte(s.FullName()), true) }, nil
	case command.Is(args[1], "ACLCAT"):
		category, _ := command.CategoryNamed(string(args[2]))
		return func(s *command.Spec) bool { return s.Categories&category != 0 }, nil
	case command.Is(args[1], "MODULE"):
		return func(*command.Spec) bool { return false }, nil
	}
	return nil, command.ErrSyntax
}

// appendNames appends the names of a command and its subcommands that match.
func appendNames(names []string, spec *command.Spec, matches func(*command.Spec) bool) []string {
	if matches(spec) {
		names = append(names, spec.FullName())
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
		if spec, ok := m.table.LookupFull(string(name)); ok {
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

// describeSpec writes the ten fields of COMMAND INFO.
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
	categories := spec.Categories.Names()
	out.Set(len(categories))
	for _, category := range categories {
		out.SimpleString("@" + category)
	}
	out.Set(len(spec.Tips))
	for _, tip := range spec.Tips {
		out.BulkString(tip)
	}
	out.Set(len(spec.KeySpecs))
	for i := range spec.KeySpecs {
		describeKeys(out, &spec.KeySpecs[i])
	}
	out.Set(len(spec.Sub))
	for i := range spec.Sub {
		describeSpec(out, &spec.Sub[i])
	}
}

// describeKeys writes one key specification: notes, flags, where the keys
// begin, and how far they go.
func describeKeys(out *resp.Writer, k *command.KeySpec) {
	if k.Notes == "" {
		out.Map(3)
	} else {
		out.Map(4)
		out.BulkString("notes")
		out.BulkString(k.Notes)
	}
	out.BulkString("flags")
	describeFlags(out, k.Flags)
	out.BulkString("begin_search")
	switch {
	case k.Unknown:
		rule(out, "unknown")
	case k.Keyword != "":
		rule(out, "keyword", "keyword", k.Keyword, "startfrom", k.Index)
	default:
		rule(out, "index", "index", k.Index)
	}
	out.BulkString("find_keys")
	switch {
	case k.Unknown:
		rule(out, "unknown")
	case k.Counted:
		rule(out, "keynum", "keynumidx", 0, "firstkey", 1, "keystep", k.Step)
	default:
		rule(out, "range", "lastkey", k.Last, "keystep", k.Step, "limit", k.Limit)
	}
}

// rule writes a rule of a key specification: its type and its parameters,
// names and values in turn.
func rule(out *resp.Writer, kind string, parameters ...any) {
	out.Map(2)
	out.BulkString("type")
	out.BulkString(kind)
	out.BulkString("spec")
	out.Map(len(parameters) / 2)
	for _, p := range parameters {
		switch p := p.(type) {
		case int:
			out.Int(int64(p))
		case string:
			out.BulkString(p)
		}
	}
}

func describeFlags(out *resp.Writer, flags command.KeyFlags) {
	names := flags.Names()
	out.Set(len(names))
	for _, name := range names {
		out.SimpleString(name)
	}
}

func (m *Machine) commandGetKeys(c *command.Ctx) error {
	uses, err := m.keysOf(c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Array(len(uses))
	for _, use := range uses {
		c.Out.Bulk(c.Args[2+use.Position])
	}
	return nil
}

func (m *Machine) commandGetKeysAndFlags(c *command.Ctx) error {
	uses, err := m.keysOf(c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Array(len(uses))
	for _, use := range uses {
		c.Out.Array(2)
		c.Out.Bulk(c.Args[2+use.Position])
		describeFlags(c.Out, use.Flags)
	}
	return nil
}

func (m *Machine) keysOf(call [][]byte) ([]command.KeyUse, error) {
	spec, err := m.find(call)
	switch {
	case spec == nil:
		return nil, command.Error("ERR Invalid command specified")
	case !spec.HasKeys():
		return nil, command.Error("ERR The command has no key arguments")
	case err != nil:
		return nil, command.Error("ERR Invalid number of arguments specified for command")
	}
	uses := spec.KeyUses(call)
	if len(uses) == 0 && spec.Flags&command.NoMandatoryKeys == 0 {
		return nil, command.Error("ERR Invalid arguments specified for command")
	}
	return uses, nil
}

func replyOK(out *resp.Writer) { out.SimpleString("OK") }
