package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

// Waiting for others: `barrier` until all are there, `latch` until all are done.

func (a *app) barrierCommand() *cobra.Command {
	var p waitFlags
	parties := 0
	cmd := &cobra.Command{
		Use: "barrier --parties N [flags] NAME", Short: "Wait until so many are here, and go on together", Args: exactly("NAME"),
		Long: `Arrive at a barrier, and wait until N have: then all go on at once, and the barrier
begins anew for the next round. One that gives up (a signal, --wait) or dies while it
waits is not counted any more.

JSON: {resource, parties, round}; round is the same for all that went on together, and
larger than those before.

Exit status: 0, or
  64   the command line makes no sense
  69   the server cannot be reached
  75   the others did not come within --wait (--conflict-exit-code has another)
  128  plus the number of the signal that came while it waited`,
		Example: `  ./load-part.sh "$PART" && signalbox barrier --parties 3 loaded && ./join-part.sh "$PART"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.checkParties(cmd, parties); err != nil {
				return err
			}
			return a.barrier(cmd.Context(), &p, args[0], parties)
		},
		DisableFlagsInUseLine: true,
	}
	p.define(cmd.Flags())
	cmd.Flags().IntVar(&parties, "parties", 0, "how many must come")
	return cmd
}

func (p *waitFlags) checkParties(cmd *cobra.Command, parties int) error {
	if parties < 1 || parties > signalbox.MaxParties {
		return usage("--parties must be 1 to %d, not %d", signalbox.MaxParties, parties)
	}
	return p.check(cmd.Flags().Changed)
}

func (a *app) barrier(ctx context.Context, p *waitFlags, name string, parties int) error {
	a.say(p, "waiting for %s: until %d are here", printable(name), parties)
	var round int64
	err := a.inTurn(ctx, p, name, func(ctx context.Context, box *signalbox.Box) (err error) {
		round, err = box.Barrier(name, parties).Wait(ctx)
		return p.overdue(err, name, fmt.Sprintf("not all %d were here", parties))
	})
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(map[string]any{"resource": name, "parties": parties, "round": round})
	}
	_, err = fmt.Fprintf(a.stdout, "%s: all %d are here, round %d\n", printable(name), parties, round)
	return err
}

// say tells what is waited for, unless --quiet.
func (a *app) say(p *waitFlags, format string, args ...any) {
	if !p.quiet {
		fmt.Fprintf(a.stderr, "signalbox: "+format+"\n", args...)
	}
}

// overdue refuses when the time of --wait is over.
func (p *waitFlags) overdue(err error, name, what string) error {
	if errors.Is(err, context.DeadlineExceeded) && !p.until.IsZero() {
		return p.refused("%s: %s within %v; give more time with --wait", printable(name), what, p.wait)
	}
	return err
}

func (a *app) latchCommand() *cobra.Command {
	var p waitFlags
	parties, party := 0, ""
	cmd := &cobra.Command{
		Use: "latch --parties N [flags] NAME", Short: "Wait until so many are done, or say that one is", Args: exactly("NAME"),
		Long: `Wait until N parties have said that they are done. Each says so with --done and a word
of its own, such as the number of its share of the work; who says it twice counts once,
so a step that is run again does no harm. Once open, a latch stays open; it is forgotten
a day after the last word, so a name is for one use.

With --no-wait it looks: exit status 75 if somebody is missing.

JSON: {resource, parties, missing}.

Exit status: 0, or
  64   the command line makes no sense
  69   the server cannot be reached
  75   somebody is missing, at once or after --wait (--conflict-exit-code has another)
  128  plus the number of the signal that came while it waited`,
		Example: `  signalbox latch --parties 3 --done "$PART" import:2024-05-01     # in each of three jobs
  signalbox latch --parties 3 import:2024-05-01 && ./publish.sh     # in the job that comes after them`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.checkParties(cmd, parties); err != nil {
				return err
			}
			if cmd.Flags().Changed("done") && party == "" {
				return usage("--done must be a word that tells this party from the others")
			}
			return a.latch(cmd.Context(), &p, args[0], parties, party)
		},
		DisableFlagsInUseLine: true,
	}
	p.define(cmd.Flags())
	p.defineNoWait(cmd.Flags())
	cmd.Flags().IntVar(&parties, "parties", 0, "how many there are")
	cmd.Flags().StringVar(&party, "done", "", "say that this party is done, and do not wait")
	return cmd
}

func (a *app) latch(ctx context.Context, p *waitFlags, name string, parties int, party string) error {
	missing := 0
	err := a.inTurn(ctx, p, name, func(ctx context.Context, box *signalbox.Box) (err error) {
		latch := box.Latch(name, parties)
		if party != "" {
			missing, err = latch.CountDown(ctx, party)
			return err
		}
		if missing, err = latch.Missing(ctx); err == nil && missing > 0 {
			if p.noWait {
				return p.refused("%s: %d of %d are missing; leave out --no-wait to wait", printable(name), missing, parties)
			}
			a.say(p, "waiting for %s: %d of %d are missing", printable(name), missing, parties)
			if err = latch.Await(ctx); err == nil {
				missing = 0
			}
		}
		return p.overdue(err, name, "not all were done")
	})
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(map[string]any{"resource": name, "parties": parties, "missing": missing})
	case missing > 0:
		_, err = fmt.Fprintf(a.stdout, "%s: %d of %d are missing\n", printable(name), missing, parties)
	default:
		_, err = fmt.Fprintf(a.stdout, "%s: all %d are done\n", printable(name), parties)
	}
	return err
}
