package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

var writeDocs = flag.Bool("write-docs", false, "write docs/commands.md from the command table")

const commandsPage = "../docs/commands.md"

// laterCommands says which commands are of later versions than 7.0 (see later), and what
// clients send without being asked, as their sources have it.
const laterCommands = `
Of later versions there is only what clients send of their own accord, or offer as an option of connecting:

| command | of version | who sends it |
|---|---|---|
| CLIENT SETINFO LIB-NAME, LIB-VER | 7.2 | go-redis, rueidis, redis-py, ioredis, node-redis, Jedis from 4.4.5 and Lettuce, after HELLO or AUTH; its errors mean nothing to them |
| CLIENT NO-TOUCH | 7.2 | rueidis, with its option ClientNoTouch |

CLIENT MAINT_NOTIFICATIONS, which new versions of go-redis, redis-py, node-redis and Lettuce send, is a command of hosted Redis. It is refused as by Redis 7.0 and Valkey, and these clients go on.
`

// TestCommandsPageIsTheTable holds docs/commands.md against what the engine
// says of itself. go test ./engine -run CommandsPage -write-docs renews it.
func TestCommandsPageIsTheTable(t *testing.T) {
	page := renderCommands()
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

// renderCommands writes the page from the records, in words of our own; those
// of COMMAND DOCS are Redis's.
func renderCommands() string {
	groups := map[string][]string{}
	total := 0
	exec.New(exec.Options{}, 0).Table().Each(func(spec *command.Spec) {
		if spec.Sub != nil {
			return
		}
		total++
		name := strings.ToUpper(strings.ReplaceAll(spec.FullName(), "|", " "))
		groups[spec.Group] = append(groups[spec.Group], fmt.Sprintf("| %s | %s | %s | %s |\n",
			name, cell(spec.Summary), cell(spec.Complexity), cell(spec.Since)))
	})
	var page strings.Builder
	fmt.Fprintf(&page, "# Commands\n\nWritten by the engine from its command table: %d commands and subcommands, each as in Redis 7.0. What is different stands in [deviations.md](deviations.md).\n", total)
	page.WriteString(laterCommands)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[group])
		fmt.Fprintf(&page, "\n## %s\n\n| command | what it does | complexity | since |\n|---|---|---|---|\n%s", group, strings.Join(groups[group], ""))
	}
	return page.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
