package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/signalbox-io/signalbox/internal/racelab"
)

// raceFlags are the bounds that somebody asks for; negative: those of the
// algorithm.
type raceFlags struct {
	list                                      bool
	clients, faults, depth, schedules, random int
	seed                                      uint64
}

func (a *app) raceCommand() *cobra.Command {
	var f raceFlags
	cmd := &cobra.Command{
		Use: "race ALGORITHM", Short: "Search an algorithm for races, and show the shortest schedule of each",
		Long: `Run a lock or a semaphore with a scheduler that lets one client at a time send one
command, and in between lets clients crash, loses requests, replies and messages,
lets time pass and sets clocks wrong. All schedules within the bounds are searched,
then some random ones beyond. For each promise of the algorithm that can be broken
the shortest schedule is shown that breaks it. No server is needed.

The algorithms are those of Redis in Action and of a talk, as published, the ledger
on which this program's own locks are built, and its queue; see signalbox race --list.

Exit status: 1 if a promise is broken, 0 if none is.`,
		Example: `  signalbox race fair-semaphore
  signalbox race ledger --schedules 0
  signalbox race queue`,
		ValidArgsFunction: func(*cobra.Command, []string, string) (offers []string, _ cobra.ShellCompDirective) {
			for _, algorithm := range racelab.All() {
				offers = append(offers, algorithm.Name+"\t"+algorithm.Summary)
			}
			return offers, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return nil
			}
			return exactly("an ALGORITHM")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if f.list {
				return a.listRaces()
			}
			return a.race(args[0], &f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.list, "list", false, "list the algorithms and what they promise")
	flags.IntVar(&f.clients, "clients", -1, "how many clients there are, from 1 to 6 (default: by the algorithm)")
	flags.IntVar(&f.faults, "faults", -1, "how many misfortunes a schedule may hold (default: by the algorithm)")
	flags.IntVar(&f.depth, "depth", -1, "how many steps a schedule may have (default 60)")
	flags.IntVar(&f.schedules, "schedules", -1, "how many schedules are searched at most, 0 for any number (default 40000)")
	flags.IntVar(&f.random, "random", -1, "how many random schedules are drawn besides (default 500)")
	flags.Uint64Var(&f.seed, "seed", 1, "what the random schedules are drawn by")
	return cmd
}

func (a *app) listRaces() error {
	if a.json {
		type entry struct {
			Name     string            `json:"name"`
			Summary  string            `json:"summary"`
			Promises []racelab.Promise `json:"promises"`
			Faults   []racelab.Fault   `json:"faults"`
		}
		entries := []entry{}
		for _, algorithm := range racelab.All() {
			entries = append(entries, entry{algorithm.Name, algorithm.Summary, algorithm.Promises, algorithm.Faults})
		}
		return a.printJSON(entries)
	}
	for _, algorithm := range racelab.All() {
		fmt.Fprintf(a.stdout, "%s: %s\n", bold(a.stdout, algorithm.Name), algorithm.Summary)
		for _, promise := range algorithm.Promises {
			fmt.Fprintf(a.stdout, "    %s\n", promise)
		}
	}
	return nil
}

// bounds are those of the algorithm with what was asked for.
func (f *raceFlags) bounds(algorithm *racelab.Algorithm) (racelab.Bounds, error) {
	b := algorithm.Defaults()
	b.Seed = f.seed
	for _, asked := range []struct {
		name            string
		to              *int
		value, min, max int
	}{
		{"clients", &b.Clients, f.clients, 1, 6},
		{"faults", &b.Faults, f.faults, 0, 10},
		{"depth", &b.Depth, f.depth, 1, 1000},
		{"schedules", &b.Schedules, f.schedules, 0, 1 << 30},
		{"random", &b.Random, f.random, 0, 1 << 30},
	} {
		switch {
		case asked.value == -1:
		case asked.value < asked.min || asked.value > asked.max:
			return b, usage("--%s must be from %d to %d, not %d", asked.name, asked.min, asked.max, asked.value)
		default:
			*asked.to = asked.value
		}
	}
	return b, nil
}

func (a *app) race(name string, f *raceFlags) error {
	algorithm, known := racelab.Named(name)
	if !known {
		var names []string
		for _, other := range racelab.All() {
			names = append(names, other.Name)
		}
		return usage("there is no algorithm %q; there are %s", name, strings.Join(names, ", "))
	}
	bounds, err := f.bounds(algorithm)
	if err != nil {
		return err
	}
	progress := a.newProgress()
	report := racelab.Explore(algorithm, bounds, func(r racelab.Report) {
		progress.say(func() string {
			return fmt.Sprintf("%s, %s, %d broken", count(r.Schedules+r.Random, "schedule"), count(r.States, "state"), len(r.Findings))
		})
	})
	progress.clear()
	if a.json {
		err = a.printJSON(report)
	} else {
		err = a.printRace(algorithm, &report)
	}
	if err == nil && len(report.Findings) > 0 {
		return &exitError{exitFailure, nil}
	}
	return err
}

func (a *app) printRace(algorithm *racelab.Algorithm, report *racelab.Report) error {
	fmt.Fprintf(a.stdout, "%s: %s\n", bold(a.stdout, algorithm.Name), algorithm.Summary)
	timeout := "without a timeout"
	if algorithm.Timeout > 0 {
		timeout = fmt.Sprintf("timeout %v", algorithm.Timeout)
	}
	fmt.Fprintf(a.stdout, "%s for %s, %s\n", count(algorithm.Permits, "permit"), count(report.Bounds.Clients, "client"), timeout)
	for i := range report.Findings {
		a.printFinding(&report.Findings[i])
	}
	fmt.Fprintln(a.stdout)
	for _, promise := range algorithm.Promises {
		verdict := "BROKEN"
		if slices.Contains(report.Kept, promise) {
			verdict = "kept  "
		}
		fmt.Fprintf(a.stdout, "%s  %s\n", verdict, promise)
	}
	_, err := fmt.Fprintf(a.stdout, "\n%s\n", covered(report))
	return err
}

func (a *app) printFinding(f *racelab.Finding) {
	width := 100
	if file, ok := a.stdout.(*os.File); ok && isTerminal(a.stdout) {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			width = columns
		}
	}
	fmt.Fprintf(a.stdout, "\n%s\n\n", bold(a.stdout, "Broken: "+string(f.Promise)))
	for _, line := range f.Table(width, a.paint) {
		fmt.Fprintln(a.stdout, line)
	}
	fmt.Fprintf(a.stdout, "\n%s\n", a.paint(racelab.Misfortune, "=> "+f.Why+"."))
}

// paint gives parts of a schedule their colours, on a terminal.
func (a *app) paint(mark racelab.Mark, text string) string {
	codes := map[racelab.Mark]string{racelab.Heading: "1", racelab.Misfortune: "31", racelab.Holding: "1;32"}
	if codes[mark] == "" || !coloured(a.stdout) {
		return text
	}
	return "\x1b[" + codes[mark] + "m" + text + "\x1b[0m"
}

// covered says what was searched.
func covered(report *racelab.Report) string {
	b := report.Bounds
	within := count(b.Clients, "client") + ", without misfortunes"
	if b.Faults > 0 {
		within = fmt.Sprintf("%s, up to %s in a schedule", count(b.Clients, "client"), count(b.Faults, "misfortune"))
	}
	searched := fmt.Sprintf("%s, %s", count(report.Schedules, "schedule"), count(report.States, "state"))
	var text string
	switch {
	case report.Whole:
		text = fmt.Sprintf("Searched the whole space of %s: %s.", within, searched)
	case len(report.Kept) == 0:
		text = fmt.Sprintf("Searched until every promise was broken: %s.", searched)
	case report.Cut > 0:
		text = fmt.Sprintf("Searched %s, to a depth of %d steps (%d went deeper): %s.", within, b.Depth, report.Cut, searched)
	default:
		text = fmt.Sprintf("Searched a part of the space of %s: %s; --schedules 0 searches all.", within, searched)
	}
	if report.Random > 0 {
		text += fmt.Sprintf("\nBesides %s with one client and one misfortune more (seed %d).", count(report.Random, "random schedule"), b.Seed)
	}
	return text
}
