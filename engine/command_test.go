package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// later names what the engine has from versions of Redis after 7.0.
var later = []string{"client|setinfo", "client|no-touch"}

// described is what COMMAND INFO and COMMAND DOCS say of a command.
type described struct {
	Arity, First, Last, Step, Since, Group string
	Flags, Categories                      []string
	Tips, KeySpecs                         string
}

// TestCommandsAreDescribedAsRedisDoes compares the whole command table with a
// running Redis: clients route and retry by it.
func TestCommandsAreDescribedAsRedisDoes(t *testing.T) {
	t.Parallel()
	ours := describe(t, dial(t))
	redis := describe(t, difftest.Redis(t).Dial)
	for name, got := range ours {
		if slices.Contains(later, name) {
			continue
		}
		want, ok := redis[name]
		if !ok {
			t.Errorf("Redis has no command %s", name)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-redis +engine):\n%s", name, diff)
		}
	}
}

// describe asks a server about all its commands.
func describe(t *testing.T, dial difftest.Dial) map[string]described {
	t.Helper()
	conn, err := difftest.Connect(dial)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	all := map[string]described{}
	info, err := conn.Do("COMMAND")
	if err != nil {
		t.Fatal(err)
	}
	addCommands(all, info.Elems)
	docs, err := conn.Do("COMMAND", "DOCS")
	if err != nil {
		t.Fatal(err)
	}
	addDocs(all, docs.Elems)
	return all
}

func addCommands(all map[string]described, commands []difftest.Value) {
	for _, c := range commands {
		d := described{Arity: c.Elems[1].Text, First: c.Elems[3].Text, Last: c.Elems[4].Text, Step: c.Elems[5].Text}
		d.Tips, d.KeySpecs = c.Elems[7].String(), c.Elems[8].String()
		for _, category := range c.Elems[6].Elems {
			d.Categories = append(d.Categories, category.Text)
		}
		for _, flag := range c.Elems[2].Elems {
			d.Flags = append(d.Flags, flag.Text)
		}
		slices.Sort(d.Flags)
		all[strings.ToLower(c.Elems[0].Text)] = d
		addCommands(all, c.Elems[9].Elems)
	}
}

// addDocs reads pairs of names and facts, which are pairs in turn.
func addDocs(all map[string]described, docs []difftest.Value) {
	for i := 0; i+1 < len(docs); i += 2 {
		name, facts := docs[i].Text, docs[i+1].Elems
		d := all[name]
		for j := 0; j+1 < len(facts); j += 2 {
			switch facts[j].Text {
			case "since":
				d.Since = facts[j+1].Text
			case "group":
				d.Group = facts[j+1].Text
			case "subcommands":
				addDocs(all, facts[j+1].Elems)
			}
		}
		all[name] = d
	}
}
