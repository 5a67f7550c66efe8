package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

func (a *app) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watch NAME...", Short: "Show what happens to resources, as it happens",
		ValidArgsFunction: a.completed(0, nil),
		Long: `Show what happens to resources, as it happens, until it is interrupted. Times are
the server's, shown in the local zone. What happens is one of

  snapshot  how things stand: at first, and when events may have been missed
  wait      somebody stands in the queue
  leave     a waiter gave up, died or was sent away; it had waited for AFTER
  grant     a lease begins, with its fencing token; it had waited for AFTER
  release   the holder gave the lease back; it had held it for AFTER
  expire    the lease was not renewed; likewise
  force     an operator ended the lease; likewise
  reweigh   a lease has another WEIGHT now
  resize    an operator has set the limit to WEIGHT, or cleared it with 0

JSON: one object a line, {what, resource, at, id, owner, label, weight, token,
after_ns, state}; state is there with a snapshot.`,
		Example: `  signalbox watch downloads
  signalbox watch --json deploy migrate | jq 'select(.what == "expire")'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("which resources? %s NAME...; signalbox ls lists them", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(box *signalbox.Box) error { return a.watch(cmd.Context(), box, args) })
		},
	}
}

// watch prints the events of all names until one of them cannot be watched any more.
func (a *app) watch(ctx context.Context, box *signalbox.Box, names []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := make(chan signalbox.Event)
	var watching sync.WaitGroup
	for _, name := range names {
		watching.Go(func() {
			for event, err := range box.Watch(ctx, name) {
				if err != nil {
					cancel(err) // the first is the one that counts
					return
				}
				select {
				case events <- event:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	defer watching.Wait()
	defer cancel(nil)
	show := a.eventLines(names)
	for {
		select {
		case event := <-events:
			if err := show(event); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// eventLines returns how an event is printed.
func (a *app) eventLines(names []string) func(signalbox.Event) error {
	if a.json {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		return func(event signalbox.Event) error { return encoder.Encode(event) }
	}
	l := newEventLog(names)
	begun := false
	return func(event signalbox.Event) error {
		if !begun {
			begun = true
			fmt.Fprintln(a.stdout, bold(a.stdout, l.events.line(l.events.heading, l.widths)))
		}
		line := l.line(event)
		if line == "" {
			return nil
		}
		_, err := fmt.Fprintln(a.stdout, line)
		return err
	}
}

// eventLog is a table that grows: lines come one at a time, so there is room for what is to come, and what fits no
// column comes last.
type eventLog struct {
	events    *table
	snapshots *table
	widths    []int
	known     map[string]string // by resource, how its last snapshot stood, if nothing has happened since
}

const eventTime = "15:04:05.000"

func newEventLog(names []string) *eventLog {
	l := &eventLog{
		events:    newTable("TIME", "WHAT", "RESOURCE", ">WEIGHT", ">TOKEN", ">AFTER", "WHO"),
		snapshots: newTable("TIME", "WHAT", "RESOURCE", "STATE"),
		widths:    []int{len(eventTime), len(signalbox.Snapshot), len("RESOURCE"), len("WEIGHT"), 16, len("59m59s"), 0},
		known:     make(map[string]string),
	}
	for _, name := range names {
		l.widths[2] = max(l.widths[2], utf8.RuneCountInString(printable(name)))
	}
	return l
}

// line is an event in a line, "" if it says nothing new: a watch begins with a snapshot, and again with one when its
// messages are sure to come.
func (l *eventLog) line(event signalbox.Event) string {
	cells := []string{event.At.Local().Format(eventTime), string(event.What), printable(event.Resource)}
	if s := event.State; s != nil {
		now := fmt.Sprint(s.Token, s.Limit, s.Held, s.Leases, s.Waiters)
		if l.known[event.Resource] == now {
			return ""
		}
		l.known[event.Resource] = now
		return l.snapshots.line(append(cells, describe(*s, event.At)), l.widths)
	}
	delete(l.known, event.Resource)
	token, after, whose := "", "", ""
	if event.Token > 0 {
		token = strconv.FormatInt(event.Token, 10)
	}
	if event.What != signalbox.LimitResized {
		whose = who(event.Owner, event.Label) + "  " + printable(event.ID)
		if event.What != signalbox.WaiterQueued {
			after = precisely(event.After)
		}
	}
	return l.events.line(append(cells, permits(event.Weight), token, after, whose), l.widths)
}

// precisely is span, but with tenths where they tell something.
func precisely(d time.Duration) string {
	if d >= time.Second && d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return span(d)
}
