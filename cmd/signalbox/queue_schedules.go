package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
)

// scheduleJSON is an element of the output of `queue schedules --json`.
type scheduleJSON struct {
	Name   string    `json:"name"`
	Kind   string    `json:"kind"`
	When   string    `json:"when"`
	Zone   string    `json:"zone"`
	Missed string    `json:"missed"`
	Next   time.Time `json:"next"`
}

func (a *app) queueSchedulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedules", Short: "List schedules with their next ticks; set and delete them", Args: exactly(),
		Long: `List the schedules of a queue, those that tick next in front. At every tick a job is
made, by whichever worker sees it first.

JSON: a list of {name, kind, when, zone, missed, next}.`,
		Example: `  signalbox queue schedules
  signalbox queue schedules set report mail.send '{"to": "x@example.org"}' --cron '0 9 * * 1-5' --zone Europe/Berlin
  signalbox queue schedules delete report`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.lookQueue(cmd.Context(), func(q *queue.Queue) error {
				var schedules []queue.Scheduled
				if q != nil {
					var err error
					if schedules, err = q.Schedules(cmd.Context()); err != nil {
						return err
					}
				}
				return a.printSchedules(schedules)
			})
		},
	}
	cmd.AddCommand(a.scheduleSetCommand(), a.scheduleDeleteCommand())
	return cmd
}

func (a *app) printSchedules(schedules []queue.Scheduled) error {
	if a.json {
		out := []scheduleJSON{}
		for _, s := range schedules {
			out = append(out, scheduleJSON{s.Name, s.Kind, s.Timing.Spec, s.Timing.Zone, string(s.Missed), s.Next})
		}
		return a.printJSON(out)
	}
	if len(schedules) == 0 {
		_, err := fmt.Fprintf(a.stdout, "No schedules in queue %s. To set one: signalbox queue schedules set NAME KIND --every 10m\n", printable(a.queue))
		return err
	}
	t := newTable("NAME", "KIND", "WHEN", "ZONE", "MISSED", "NEXT", ">IN")
	now := time.Now()
	for _, s := range schedules {
		in := "now"
		if s.Next.After(now) {
			in = span(s.Next.Sub(now))
		}
		t.add(printable(s.Name), printable(s.Kind), printable(s.Timing.Spec), printable(s.Timing.Zone), string(s.Missed),
			s.Next.Local().Format("2006-01-02 15:04:05"), in)
	}
	return t.print(a.stdout)
}

func (a *app) scheduleSetCommand() *cobra.Command {
	var f pushFlags
	var cron, zone, missed string
	var every time.Duration
	cmd := &cobra.Command{
		Use: "set NAME KIND [ARGUMENTS]", Short: "Have a job made at every tick",
		Long: `Have a job of a kind made at every tick: every so often, or at times of the day. Set
again, it holds anew from now on; if nothing is different, nothing is changed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 2 || len(args) > 3:
				return usage("%s takes NAME, KIND and perhaps ARGUMENTS, got %d", cmd.CommandPath(), len(args))
			case (cron == "") == (every == 0):
				return usage("when? one of --cron and --every")
			case zone != "" && cron == "":
				return usage("--zone is that of --cron")
			case len(args) == 2:
				args = append(args, "null")
			}
			if !json.Valid([]byte(args[2])) {
				return usage("the arguments must be JSON, not %s; a text stands in quotes: '\"text\"'", printable(args[2]))
			}
			timing := queue.Every(every)
			if cron != "" {
				timing = queue.Cron(cron, zone)
			}
			job := queue.Define[json.RawMessage, json.RawMessage](args[1], f.options()...).With(json.RawMessage(args[2]))
			return a.withQueue(cmd.Context(), func(q *queue.Queue) error {
				if err := q.Schedule(cmd.Context(), args[0], timing, queue.MissedTicks(missed), job); err != nil {
					return err
				}
				schedules, err := q.Schedules(cmd.Context())
				if err != nil {
					return err
				}
				for _, s := range schedules {
					if s.Name == args[0] {
						return a.printSchedules([]queue.Scheduled{s})
					}
				}
				return nil
			})
		},
	}
	f.defineTerms(cmd.Flags())
	cmd.Flags().StringVar(&cron, "cron", "", "minute, hour, day of the month, month, day of the week, as in cron; or @daily and its like")
	cmd.Flags().StringVar(&zone, "zone", "", "time zone of --cron, as Europe/Berlin (default: UTC)")
	cmd.Flags().DurationVar(&every, "every", 0, "how often")
	cmd.Flags().StringVar(&missed, "missed", string(queue.RunLast), "what becomes of ticks at which no worker was there: last, skip or each makes a job")
	return cmd
}

func (a *app) scheduleDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "End a schedule; the jobs that it has made stay", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withQueue(cmd.Context(), func(q *queue.Queue) error {
				if err := q.Unschedule(cmd.Context(), args[0]); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"deleted": args[0]})
				}
				_, err := fmt.Fprintf(a.stdout, "schedule %s of queue %s is deleted\n", printable(args[0]), printable(a.queue))
				return err
			})
		},
	}
}
