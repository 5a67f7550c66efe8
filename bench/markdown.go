package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Where the pages go, as seen from the folder of this program, in which make starts it.
const (
	locksPage      = "../docs/benchmarks-locks.md"
	durabilityPage = "../docs/benchmarks-durability.md"
	enginePage     = "../docs/benchmarks-engine.md"
	scalePage      = "../docs/scale.md"
	queuePage      = "../docs/benchmarks-queue.md"
)

// deliver says which command with which arguments made the report, writes it as a page if that is asked for, and prints it.
func (r *report) deliver(command string, args []string, title, page string, markdown, asJSON bool) error {
	if r.Command = command; len(args) > 0 {
		r.Command += fmt.Sprintf(" ARGS=%q", strings.Join(args, " "))
	}
	if markdown {
		if err := writeMarkdown(r, title, page); err != nil {
			return err
		}
	}
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	return r.print(os.Stdout)
}

func writeMarkdown(r *report, title, path string) error {
	return os.WriteFile(path, []byte(markdownOf(r, title)), 0o644)
}

// markdownOf is the report as a page: machine and command, tables, aims, and why some are missed.
func markdownOf(r *report, title string) string {
	var out strings.Builder
	m := r.Machine
	fmt.Fprintf(&out, "# %s\n\nWritten by `%s` in %.0f s. ", title, r.Command, r.Seconds)
	fmt.Fprintf(&out, "%s, %d cores; %s; %s; Redis %s; %s; load before %s, after %s.\n\n",
		m.CPU, m.Cores, m.Kernel, m.Go, m.Redis, m.Pinned, m.Load, r.LoadAfter)
	out.WriteString("Figures of one run compare; figures of different machines, or of different runs, do not.\n")
	met, missed := r.tally()
	fmt.Fprintf(&out, "Of %d aims %d are met and %d missed.\n", met+missed, met, missed)
	for _, s := range r.Sections {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n", s.Title, s.Note)
		markdownTable(&out, s.Columns, s.Rows)
		if len(s.Aims) > 0 && !s.InRows {
			out.WriteString("\n")
			markdownTable(&out, []string{"aim", "wanted", "measured", "lowest..highest", "rounds", ""}, aimRows(s.Aims))
		}
		for _, m := range s.misses() {
			fmt.Fprintf(&out, "\n* MISS, %s: %s\n", strings.Join(m.what, "; "), m.reason)
		}
	}
	return out.String()
}

func markdownTable(out *strings.Builder, header []string, rows [][]string) {
	line := func(cells []string) {
		for _, cell := range cells {
			fmt.Fprintf(out, "| %s ", strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell))
		}
		out.WriteString("|\n")
	}
	line(header)
	out.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
}
