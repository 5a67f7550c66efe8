// Program matrix runs the fault tests several times and writes what came of them as a page in Markdown: what is injected,
// what must hold, how often it did. `make faults` writes docs/faults.md with it; -list only names the faults.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/internal/faults"
)

func main() {
	list := flag.Bool("list", false, "name the faults and run nothing")
	rounds := flag.Int("rounds", 3, "how often each test runs")
	out := flag.String("o", "", "the file to write (default: standard output)")
	flag.Parse()
	if err := run(*list, *rounds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(list bool, rounds int, out string) error {
	tally := make(map[string]*result)
	if !list {
		var err error
		if tally, err = test(rounds); err != nil {
			return err
		}
	}
	text := page(tally, rounds)
	if out == "" {
		fmt.Print(text)
	} else if err := os.WriteFile(out, []byte(text), 0o644); err != nil { //nolint:gosec // a page for everybody
		return err
	}
	for _, fault := range faults.Registry {
		if r := tally["Test"+fault.Name]; !list && (r == nil || r.passed < rounds) {
			return fmt.Errorf("a promise did not hold under Test%s: go test ./internal/faults/%s -run Test%s -v",
				fault.Name, fault.Package, fault.Name)
		}
	}
	return nil
}

// result is what came of one test.
type result struct {
	passed, failed int
	longest        float64 // s
}

// test runs all fault tests, and says on stderr how each one went.
func test(rounds int) (map[string]*result, error) {
	command := exec.Command("go", "test", "-json", "-timeout", "30m", "-count", strconv.Itoa(rounds), "./internal/faults/...")
	command.Stderr = os.Stderr
	pipe, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	tally, err := read(pipe)
	if failed := command.Wait(); err == nil && failed != nil && len(tally) == 0 {
		err = failed // a test that fails is a line of the page, and no reason to write none
	}
	return tally, err
}

func read(events io.Reader) (map[string]*result, error) {
	tally := make(map[string]*result)
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Action, Test string
			Elapsed      float64
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, err
		}
		if event.Test == "" || strings.Contains(event.Test, "/") || (event.Action != "pass" && event.Action != "fail") {
			continue
		}
		r := tally[event.Test]
		if r == nil {
			r = new(result)
			tally[event.Test] = r
		}
		if event.Action == "pass" {
			r.passed++
		} else {
			r.failed++
		}
		r.longest = max(r.longest, event.Elapsed)
		fmt.Fprintf(os.Stderr, "%s %s %.1f s\n", event.Action, event.Test, event.Elapsed)
	}
	return tally, lines.Err()
}

func page(tally map[string]*result, rounds int) string {
	var b strings.Builder
	b.WriteString("# What breaks, and what holds\n\n" +
		"Real servers, real processes, one fault at a time, under load: workers that acquire, try, cancel, hold and release " +
		"over several boxes. The invariants are those of [invariants.md](invariants.md). ")
	if len(tally) > 0 {
		fmt.Fprintf(&b, "This page was written by `make faults`, which ran each test %d times.", rounds)
	}
	b.WriteString("\n\n| servers | fault | what is injected | what must hold | held | longest |\n|---|---|---|---|---|---|\n")
	for _, fault := range faults.Registry {
		held, longest := "", ""
		if r := tally["Test"+fault.Name]; r != nil {
			held, longest = fmt.Sprintf("%d of %d", r.passed, r.passed+r.failed), fmt.Sprintf("%.0f s", r.longest)
		}
		fmt.Fprintf(&b, "| %s | `Test%s` | %s | %s | %s | %s |\n", fault.Package, fault.Name, fault.Injected, fault.Holds,
			held, longest)
	}
	return b.String()
}
