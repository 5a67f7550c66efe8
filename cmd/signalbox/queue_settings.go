package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
)

func (a *app) queuePauseCommand(pause bool) *cobra.Command {
	var f scopeFlags
	verb, short := "resume", "Let jobs begin again"
	long := "End a pause of the queue, or of a kind or a key."
	done, change := "is not paused any more", queue.Resume
	if pause {
		verb, short = "pause", "Let no job begin"
		long = "Let no job of the queue begin, or of a kind or a key, until signalbox queue resume.\nWhat runs goes on, and jobs can be pushed."
		done, change = "is paused", queue.Pause
	}
	cmd := &cobra.Command{
		Use: verb + " [--kind KIND | --key KEY]", Short: short, Args: exactly(), Long: long + "\n\nJSON: {queue, scope, paused}.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			scope, err := f.scope()
			if err != nil {
				return err
			}
			return a.configure(cmd, change(scope), map[string]any{"scope": scope, "paused": pause}, a.about(scope)+" "+done)
		},
	}
	f.define(cmd.Flags(), false)
	return cmd
}

// configure makes a change, and says that it is made.
func (a *app) configure(cmd *cobra.Command, change queue.Change, out map[string]any, text string) error {
	return a.withQueue(cmd.Context(), func(q *queue.Queue) error {
		if err := q.Configure(cmd.Context(), change); err != nil {
			return err
		}
		if a.json {
			out["queue"] = a.queue
			return a.printJSON(out)
		}
		_, err := fmt.Fprintln(a.stdout, text)
		return err
	})
}

func (a *app) queueLimitCommand() *cobra.Command {
	var f scopeFlags
	var clearLimit bool
	cmd := &cobra.Command{
		Use: "limit [N | --clear]", Short: "Set how many jobs may run at once, or show what is set",
		Long: `Set how many jobs of the queue may run at once, or of a kind, a key, or each key. A
smaller limit ends nothing: nothing begins until what runs fits. Without N and
--clear it shows what is set.

JSON: {queue, scope, limit}; null without one. What is set: see signalbox queue stats.`,
		Example: `  signalbox queue limit 2 --each-key
  signalbox queue limit 10 --kind mail.send`,
		RunE: func(cmd *cobra.Command, args []string) error {
			scope, err := f.scope()
			switch {
			case err != nil:
				return err
			case clearLimit && len(args) > 0:
				return usage("N and --clear exclude each other")
			case clearLimit:
				return a.configure(cmd, queue.NoLimit(scope), map[string]any{"scope": scope, "limit": nil}, a.about(scope)+" has no limit")
			case len(args) == 0 && f == (scopeFlags{}):
				return a.showSettings(cmd)
			}
			if err := exactly("N")(cmd, args); err != nil {
				return err
			}
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 0 {
				return usage("the limit must be a number of at least 0, not %s", printable(args[0]))
			}
			return a.configure(cmd, queue.Limit(scope, n), map[string]any{"scope": scope, "limit": n},
				fmt.Sprintf("limit of %s is %d", a.about(scope), n))
		},
	}
	f.define(cmd.Flags(), true)
	cmd.Flags().BoolVar(&clearLimit, "clear", false, "take the limit away")
	return cmd
}

func (a *app) queueRateCommand() *cobra.Command {
	var f scopeFlags
	var clearRate bool
	var burst int
	cmd := &cobra.Command{
		Use: "rate [N/TIME | --clear]", Short: "Set how many jobs may begin in a time, or show what is set",
		Long: `Set how many jobs of the queue may begin in a time, or of a kind, a key, or each
key: 10/s, 100/m, 5/2s. They begin at equal distances, and after a quiet time up
to --burst of them at once. Without N/TIME and --clear it shows what is set.

JSON: {queue, scope, every_ns, burst}. What is set: see signalbox queue stats.`,
		Example: `  signalbox queue rate 1/s --each-key
  signalbox queue rate 100/m --kind mail.send --burst 10`,
		RunE: func(cmd *cobra.Command, args []string) error {
			scope, err := f.scope()
			switch {
			case err != nil:
				return err
			case clearRate && len(args) > 0:
				return usage("N/TIME and --clear exclude each other")
			case clearRate:
				return a.configure(cmd, queue.NoRate(scope), map[string]any{"scope": scope, "every_ns": 0, "burst": 0}, a.about(scope)+" has no rate")
			case len(args) == 0 && f == (scopeFlags{}):
				return a.showSettings(cmd)
			}
			if err := exactly("N/TIME")(cmd, args); err != nil {
				return err
			}
			every, err := parseRate(args[0])
			if err != nil {
				return err
			}
			return a.configure(cmd, queue.Rate(scope, every, burst), map[string]any{"scope": scope, "every_ns": every, "burst": burst},
				fmt.Sprintf("rate of %s is %s", a.about(scope), rateText(every, burst)))
		},
	}
	f.define(cmd.Flags(), true)
	cmd.Flags().BoolVar(&clearRate, "clear", false, "take the rate away")
	cmd.Flags().IntVar(&burst, "burst", 1, "how many may begin at once after a quiet time")
	return cmd
}

// parseRate reads 10/s, 100/m, 5/2s: how often one may begin.
func parseRate(text string) (time.Duration, error) {
	wrong := usage("the rate must be as 10/s, 100/m or 5/2s, not %s", printable(text))
	number, unit, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 {
		return 0, wrong
	}
	if unit != "" && !strings.ContainsAny(unit[:1], "0123456789") {
		unit = "1" + unit
	}
	d, err := time.ParseDuration(unit)
	if err != nil || d <= 0 {
		return 0, wrong
	}
	return d / time.Duration(n), nil
}

func rateText(every time.Duration, burst int) string {
	return fmt.Sprintf("one every %v, %d at once", every.Round(time.Microsecond), burst)
}

func (a *app) showSettings(cmd *cobra.Command) error {
	return a.lookQueue(cmd.Context(), func(q *queue.Queue) error {
		settings := &queue.Settings{Scopes: []queue.ScopeSetting{}}
		if q != nil {
			var err error
			if settings, err = q.Settings(cmd.Context()); err != nil {
				return err
			}
		}
		if a.json {
			return a.printJSON(settings)
		}
		if len(settings.Scopes) == 0 {
			_, err := fmt.Fprintf(a.stdout, "No limit is set for queue %s. To set one: signalbox queue limit N\n", printable(a.queue))
			return err
		}
		return a.printScopes(settings)
	})
}

func (a *app) printScopes(s *queue.Settings) error {
	t := newTable("OF", ">LIMIT", "RATE", "PAUSED")
	for _, of := range s.Scopes {
		limit, rate, paused := "", "", ""
		if of.Limit != nil {
			limit = strconv.Itoa(*of.Limit)
		}
		if of.Every > 0 {
			rate = rateText(of.Every, of.Burst)
		}
		if of.Paused {
			paused = "paused"
		}
		t.add(printable(of.Scope.String()), limit, rate, paused)
	}
	return t.print(a.stdout)
}
