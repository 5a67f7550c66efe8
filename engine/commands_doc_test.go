package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
)

var writeDocs = flag.Bool("write-docs", false, "write docs/commands.md from the command table")

const commandsPage = "../docs/commands.md"

// TestCommandsPageIsTheTable holds docs/commands.md against what the engine
// says of itself. go test ./engine -run CommandsPage -write-docs renews it.
func TestCommandsPageIsTheTable(t *testing.T) {
	page := renderCommands(t)
	if *writeDocs {
		if err := os.WriteFile(commandsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page {
		t.Errorf("%s is stale: run go test ./engine -run CommandsPage -write-docs", commandsPage)
	}
}

func renderCommands(t *testing.T) string {
	t.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	docs, err := e.Do(t.Context(), "COMMAND", "DOCS")
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]string{}
	total := 0
	for i := 0; i < docs.Len(); i += 2 {
		addCommand(groups, docs.At(i).String(), docs.At(i+1), &total)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Commands\n\nWritten by the engine from its command table: %d commands and subcommands, each as in Redis 7.0. What is different stands in [deviations.md](deviations.md).\n", total)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[group])
		fmt.Fprintf(&page, "\n## %s\n\n| command | what it does | complexity | since |\n|---|---|---|---|\n%s", group, strings.Join(groups[group], ""))
	}
	return page.String()
}

// addCommand adds the rows of a command and its subcommands. Under RESP2 a
// description is a flat list of names and values.
func addCommand(groups map[string][]string, name string, description engine.Reply, total *int) {
	facts := map[string]engine.Reply{}
	for i := 0; i+1 < description.Len(); i += 2 {
		facts[description.At(i).String()] = description.At(i + 1)
	}
	subcommands, isContainer := facts["subcommands"]
	if !isContainer {
		*total++
		group := facts["group"].String()
		row := fmt.Sprintf("| %s | %s | %s | %s |\n", strings.ToUpper(strings.ReplaceAll(name, "|", " ")),
			cell(facts["summary"]), cell(facts["complexity"]), cell(facts["since"]))
		groups[group] = append(groups[group], row)
		return
	}
	for i := 0; i+1 < subcommands.Len(); i += 2 {
		addCommand(groups, subcommands.At(i).String(), subcommands.At(i+1), total)
	}
}

func cell(r engine.Reply) string { return strings.ReplaceAll(r.String(), "|", "\\|") }
