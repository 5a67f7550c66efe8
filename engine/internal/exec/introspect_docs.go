package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// COMMAND DOCS. What is said comes from command.Docs, in the order in which
// Redis says it; facts that a command does not have are left out.

func (m *Machine) commandDocs(c *command.Ctx) error {
	if m.docs == nil {
		m.docs = command.ReadDocs()
	}
	var specs []*command.Spec
	for _, spec := range m.named(c.Args[2:]) {
		if spec != nil {
			specs = append(specs, spec)
		}
	}
	c.Out.Map(len(specs))
	for _, spec := range specs {
		m.documentSpec(c.Out, spec)
	}
	return nil
}

func (m *Machine) documentSpec(out *resp.Writer, spec *command.Spec) {
	doc := m.docs.Of(spec)
	var facts facts
	facts.text("summary", doc.Summary)
	facts.text("since", doc.Since)
	facts.text("group", doc.Group)
	facts.text("complexity", doc.Complexity)
	facts.flags("doc_flags", doc.Flags)
	facts.text("deprecated_since", doc.DeprecatedSince)
	facts.text("replaced_by", doc.ReplacedBy)
	facts.add(len(doc.History), "history", func(out *resp.Writer) { writeHistory(out, doc.History) })
	facts.add(len(doc.Arguments), "arguments", func(out *resp.Writer) { writeArguments(out, doc.Arguments) })
	facts.add(len(spec.Sub), "subcommands", func(out *resp.Writer) {
		out.Map(len(spec.Sub))
		for i := range spec.Sub {
			m.documentSpec(out, &spec.Sub[i])
		}
	})
	out.BulkString(spec.FullName())
	facts.write(out)
}

func writeHistory(out *resp.Writer, history []command.Change) {
	out.Set(len(history))
	for _, change := range history {
		out.Array(2)
		out.BulkString(change.Version)
		out.BulkString(change.What)
	}
}

func writeArguments(out *resp.Writer, arguments []command.Argument) {
	out.Array(len(arguments))
	for i := range arguments {
		a := &arguments[i]
		var facts facts
		facts.text("name", a.Name)
		facts.text("type", a.Type)
		facts.add(a.KeySpec+1, "key_spec_index", func(out *resp.Writer) { out.Int(int64(a.KeySpec)) })
		if a.HasToken {
			facts.add(1, "token", func(out *resp.Writer) { out.BulkString(a.Token) })
		}
		facts.text("since", a.Since)
		facts.text("deprecated_since", a.DeprecatedSince)
		facts.flags("flags", a.Flags)
		facts.add(len(a.Arguments), "arguments", func(out *resp.Writer) { writeArguments(out, a.Arguments) })
		facts.write(out)
	}
}

// facts gathers the entries of a map whose size has to be written first.
type facts []fact

type fact struct {
	name  string
	value func(out *resp.Writer)
}

// add adds a fact unless it has no elements.
func (f *facts) add(elements int, name string, value func(out *resp.Writer)) {
	if elements > 0 {
		*f = append(*f, fact{name, value})
	}
}

func (f *facts) text(name, value string) {
	f.add(len(value), name, func(out *resp.Writer) { out.BulkString(value) })
}

func (f *facts) flags(name string, flags []string) {
	f.add(len(flags), name, func(out *resp.Writer) {
		out.Set(len(flags))
		for _, flag := range flags {
			out.SimpleString(flag)
		}
	})
}

func (f facts) write(out *resp.Writer) {
	out.Map(len(f))
	for _, fact := range f {
		out.BulkString(fact.name)
		fact.value(out)
	}
}
