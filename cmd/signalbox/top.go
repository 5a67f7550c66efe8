package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/signalbox-io/signalbox"
)

// A live table takes the other screen of the terminal, as editors do, so that what was there is there again afterwards.
// Each refresh is one write over the last, with the rest of each line erased behind it: nothing flickers. What ends or
// suspends it comes as a signal, and leaves the screen first.
//
// Each refresh lists every resource, and looks closer only at those that fit the screen.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// row is a line of `top`.
type row struct {
	Resource string            `json:"resource"`
	Limit    int               `json:"limit"`
	Operator bool              `json:"limit_by_operator"`
	Held     int               `json:"held"`
	Waiting  int               `json:"waiting"`
	Oldest   *signalbox.Holder `json:"oldest_holder"`

	state signalbox.State
}

func (a *app) topCommand() *cobra.Command {
	every := time.Second
	cmd := &cobra.Command{
		Use: "top [PATTERN...]", Short: "Show the busiest resources, live", ValidArgsFunction: a.completed(0, nil),
		Long: `Show the resources in a table that is refreshed every second, those with most
waiters first, with the lease that has been held for longest: all, or those whose
names match one of the patterns, as of signalbox ls. Ctrl-C ends it. When the output
is no terminal it is printed once.

It asks the server for all of its keys each time: on one with millions, give it
more time with --every.

JSON: once, a list of {resource, limit, limit_by_operator, held, waiting,
oldest_holder: {id, owner, label, weight, token, since, ttl_ns, expires}}.`,
		Example: `  signalbox top 'crawl:*'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < 100*time.Millisecond {
				return usage("--every must be at least 100ms, not %v", every)
			}
			if !a.json && isTerminal(a.stdout) && os.Getenv("TERM") != "dumb" {
				return a.with(cmd.Context(), func(box *signalbox.Box) error { return a.topLive(cmd.Context(), box, args, every) })
			}
			return a.look(cmd.Context(), func(box *signalbox.Box) error { return a.topOnce(cmd.Context(), box, args) })
		},
	}
	cmd.Flags().DurationVar(&every, "every", every, "time between two refreshes")
	return cmd
}

func (a *app) topOnce(ctx context.Context, box *signalbox.Box, patterns []string) error {
	rows := []row{}
	if box != nil {
		found, err := busiest(ctx, box, patterns, -1)
		switch {
		case errors.Is(err, signalbox.ErrWrongType):
			a.warn(err.Error())
		case err != nil:
			return err
		}
		rows = append(rows, found...)
	}
	if a.json {
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		return a.printList(nil, nil)
	}
	err := topTable(rows).print(a.stdout)
	if err == nil && slices.ContainsFunc(rows, func(r row) bool { return r.Operator }) {
		_, err = fmt.Fprintln(a.stdout, "\n"+operatorNote)
	}
	return err
}

// busiest lists the resources whose names match one of the patterns, all without any, and finds the oldest holder of the first
// `most` of them; of all if that is negative. An error that wraps ErrWrongType comes with all others.
func busiest(ctx context.Context, box *signalbox.Box, patterns []string, most int) ([]row, error) {
	states, foreign := box.List(ctx)
	if foreign != nil && !errors.Is(foreign, signalbox.ErrWrongType) {
		return nil, foreign
	}
	states = slices.DeleteFunc(states, func(s signalbox.State) bool { return !matches(patterns, s.Resource) })
	slices.SortStableFunc(states, func(a, b signalbox.State) int {
		return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(b.Leases, a.Leases))
	})
	rows := make([]row, 0, len(states))
	for i, state := range states {
		r := row{Resource: state.Resource, Limit: state.Limit, Operator: state.Operator > 0, Held: state.Held, Waiting: state.Waiters}
		if state.Leases > 0 && (most < 0 || i < most) {
			closer, err := box.Inspect(ctx, state.Resource)
			if errors.Is(err, signalbox.ErrWrongType) { // since then
				foreign = errors.Join(foreign, err)
				continue
			}
			if err != nil {
				return nil, err
			}
			state, r.Oldest = closer, oldest(&closer)
		}
		r.state = state
		rows = append(rows, r)
	}
	return rows, foreign
}

func topTable(rows []row) *table {
	t := newTable("RESOURCE", ">HELD", ">LIMIT", ">WAITING", ">FOR", "OLDEST HOLDER")
	for i := range rows {
		r := &rows[i]
		limit := permits(r.Limit)
		if r.Operator {
			limit += "*"
		}
		age, whose := "", ""
		if r.Oldest != nil {
			age, whose = span(r.state.Now.Sub(r.Oldest.Since)), holder(r.Oldest)
		}
		t.add(printable(r.Resource), permits(r.Held), limit, strconv.Itoa(r.Waiting), age, whose)
	}
	return t
}

// topLive refreshes the table until it is interrupted.
func (a *app) topLive(ctx context.Context, box *signalbox.Box, patterns []string, every time.Duration) error {
	signals, end := hear()
	defer end()
	tick := time.NewTicker(every)
	defer tick.Stop()
	fmt.Fprint(a.stdout, enterScreen)
	defer func() { fmt.Fprint(a.stdout, leaveScreen) }()
	var rows []row
	for {
		width, height := a.screen()
		found, err := a.within(ctx, every, box, patterns, height)
		if found != nil { // else the last ones stay
			rows = found
		}
		fmt.Fprint(a.stdout, frame(rows, err, time.Now(), width, height))
		select {
		case <-tick.C:
		case s := <-signals:
			switch {
			case ends(s):
				return nil
			case suspends(s):
				fmt.Fprint(a.stdout, leaveScreen)
				stops(s)
				fmt.Fprint(a.stdout, enterScreen)
			default: // the window has another size
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// within bounds a look at the server: a screen that stands still says nothing.
func (a *app) within(ctx context.Context, every time.Duration, box *signalbox.Box, patterns []string, most int) ([]row, error) {
	ctx, done := context.WithTimeout(ctx, max(every, lookWithin))
	defer done()
	return busiest(ctx, box, patterns, most)
}

// screen is the size of the terminal.
func (a *app) screen() (width, height int) {
	if file, ok := a.stdout.(*os.File); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// frame is what stands on a screen of that size: a summary, the table, and what is wrong if something is.
func frame(rows []row, trouble error, now time.Time, width, height int) string {
	heldBy, waiting := 0, 0
	for i := range rows {
		heldBy += rows[i].state.Leases
		waiting += rows[i].Waiting
	}
	lines := []string{
		fmt.Sprintf("signalbox top  %s  %s, %s, %s", now.Format("15:04:05"),
			count(len(rows), "resource"), count(heldBy, "lease"), count(waiting, "waiter")), "",
	}
	var text bytes.Buffer
	// It cannot fail.
	_ = topTable(rows).print(&text)
	lines = append(lines, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	if trouble != nil {
		lines[1] = "signalbox: " + trouble.Error()
	} else if len(rows) == 0 {
		lines = append(lines[:1], "", "Nothing is held and nobody waits.")
	}
	if len(lines) > height {
		lines = append(lines[:height-1], fmt.Sprintf("… and %s more", count(len(lines)-height+1, "resource")))
	}
	for i, line := range lines {
		lines[i] = cut(line, width)
	}
	return "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
}
