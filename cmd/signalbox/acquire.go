package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// A lease that nobody renews, for the steps of a pipeline: `acquire --detach` takes it and leaves it to its ttl, and
// `release --token` gives it back. There is no keeper in the background: one would hold on for ever when the pipeline is
// given up, and runners end what a step leaves behind.

// everybody is more holders than there are.
const everybody = 1_000_000

func (a *app) acquireCommand() *cobra.Command {
	var f terms
	detach := false
	cmd := &cobra.Command{
		Use: "acquire --detach --ttl D [flags] NAME", Short: "Take a permit, and leave it for later steps of a pipeline", Args: exactly("NAME"),
		Long: `Take permits of a resource, W of N, one of one if nothing else is said, print the
fencing token, and end. The permits stay taken until the first of
  signalbox release NAME --token TOKEN   which a later step calls, on any machine
  --ttl                                  counted from the end of this command: nobody renews
  an operator                            signalbox release NAME ID, or --all

Nothing ends your steps when the lease does: give a --ttl that is longer than all of
them take, and have what they write to check the token where two writers would do harm.
Where one process does all the work, signalbox run is safer: it renews, and ends the
command with the lease.

It waits as signalbox run does. Without --url the lease is in the private local engine,
and is gone if that is ended.

JSON: {resource, token, id, expires}; expires by the clock of this machine.

Exit status: 0, or
  64   the command line makes no sense
  69   the server cannot be reached, or too few replicas have the grant
  75   no permit: refused, not granted in time, or sent away by an operator
       (--conflict-exit-code has another)
  76   the lease was lost before this command ended
  128  plus the number of the signal that came while it waited`,
		Example: `  token=$(signalbox acquire --detach --ttl 1h --label "$CI_JOB_URL" staging)
  ./deploy.sh && ./test.sh
  signalbox release staging --token "$token"`,
		DisableFlagsInUseLine: true, ValidArgsFunction: a.completed(1, nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !detach:
				return usage("give --detach: nothing renews the lease; signalbox lock %s holds it until a signal comes", printable(args[0]))
			case !cmd.Flags().Changed("ttl"):
				return usage("--ttl says when the lease ends if nobody releases it, such as --ttl 1h")
			}
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return a.acquire(cmd.Context(), &f, args[0])
		},
	}
	f.define(cmd.Flags())
	f.defineShare(cmd.Flags())
	cmd.Flags().Lookup("ttl").Usage = "when the lease ends if nobody releases it"
	cmd.Flags().Lookup("ttl").DefValue = ""
	cmd.Flags().BoolVar(&detach, "detach", false, "leave the lease when this command ends, without anybody who renews it")
	return cmd
}

// acquire takes a lease and leaves it. Its box is not closed, which would give the lease back: it ends with the process.
func (a *app) acquire(ctx context.Context, f *terms, name string) error {
	signals, end := hear()
	g, err := a.obtain(ctx, f, []string{name}, signals)
	end() // from here on a signal ends the process, and the ttl the lease
	if err != nil {
		return err
	}
	lease := g.leases[0]
	var expires time.Time
	err = a.onLedger(ctx, func(l *ledger.Ledger) error {
		resource, err := ledger.NewResource(name)
		if err != nil {
			return err
		}
		// After a wait the lease is short until it is renewed, and otherwise the ttl began with the grant.
		expires = time.Now().Add(f.ttl)
		renewal := ledger.Renewal{ID: lease.ID(), TTL: f.ttl, Cool: f.lockDelay}
		result := l.RenewAll(ctx, []ledger.RenewRequest{{Resource: resource, Leases: []ledger.Renewal{renewal}}})[0]
		switch {
		case result.Err != nil:
			return result.Err
		case result.Holds[0] == ledger.Forced:
			return g.lost(signalbox.ErrForced, "")
		case result.Holds[0] == ledger.Lost:
			return g.lost(signalbox.ErrLeaseLost, "")
		}
		return nil
	})
	if err == nil {
		err = a.printDetached(lease, expires)
	}
	if err != nil {
		g.release(ctx)
		return err
	}
	g.unmark()
	return nil
}

func (a *app) printDetached(lease *signalbox.Lease, expires time.Time) error {
	if a.json {
		return a.printJSON(struct {
			grantJSON
			Expires time.Time `json:"expires"`
		}{grantJSON{lease.Resource(), lease.Token(), lease.ID()}, expires.UTC()})
	}
	_, err := fmt.Fprintln(a.stdout, lease.Token())
	return err
}

// onLedger does something with the ledger itself, for what no process holds.
func (a *app) onLedger(ctx context.Context, do func(*ledger.Ledger) error) error {
	return a.dialLedger(ctx, true, do)
}

// lookLedger is onLedger for what only looks: of a private engine that does not run it sees nothing.
func (a *app) lookLedger(ctx context.Context, do func(*ledger.Ledger) error) error {
	if err := a.dialLedger(ctx, false, do); !errors.Is(err, errNotRunning) {
		return err
	}
	return nil
}

func (a *app) dialLedger(ctx context.Context, start bool, do func(*ledger.Ledger) error) error {
	var done error
	_, err := connect(ctx, a, start, func(url string) (struct{}, error) {
		client, _, err := address.Dial(url)
		if err != nil {
			return struct{}{}, fmt.Errorf("open: %w: %w", signalbox.ErrInvalid, err)
		}
		done = errors.Join(do(ledger.New(goredis.New(client))), client.Close())
		return struct{}{}, nil
	})
	return errors.Join(err, done)
}

// releaseToken gives back the lease that has a token.
func (a *app) releaseToken(ctx context.Context, name string, token int64) error {
	resource, err := ledger.NewResource(name)
	if err != nil {
		return err
	}
	hold := ledger.Lost
	err = a.onLedger(ctx, func(l *ledger.Ledger) error {
		state, err := l.Inspect(ctx, resource, everybody)
		if err != nil {
			return err
		}
		for _, holder := range state.Holders {
			if holder.Token == token && !holder.Resting {
				hold, err = l.Release(ctx, resource, holder.ID)
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case hold != ledger.Held:
		return &exitError{exitLost, fmt.Errorf("%s: no lease has the token %d any more: its ttl was over, or it was ended before; see signalbox inspect %s",
			printable(name), token, printable(name))}
	case a.json:
		return a.printJSON(map[string]any{"resource": name, "ended": 1})
	}
	_, err = fmt.Fprintf(a.stdout, "%s: released\n", printable(name))
	return err
}
