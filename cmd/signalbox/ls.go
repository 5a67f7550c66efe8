package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

// resourceJSON is one resource in the output of `ls --json`.
type resourceJSON struct {
	Resource string `json:"resource"`
	Limit    int    `json:"limit"`
	Operator bool   `json:"limit_by_operator"`
	Held     int    `json:"held"`
	Leases   int    `json:"leases"`
	Waiting  int    `json:"waiting"`
	besideJSON
}

// operatorNote explains the star behind a limit.
const operatorNote = "* set by an operator; cleared with signalbox resize NAME --clear"

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls [PATTERN...]", Short: "List what is held, waited for, or limited by an operator", ValidArgsFunction: a.completed(0, nil),
		Long: `List the resources that are held, waited for, or limited by an operator: all, or those
whose names match one of the patterns, in which * stands for anything and ? for any one
character; and behind them the names at whose barrier or latch somebody waits, or whose
rate is in use.

JSON: a list of {resource, limit, limit_by_operator, held, leases, waiting};
held counts permits, leases the holders. With barrier, latch and rate as in signalbox
inspect, of those that wait only one.

A resource in whose place is a key of another program is left out, and named on
standard error behind the list, with the keys to look at.

Exit status: 1 if one was left out or something else failed, 69 if the server cannot be
reached, else 0.`,
		Example: `  signalbox ls 'downloads*' deploy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.look(cmd.Context(), func(box *signalbox.Box) error {
				if box == nil {
					return a.printList(nil, nil)
				}
				states, err := box.List(cmd.Context())
				if err != nil && !errors.Is(err, signalbox.ErrWrongType) {
					return err
				}
				beside, failed := a.listBeside(cmd.Context())
				if failed != nil {
					return errors.Join(failed, err)
				}
				other := func(name string) bool { return !matches(args, name) }
				states = slices.DeleteFunc(states, func(s signalbox.State) bool { return other(s.Resource) })
				beside = slices.DeleteFunc(beside, func(b namedBeside) bool { return other(b.name) })
				return errors.Join(a.printList(states, beside), err)
			})
		},
	}
}

// matches says whether a name is like one of the patterns, or there is none.
func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		as := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		return regexp.MustCompile("(?s)^" + as + "$").MatchString(name) // quoted, so it compiles
	})
}

func (a *app) printList(states []signalbox.State, beside []namedBeside) error {
	list := make([]resourceJSON, 0, len(states))
	for _, s := range states {
		list = append(list, resourceJSON{s.Resource, s.Limit, s.Operator > 0, s.Held, s.Leases, s.Waiters, besideJSON{}})
	}
	if a.json {
		return a.printJSON(joined(list, beside))
	}
	if len(list)+len(beside) == 0 {
		_, err := fmt.Fprintln(a.stdout, "Nothing is held and nobody waits. To hold a permit while a command runs: signalbox run NAME -- COMMAND")
		return err
	}
	if err := a.printResources(list); err != nil || len(beside) == 0 {
		return err
	}
	t := newTable("NAME", "IN USE")
	for i := range beside {
		b := &beside[i]
		for _, part := range sayBeside(&b.Beside) {
			t.add(printable(b.name), part)
		}
	}
	if len(list) > 0 {
		fmt.Fprintln(a.stdout)
	}
	return t.print(a.stdout)
}

// joined is the list of all names, with what is in use of each.
func joined(list []resourceJSON, beside []namedBeside) []resourceJSON {
	for i := range beside {
		b := &beside[i]
		at := slices.IndexFunc(list, func(r resourceJSON) bool { return r.Resource == b.name })
		if at < 0 {
			at = len(list)
			list = append(list, resourceJSON{Resource: b.name})
		}
		list[at].besideJSON = newBesideJSON(&b.Beside)
	}
	slices.SortFunc(list, func(a, b resourceJSON) int { return strings.Compare(a.Resource, b.Resource) })
	return list
}

func (a *app) printResources(list []resourceJSON) error {
	if len(list) == 0 {
		return nil
	}
	t := newTable("RESOURCE", ">HELD", ">LIMIT", ">LEASES", ">WAITING")
	for _, r := range list {
		limit := permits(r.Limit)
		if r.Operator {
			limit += "*"
		}
		t.add(printable(r.Resource), permits(r.Held), limit, strconv.Itoa(r.Leases), strconv.Itoa(r.Waiting))
	}
	if err := t.print(a.stdout); err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(r resourceJSON) bool { return r.Operator }) {
		_, err := fmt.Fprintln(a.stdout, "\n"+operatorNote)
		return err
	}
	return nil
}
