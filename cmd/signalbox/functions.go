package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

// functionsJSON is the library on one server, in the output of `functions --json`.
type functionsJSON struct {
	Server    string               `json:"server"`
	Software  string               `json:"software"`
	Version   int                  `json:"version"`
	Before    *int                 `json:"before,omitempty"`
	Functions []signalbox.Function `json:"functions,omitempty"`
}

func (a *app) functionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "functions", Short: "Install what clients in other languages call",
		Long: `Programs in other languages take part through a library of Redis Functions, whose
calls docs/functions.md describes; Go programs and this one do not need it. It is
installed once on the server, in a Cluster on every primary, and again for a new
version, or when a primary joins.`,
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
	var source bool
	cmd := &cobra.Command{
		Use: "install", Short: "Install the functions, or print their source", Args: exactly(),
		Long: `Install the functions on the server, in a Cluster on every primary. A newer
version is not overwritten. With --print, the source is printed instead, as
FUNCTION LOAD takes it:

  signalbox functions install --print | redis-cli -x FUNCTION LOAD REPLACE

JSON: a list of {server, software, version, before}; before is the version that
was there, 0 if none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if source {
				_, err := fmt.Fprint(a.stdout, signalbox.FunctionsSource())
				return err
			}
			return a.with(cmd.Context(), func(box *signalbox.Box) error { return a.installFunctions(cmd.Context(), box) })
		},
	}
	cmd.Flags().BoolVar(&source, "print", false, "print the source instead")
	return cmd
}

func (a *app) installFunctions(ctx context.Context, box *signalbox.Box) error {
	before, err := box.InstallFunctions(ctx)
	if errors.Is(err, signalbox.ErrNewer) {
		return fmt.Errorf("%w; use the signalbox that installed it, or remove it with signalbox functions delete", err)
	}
	if err != nil {
		return err
	}
	if a.json {
		list := make([]functionsJSON, 0, len(before))
		for _, s := range before {
			list = append(list, functionsJSON{Server: s.Server, Software: s.Software, Version: signalbox.FunctionsVersion, Before: &s.Version})
		}
		return a.printJSON(list)
	}
	for _, s := range before {
		text := fmt.Sprintf("%s: version %d of the functions is installed", serverOf(s), signalbox.FunctionsVersion)
		if s.Version > 0 {
			text += fmt.Sprintf(", in place of version %d", s.Version)
		}
		fmt.Fprintln(a.stdout, text)
	}
	return nil
}

func (a *app) functionsLsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "Show which functions are installed", Args: exactly(),
		Long: `Show which version of the functions each server has, and what they are.

JSON: a list of {server, software, version, functions: [{name, description}]};
version is 0 where there are none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.look(cmd.Context(), func(box *signalbox.Box) error {
				if box == nil {
					return a.printFunctions(nil)
				}
				servers, err := box.Functions(cmd.Context())
				if err != nil {
					return err
				}
				return a.printFunctions(servers)
			})
		},
	}
}

func (a *app) printFunctions(servers []signalbox.Functions) error {
	if a.json {
		list := make([]functionsJSON, 0, len(servers))
		for _, s := range servers {
			list = append(list, functionsJSON{Server: s.Server, Software: s.Software, Version: s.Version, Functions: s.List})
		}
		return a.printJSON(list)
	}
	if len(servers) == 0 {
		fmt.Fprintln(a.stdout, "The private local engine does not run. Give the server that your clients use with --url.")
		return nil
	}
	var list []signalbox.Function
	advice := ""
	for _, s := range servers {
		text := fmt.Sprintf("%s: version %d", serverOf(s), s.Version)
		if s.Version == 0 {
			text = serverOf(s) + ": not installed"
		}
		fmt.Fprintln(a.stdout, text)
		if s.Version < signalbox.FunctionsVersion {
			advice = fmt.Sprintf("This program brings version %d: signalbox functions install", signalbox.FunctionsVersion)
		}
		if len(s.List) > len(list) {
			list = s.List
		}
	}
	if len(list) > 0 {
		fmt.Fprintln(a.stdout)
		t := newTable("FUNCTION", "WHAT IT DOES")
		for _, f := range list {
			t.add(printable(f.Name), printable(f.Description))
		}
		if err := t.print(a.stdout); err != nil {
			return err
		}
	}
	if advice != "" {
		fmt.Fprintln(a.stdout, "\n"+advice)
	}
	return nil
}

func (a *app) functionsDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete", Short: "Remove the functions", Args: exactly(),
		Long: `Remove the functions from the server, in a Cluster from every primary. What is
held stays held, but clients that call the functions can neither renew nor release
any more: end them first.

JSON: a list of {server, software, version, before}; before is the version that
was there, 0 if none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(box *signalbox.Box) error {
				before, err := box.DeleteFunctions(cmd.Context())
				if err != nil {
					return err
				}
				return a.printDeleted(before)
			})
		},
	}
}

func (a *app) printDeleted(before []signalbox.Functions) error {
	list := make([]functionsJSON, 0, len(before))
	for _, s := range before {
		list = append(list, functionsJSON{Server: s.Server, Software: s.Software, Before: &s.Version})
	}
	if a.json {
		return a.printJSON(list)
	}
	for _, s := range before {
		text := fmt.Sprintf("%s: version %d of the functions is removed", serverOf(s), s.Version)
		if s.Version == 0 {
			text = serverOf(s) + ": there are no functions"
		}
		fmt.Fprintln(a.stdout, text)
	}
	return nil
}

// serverOf is "127.0.0.1:6379 (Redis 7.0.15)".
func serverOf(s signalbox.Functions) string {
	return fmt.Sprintf("%s (%s)", printable(cmp.Or(s.Server, "the server")), printable(s.Software))
}
