package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue"
)

// functionsJSON is a library on one server, in the output of `functions --json`.
type functionsJSON struct {
	Library   string               `json:"library"`
	Server    string               `json:"server"`
	Software  string               `json:"software"`
	Version   int                  `json:"version"`
	Before    *int                 `json:"before,omitempty"`
	Functions []signalbox.Function `json:"functions,omitempty"`
}

// installed is what the servers have of one of the two libraries.
type installed struct {
	library string
	whose   string // stands behind a server's name
	ours    int    // the version that this program brings
	servers []signalbox.Functions
}

// bothLibraries does something with the library of the locks, and then with the queue's.
func (a *app) bothLibraries(ctx context.Context, ofLocks func(*signalbox.Box, context.Context) ([]signalbox.Functions, error),
	ofQueue func(*queue.Queue, context.Context) ([]queue.Functions, error),
) ([]installed, error) {
	locks := installed{"signalbox", "", signalbox.FunctionsVersion, nil}
	err := a.with(ctx, func(box *signalbox.Box) (err error) {
		locks.servers, err = ofLocks(box, ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	queues := installed{"signalbox_queue", ", queue", queue.FunctionsVersion, nil}
	err = a.withQueue(ctx, func(q *queue.Queue) error {
		found, err := ofQueue(q, ctx)
		for _, s := range found {
			theirs := signalbox.Functions{Server: s.Server, Software: s.Software, Version: s.Version}
			for _, f := range s.List {
				theirs.List = append(theirs.List, signalbox.Function(f))
			}
			queues.servers = append(queues.servers, theirs)
		}
		return err
	})
	return []installed{locks, queues}, err
}

func (a *app) functionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "functions", Short: "Install what clients in other languages call",
		Long: `Programs in other languages take part through two libraries of Redis Functions, for
locks and for queues, whose calls docs/functions.md and docs/functions-queue.md
describe; Go programs and this one do not need them. They are installed once on the
server, in a Cluster on every primary, and again for a new version, or when a
primary joins.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.functionsInstallCommand(), a.functionsLsCommand(), a.functionsDeleteCommand())
	return cmd
}

func (a *app) functionsInstallCommand() *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use: "install", Short: "Install the functions, or print their source", Args: exactly(),
		Long: `Install the functions on the server, in a Cluster on every primary. A newer
version is not overwritten. With --print, the source is printed instead, as
FUNCTION LOAD takes it:

  signalbox functions install --print | redis-cli -x FUNCTION LOAD REPLACE
  signalbox functions install --print=queue | redis-cli -x FUNCTION LOAD REPLACE

JSON: a list of {library, server, software, version, before}; before is the
version that was there, 0 if none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch source {
			case "":
				return a.installFunctions(cmd.Context())
			case "locks":
				_, err := fmt.Fprint(a.stdout, signalbox.FunctionsSource())
				return err
			case "queue":
				_, err := fmt.Fprint(a.stdout, queue.FunctionsSource())
				return err
			}
			return usage("--print is of locks or of queue, not of %q", source)
		},
	}
	cmd.Flags().StringVar(&source, "print", "", "print the source instead: of the locks, or of the `queue`")
	cmd.Flags().Lookup("print").NoOptDefVal = "locks"
	return cmd
}

func (a *app) installFunctions(ctx context.Context) error {
	before, err := a.bothLibraries(ctx, (*signalbox.Box).InstallFunctions, (*queue.Queue).InstallFunctions)
	if errors.Is(err, signalbox.ErrNewer) {
		return fmt.Errorf("%w; use the signalbox that installed it, or remove it with signalbox functions delete", err)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(functionsBefore(before, true))
	}
	for _, library := range before {
		for _, s := range library.servers {
			text := fmt.Sprintf("%s%s: version %d of the functions is installed", serverOf(s), library.whose, library.ours)
			if s.Version > 0 {
				text += fmt.Sprintf(", in place of version %d", s.Version)
			}
			fmt.Fprintln(a.stdout, text)
		}
	}
	return nil
}

// functionsBefore is what was there, and whether there is something now.
func functionsBefore(before []installed, now bool) []functionsJSON {
	var list []functionsJSON
	for _, library := range before {
		for _, s := range library.servers {
			f := functionsJSON{Library: library.library, Server: s.Server, Software: s.Software, Before: &s.Version}
			if now {
				f.Version = library.ours
			}
			list = append(list, f)
		}
	}
	return list
}

func (a *app) functionsLsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "Show which functions are installed", Args: exactly(),
		Long: `Show which version of the functions each server has, and what they are.

JSON: a list of {library, server, software, version, functions: [{name,
description}]}; version is 0 where there are none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			running := false
			err := a.look(cmd.Context(), func(box *signalbox.Box) error {
				running = box != nil
				return nil
			})
			if err != nil {
				return err
			}
			var libraries []installed
			if running {
				libraries, err = a.bothLibraries(cmd.Context(), (*signalbox.Box).Functions, (*queue.Queue).Functions)
			}
			if err != nil {
				return err
			}
			return a.printFunctions(libraries)
		},
	}
}

func (a *app) printFunctions(libraries []installed) error {
	if a.json {
		list := []functionsJSON{}
		for _, library := range libraries {
			for _, s := range library.servers {
				list = append(list, functionsJSON{
					Library: library.library, Server: s.Server, Software: s.Software, Version: s.Version, Functions: s.List,
				})
			}
		}
		return a.printJSON(list)
	}
	if len(libraries) == 0 {
		fmt.Fprintln(a.stdout, "The private local engine does not run. Give the server that your clients use with --url.")
		return nil
	}
	t := newTable("FUNCTION", "WHAT IT DOES")
	some := false
	var advice []string
	for _, library := range libraries {
		outdated := false
		for _, s := range library.servers {
			text := fmt.Sprintf("%s%s: version %d", serverOf(s), library.whose, s.Version)
			if s.Version == 0 {
				text = serverOf(s) + library.whose + ": not installed"
			}
			fmt.Fprintln(a.stdout, text)
			outdated = outdated || s.Version < library.ours
		}
		if outdated {
			advice = append(advice, fmt.Sprintf("This program brings version %d%s: signalbox functions install", library.ours, library.whose))
		}
		for _, f := range most(library.servers) {
			t.add(printable(f.Name), printable(f.Description))
			some = true
		}
	}
	if some {
		fmt.Fprintln(a.stdout)
		if err := t.print(a.stdout); err != nil {
			return err
		}
	}
	if len(advice) > 0 {
		fmt.Fprintln(a.stdout, "\n"+strings.Join(advice, "\n"))
	}
	return nil
}

// most is the longest list of functions that a server has.
func most(servers []signalbox.Functions) (list []signalbox.Function) {
	for _, s := range servers {
		if len(s.List) > len(list) {
			list = s.List
		}
	}
	return list
}

func (a *app) functionsDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete", Short: "Remove the functions", Args: exactly(),
		Long: `Remove the functions from the server, in a Cluster from every primary. What is
held stays held, and what is enqueued stays so, but clients that call the functions
can neither renew nor release any more, and their jobs go to others: end them first.

JSON: a list of {library, server, software, version, before}; before is the
version that was there, 0 if none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			before, err := a.bothLibraries(cmd.Context(), (*signalbox.Box).DeleteFunctions, (*queue.Queue).DeleteFunctions)
			if err != nil {
				return err
			}
			return a.printDeleted(before)
		},
	}
}

func (a *app) printDeleted(before []installed) error {
	if a.json {
		return a.printJSON(functionsBefore(before, false))
	}
	for _, library := range before {
		for _, s := range library.servers {
			text := fmt.Sprintf("%s%s: version %d of the functions is removed", serverOf(s), library.whose, s.Version)
			if s.Version == 0 {
				text = serverOf(s) + library.whose + ": there are no functions"
			}
			fmt.Fprintln(a.stdout, text)
		}
	}
	return nil
}

// serverOf is "127.0.0.1:6379 (Redis 7.0.15)".
func serverOf(s signalbox.Functions) string {
	return fmt.Sprintf("%s (%s)", printable(cmp.Or(s.Server, "the server")), printable(s.Software))
}
