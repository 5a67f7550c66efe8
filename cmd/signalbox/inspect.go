package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

// stateJSON is the output of `inspect --json`. Times are the server's.
type stateJSON struct {
	Resource string        `json:"resource"`
	Now      time.Time     `json:"now"`
	Limit    int           `json:"limit"`
	Operator bool          `json:"limit_by_operator"`
	Held     int           `json:"held"`
	Leases   int           `json:"leases"`
	Waiting  int           `json:"waiting"`
	Token    int64         `json:"last_token"`
	Holders  []holderJSON  `json:"holders"`
	Queue    []waitingJSON `json:"queue"`
	besideJSON
}

type holderJSON struct {
	ID      string    `json:"id"`
	Owner   string    `json:"owner"`
	Label   string    `json:"label"`
	Weight  int       `json:"weight"`
	Token   int64     `json:"token"`
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
	Resting bool      `json:"resting"`
}

type waitingJSON struct {
	ID     string    `json:"id"`
	Owner  string    `json:"owner"`
	Label  string    `json:"label"`
	Weight int       `json:"weight"`
	Since  time.Time `json:"since"`
}

func (a *app) inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect NAME", Short: "Show who holds a resource and who waits for it", Args: exactly("NAME"),
		ValidArgsFunction: a.completed(1, nil),
		Long: `Show who holds a resource and who waits for it, in the order of the queue; and what else
is in use under its name: who waits at its barrier or its latch, and its rate.

JSON: {resource, now, limit, limit_by_operator, held, leases, waiting, last_token,
holders: [{id, owner, label, weight, token, since, expires, resting}],
queue: [{id, owner, label, weight, since}]}; the first 1,000 of each are listed. With what is
in use: barrier: {parties, waiting, who: [{id, owner}]}, latch: {parties, done, waiting,
who}, rate: {busy_ns}; parties is 0 if those that wait do not say it.
Resting permits belong to nobody: a lock delay or a minimum hold keeps them back
until they expire.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.look(cmd.Context(), func(box *signalbox.Box) error {
				state := signalbox.State{Resource: args[0], Now: time.Now().UTC()}
				if box != nil {
					var err error
					if state, err = box.Inspect(cmd.Context(), args[0]); err != nil {
						return err
					}
				}
				beside, err := a.besideOf(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.json {
					out := newStateJSON(state)
					out.besideJSON = newBesideJSON(&beside)
					return a.printJSON(out)
				}
				return a.printState(state, sayBeside(&beside))
			})
		},
	}
}

func newStateJSON(s signalbox.State) stateJSON {
	out := stateJSON{
		Resource: s.Resource, Now: s.Now, Limit: s.Limit, Operator: s.Operator > 0, Held: s.Held,
		Leases: s.Leases, Waiting: s.Waiters, Token: s.Token, Holders: []holderJSON{}, Queue: []waitingJSON{},
	}
	for _, h := range s.Holders {
		out.Holders = append(out.Holders, holderJSON{h.ID, h.Owner, h.Label, h.Weight, h.Token, h.Since, h.Expires, h.Resting})
	}
	for _, w := range s.Queue {
		out.Queue = append(out.Queue, waitingJSON{w.ID, w.Owner, w.Label, w.Weight, w.Since})
	}
	return out
}

func (a *app) printState(s signalbox.State, beside []string) error {
	name, free := printable(s.Resource), s.Leases+s.Waiters+s.Operator == 0
	switch {
	case free && len(beside) == 0:
		_, err := fmt.Fprintf(a.stdout, "%s is free: nobody holds it and nobody waits.\n", name)
		return err
	case free:
		_, err := fmt.Fprintf(a.stdout, "%s: %s\n", bold(a.stdout, name), strings.Join(beside, "\n  "))
		return err
	}
	limit := ""
	if s.Operator > 0 {
		limit = " (limit set by an operator)"
	}
	if _, err := fmt.Fprintf(a.stdout, "%s: %s%s, %d waiting\n", bold(a.stdout, name), usageOf(&s), limit, s.Waiters); err != nil {
		return err
	}
	if err := a.printHolders(s); err != nil {
		return err
	}
	if err := a.printQueue(s); err != nil || len(beside) == 0 {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "\nUnder the same name: %s\n", strings.Join(beside, "\n  "))
	return err
}

func (a *app) printHolders(s signalbox.State) error {
	if len(s.Holders) == 0 {
		return nil
	}
	t := newTable("HOLDER", "ID", ">WEIGHT", ">FOR", ">EXPIRES IN", ">TOKEN")
	resting := false
	for i := range s.Holders {
		h := &s.Holders[i]
		resting = resting || h.Resting
		t.add(holder(h), h.ID, permits(h.Weight), span(s.Now.Sub(h.Since)), span(h.Expires.Sub(s.Now)), strconv.FormatInt(h.Token, 10))
	}
	fmt.Fprintln(a.stdout)
	if err := t.fit(a.stdout, "HOLDER").print(a.stdout); err != nil {
		return err
	}
	if err := a.printRest(s.Leases-len(s.Holders), "holder"); err != nil || !resting {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "\nResting permits are kept back by --lock-delay or --hold-at-least until they expire; signalbox release %s --all frees them.\n",
		printable(s.Resource))
	return err
}

func (a *app) printQueue(s signalbox.State) error {
	if len(s.Queue) == 0 {
		return nil
	}
	t := newTable(">PLACE", "WAITER", "ID", ">WEIGHT", ">FOR")
	for i, w := range s.Queue {
		t.add(ordinal(i+1), who(w.Owner, w.Label), w.ID, permits(w.Weight), span(s.Now.Sub(w.Since)))
	}
	fmt.Fprintln(a.stdout)
	if err := t.fit(a.stdout, "WAITER").print(a.stdout); err != nil {
		return err
	}
	return a.printRest(s.Waiters-len(s.Queue), "waiter")
}

func (a *app) printRest(n int, what string) error {
	if n <= 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "… and %s more\n", count(n, what))
	return err
}
