package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// `doctor` reads a server once (doctor_read.go) and looks at what was read (doctor_checks.go). The looks are pure: each
// knows one danger to locks and queues, and answers one finding. What a server does not show is told as that, never
// guessed. The next look is a function and its line in `checks`.

// The levels of a finding. Danger: permits are granted twice, jobs are lost, or nothing works.
const (
	levelDanger  = "danger"
	levelWarning = "warning"
	levelHidden  = "not visible"
	levelOK      = "ok"
)

// levels are in the order in which findings are shown.
var levels = []string{levelDanger, levelWarning, levelHidden, levelOK}

// finding is one answer, in the output of `doctor --json` too.
type finding struct {
	Check string `json:"check"`
	Level string `json:"level"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

// examinedJSON is a server in the output of `doctor --json`.
type examinedJSON struct {
	Server   string    `json:"server"`
	Software string    `json:"software"`
	Findings []finding `json:"findings"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Find what of a server's settings endangers locks and queues", Args: exactly(),
		Long: `Look at a server for what endangers locks and queues: version, role, eviction, memory,
persistence, replicas, Sentinels, who is let in, clock, Cluster, rights, connections, and requests
that hold up all others. Each finding says what to do. Behind Sentinels it is the primary
that is looked at, of a Cluster every primary. Nothing is changed.

Of the private local engine, which has no settings, it says what its keeping everything in
memory means.

What the server does not show, as managed services that refuse CONFIG, is "not visible".

JSON: a list of {server, software, findings: [{check, level, what, do}]}; level is danger,
warning, ok or "not visible".

Exit status: 1 if there is danger, 0 if there is none.`,
		Example: `  signalbox doctor --url redis://10.0.0.5:6379`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inCluster := strings.Contains(a.server(), "+cluster:")
			var all []examinedJSON
			err := a.eachServer(cmd.Context(), func(ctx context.Context, server *redis.Client, found checked) error {
				r := &reading{checked: found, inCluster: inCluster, private: a.private != nil}
				if err := errors.Join(r.read(ctx, server), r.readSentinels(ctx, a.server())); err != nil {
					return err
				}
				all = append(all, examinedJSON{addressOf(ctx, server), r.software(), r.examine()})
				return nil
			})
			if err != nil {
				return err
			}
			return a.printExamined(all)
		},
	}
}

// examine looks for everything, the worst first.
func (r *reading) examine() (found []finding) {
	for _, check := range checks {
		f := check.look(r)
		f.Check = check.name
		if r.private && f.Do != "" && f.Check != "clock" && f.Check != "persistence" {
			f.Do = "nothing can be set here: signalbox serve --dir DIR is an engine with settings of its own, for --url"
		}
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return slices.Index(levels, a.Level) - slices.Index(levels, b.Level) })
	return found
}

// besideLevel is the column in which findings begin.
const besideLevel = 15

// indented breaks a text into the lines of a terminal, beside the level.
func (a *app) indented(text string) string {
	return wrapped(text, widthOf(a.stdout)-besideLevel, "\n"+strings.Repeat(" ", besideLevel))
}

func (a *app) printExamined(all []examinedJSON) error {
	danger := false
	for i, server := range all {
		if !a.json && i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if !a.json {
			fmt.Fprintf(a.stdout, "%s\n", bold(a.stdout, printable(server.Server)+", "+printable(server.Software)))
		}
		for _, f := range server.Findings {
			danger = danger || f.Level == levelDanger
			if a.json {
				continue
			}
			fmt.Fprintf(a.stdout, "  %-11s  %s\n", f.Level, a.indented(f.Check+": "+printable(f.What)))
			if f.Do != "" {
				fmt.Fprintf(a.stdout, "  %-11s  %s\n", "", a.indented("→ "+printable(f.Do)))
			}
		}
	}
	if a.json {
		if err := a.printJSON(all); err != nil {
			return err
		}
	}
	if danger {
		return &exitError{exitFailure, nil}
	}
	return nil
}
