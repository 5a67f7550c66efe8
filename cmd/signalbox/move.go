package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/move"
)

// moveFlags are what `move` is told.
type moveFlags struct {
	from, to   string
	announce   string
	undo       bool
	options    move.Options
	noAnnounce bool
}

func (a *app) moveCommand() *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use: "move --from URL --to URL|DIR", Short: "Take all data of a live server to another one, leases and all", Args: exactly(),
		Long: `Take all data of a live server to another one while it is used, and its callers after it.
The target is made a replica of the source where that is possible; elsewhere (managed
services, --match) it is written to. Then both are compared, writes are held up for a
moment, and the source is closed: it answers READONLY from then on, and keeps what it
had. Programs that were given the source's URL find the new one there, and go on:
holders keep their leases, waiters their places, tokens increase. See docs/move.md.

With a folder as the target its engine runs in this process until all is there; serve it
afterwards with signalbox serve --dir DIR.

Interrupted before the cut-over, nothing has happened: the source is as it was, the target
empty. After kill -9 the same command goes on or begins anew, and --undo empties the target.

JSON: a line for each step: {step, by, keys, of, bytes, lag_bytes, seconds, pause_ms,
repaired, text}; step is copy, follow, check, cutover, note or done.`,
		Example: `  signalbox move --from redis://127.0.0.1:7379 --to redis://10.0.0.5:6379
  signalbox move --from redis://10.0.0.5:6379 --to ./signalbox-data
  signalbox move --from redis://shared:6379 --to redis://10.0.0.9:6379 --match signalbox:* --leave-open`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.noAnnounce = cmd.Flags().Changed("announce") && f.announce == ""
			ctx, cancel := signal.NotifyContext(cmd.Context(), terminationSignals...)
			defer cancel()
			return a.move(ctx, f)
		},
	}
	flags, o := cmd.Flags(), &f.options
	flags.StringVar(&f.from, "from", "", "the server that has the data: redis://, rediss://, unix://; with TLS, the\ncertificates to trust and to show are ?cacert=FILE&cert=FILE&key=FILE")
	flags.StringVar(&f.to, "to", "", "the server that is to have it, or a folder for an engine")
	flags.StringVar(&o.Match, "match", "", "move only keys that begin so: PREFIX*, such as signalbox:*")
	flags.BoolVar(&o.LeaveOpen, "leave-open", false, "with --match: let the source go on taking writes, for its other users;\nthe users of the keys must have been stopped before")
	flags.BoolVarP(&o.Replace, "replace", "y", false, "delete what the target has")
	flags.StringVar(&o.By, "by", move.ByAny, "how to copy: replicaof, restore, or auto")
	flags.StringVar(&o.Check, "check", move.CheckAuto, "what to compare: all, sample, none, or auto: all up to a million keys")
	flags.StringVar(&f.announce, "announce", "", "URL that callers are told (default --to without user and password;\nempty: none, and callers are answered READONLY)")
	flags.DurationVar(&o.Pause, "pause", 2*time.Second, "how long writes may be held up at most")
	flags.DurationVar(&o.MaxSkew, "max-skew", 100*time.Millisecond, "by how much the servers' clocks may differ")
	flags.BoolVar(&f.undo, "undo", false, "empty the target of a move that was killed")
	return cmd
}

// check refuses what makes no sense.
func (f *moveFlags) check(a *app) error {
	o := &f.options
	switch {
	case a.url != "" || a.socket != "":
		return usage("move takes --from and --to in place of --url and --socket")
	case f.from == "" || f.to == "":
		return usage("move needs --from URL and --to URL or DIR; see signalbox move --help")
	case o.By != move.ByAny && o.By != move.ByReplicaOf && o.By != move.ByRestore:
		return usage("--by must be auto, replicaof or restore, not %q", o.By)
	case o.Check != move.CheckAuto && o.Check != move.CheckAll && o.Check != move.CheckSample && o.Check != move.CheckNone:
		return usage("--check must be auto, all, sample or none, not %q", o.Check)
	case o.Pause < 10*time.Millisecond || o.Pause > time.Minute:
		return usage("--pause must be between 10ms and 1m, not %v", o.Pause)
	case o.MaxSkew < 0:
		return usage("--max-skew must not be negative, but is %v", o.MaxSkew)
	case o.LeaveOpen && o.Match == "":
		return usage("--leave-open goes with --match: of a source that is moved as a whole nothing should be left open")
	case o.Match != "" && o.By == move.ByReplicaOf:
		return usage("--match goes with --by restore: a replica has everything")
	}
	if o.Match != "" {
		prefix, ok := strings.CutSuffix(o.Match, "*")
		if !ok || prefix == "" || strings.ContainsAny(prefix, `*?[]\`) {
			return usage("--match must be a beginning and one *, such as signalbox:*, not %q", o.Match)
		}
		o.Match = prefix
	}
	return nil
}

func (a *app) move(ctx context.Context, f moveFlags) (err error) {
	if err := f.check(a); err != nil {
		return err
	}
	o := &f.options
	if o.From.Client, o.From.Place, err = address.One(f.from); err != nil {
		return usage("--from: %w", err)
	}
	defer func() { err = errors.Join(err, o.From.Client.Close()) }()
	end, err := a.openTarget(&f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if o.From.Client.Options().DB != 0 || o.To.Client.Options().DB != 0 {
		return usage("a move takes all databases: leave the number out of the URL")
	}
	o.From.Client, o.To.Client = patient(o.From.Client), patient(o.To.Client)
	if f.undo {
		if err := move.Undo(ctx, *o); err != nil {
			return moveStatus(err)
		}
		_, err := fmt.Fprintf(a.stdout, "Undone: the target %s is empty, the source %s as it was\n", printable(o.To.Place), printable(o.From.Place))
		return err
	}
	return a.runMove(ctx, &f)
}

// patient makes a client wait for long answers: an emptied server of many keys takes its time.
func patient(client *redis.Client) *redis.Client {
	client.Options().ReadTimeout = time.Minute
	return client
}

// openTarget opens the server or the folder.
func (a *app) openTarget(f *moveFlags) (end func() error, err error) {
	o := &f.options
	if dir, ok := folderOf(f.to); ok {
		return a.openFolder(f, dir)
	}
	if o.To.Client, o.To.Place, err = address.One(f.to); err != nil {
		return nil, usage("--to: %w", err)
	}
	o.Announce, o.Meant = f.announce, f.announce != ""
	if o.Announce == "" && !f.noAnnounce {
		o.Announce = o.To.Place
	}
	return o.To.Client.Close, nil
}

// folderOf is the folder that a target means, if it is no URL of a server.
func folderOf(to string) (dir string, ok bool) {
	if path, ok := strings.CutPrefix(to, "file://"); ok {
		return path, true
	}
	return to, !strings.Contains(to, "://")
}

func (a *app) openFolder(f *moveFlags, dir string) (end func() error, err error) {
	o := &f.options
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	config, err := engine.ReadConfig("", "appendonly=yes", "appendfsync=always", "save=")
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(engine.Options{Dir: dir, Config: config, Log: a.logLine})
	if err != nil {
		return nil, notOpened(err, dir)
	}
	o.To.Client = redis.NewClient(&redis.Options{
		Addr: "engine", MaxRetries: -1, ContextTimeoutEnabled: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
	})
	o.To.Place, o.To.Local, o.Announce = dir, true, f.announce
	return func() error { return errors.Join(o.To.Client.Close(), e.Close()) }, nil
}

func (a *app) runMove(ctx context.Context, f *moveFlags) error {
	o := &f.options
	progress := a.newProgress()
	var last, cut move.Event
	o.Tell = func(e move.Event) {
		switch {
		case a.json:
			line, err := json.Marshal(e)
			if err == nil {
				fmt.Fprintf(a.stdout, "%s\n", line)
			}
		case e.Step == move.StepNote:
			progress.clear()
			fmt.Fprintf(a.stderr, "signalbox: %s\n", printable(e.Text))
		case e.Step == move.StepCutOver:
			cut = e
		default:
			progress.say(func() string { return moveProgress(last, e) })
		}
		if e.Step != last.Step || e.Seconds-last.Seconds > 1 {
			last = e
		}
	}
	err := move.Run(ctx, *o)
	progress.clear()
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("the move was interrupted, the source is as it was: %w", err)
	case err != nil || a.json:
		return moveStatus(err)
	}
	return a.printMoved(f, cut)
}

// moveStatus gives an error the status of the program.
func moveStatus(err error) error {
	if errors.Is(err, move.ErrRefused) {
		return &exitError{exitUsage, err}
	}
	return err
}

// moveProgress is a line of progress, with the rate since the last one.
func moveProgress(last, e move.Event) string {
	text := e.Step
	switch {
	case e.Step == move.StepFollow:
		return fmt.Sprintf("follow: %d bytes behind", e.LagBytes)
	case e.Keys > 0:
		text += fmt.Sprintf(": %d", e.Keys)
		if e.Of > 0 {
			text += fmt.Sprintf(" of %d", e.Of)
		}
		text += " keys"
		if d := e.Seconds - last.Seconds; d > 0 && last.Step == e.Step {
			text += fmt.Sprintf(", %.0f/s", float64(e.Keys-last.Keys)/d)
		}
	case e.Bytes > 0:
		text += fmt.Sprintf(": %.1f MB", float64(e.Bytes)/1e6)
		if d := e.Seconds - last.Seconds; d > 0 && last.Step == e.Step {
			text += fmt.Sprintf(", %.1f MB/s", float64(e.Bytes-last.Bytes)/1e6/d)
		}
	}
	return text
}

func (a *app) printMoved(f *moveFlags, cut move.Event) error {
	o := &f.options
	fmt.Fprintf(a.stdout, "Moved %s to %s in %s; writes waited for %.1f ms\n",
		printable(o.From.Place), printable(o.To.Place), span(time.Duration(cut.Seconds*float64(time.Second))), cut.PauseMs)
	switch {
	case o.LeaveOpen:
		fmt.Fprintf(a.stdout, "  the source still has what begins with %s; delete it there when nothing is missed\n", printable(o.Match))
	case o.Announce != "":
		fmt.Fprintf(a.stdout, "  the source answers READONLY; who was given its URL finds %s there, and goes on\n", printable(o.Announce))
	default:
		fmt.Fprintf(a.stdout, "  the source answers READONLY: give its callers the new URL\n")
	}
	if o.To.Local {
		fmt.Fprintf(a.stdout, "  signalbox serve --dir %s\n", printable(o.To.Place))
	}
	return nil
}
