package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue/history"
)

// Exit statuses. Those of a command under `run` are passed on as they are.
const (
	exitFailure     = 1
	exitUsage       = 64 // EX_USAGE: the command line makes no sense
	exitUnavailable = 69 // EX_UNAVAILABLE: no server, or one that does not serve us
	exitBusy        = 75 // EX_TEMPFAIL: refused, or not granted in time
	exitLost        = 76 // the lease was lost, and the command ended for it
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignal      = 128 // plus the signal's number
)

// exitError is an error with the status that the program ends with. Without a
// text nothing more is said: it has been said already.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// errInterrupted: Ctrl-C on the terminal ended the command under `run`. The
// person who pressed it knows.
var errInterrupted = errors.New("")

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// app is what all subcommands share.
type app struct {
	url     string
	socket  string   // of the private local engine, "" if the flag is not given
	private *private // that the box is on, nil with a URL
	queue   string   // the name of one, of the commands under queue
	json    bool
	events  bool // are told on stderr, instead of words
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
}

// Main runs the program and returns its exit status.
func Main(ctx context.Context, args []string) int {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	redis.SetLogger(silence{}) // what matters comes back as an error
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	switch text := err.Error(); {
	case text == "":
	case a.json:
		code := status(err)
		a.line(eventJSON{Error: text, Status: &code})
	default:
		fmt.Fprintln(a.stderr, "signalbox:", text)
	}
	if errors.Is(err, errInterrupted) {
		passInterruptOn()
	}
	return status(err)
}

// status is the exit status of an error.
func status(err error) int {
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.status
	case errors.Is(err, signalbox.ErrInvalid), errors.Is(err, signalbox.ErrTooHeavy):
		return exitUsage
	case errors.Is(err, signalbox.ErrUnavailable), errors.Is(err, signalbox.ErrUnsupportedServer), errors.Is(err, history.ErrUnavailable):
		return exitUnavailable
	}
	return exitFailure
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "signalbox",
		Short: "Locks, fair semaphores and task queues across processes and machines",
		Long: `Locks, fair semaphores and task queues across processes and machines: at most N
at a time, in the order of arrival, on your Redis or Valkey or with nothing installed.

Without --url the commands of one user on one machine meet in a private local engine,
which starts on demand and ends itself when nobody needs it. It is found by its folder:
$SIGNALBOX_STATE, else $XDG_STATE_HOME/signalbox, else ~/.local/state/signalbox. So
commands with another HOME or XDG_STATE_HOME (cron, sudo, containers) do not meet it,
and do not exclude each other: give all of them the same --socket, or $SIGNALBOX_SOCKET,
in a folder that only you can write. The engine keeps everything in memory.

Leave that folder alone while commands run: to begin anew, signalbox serve --stop. If
it is removed or renamed, the engine, which looks every 0.1 s, ends, and with it every
lease; commands under one are killed at the same pace. Until then a command that comes
in meanwhile may hold what they hold: check the fencing token where that matters.`,
		Example: `  signalbox run --limit 2 downloads -- wget https://example.org/big
  signalbox run --no-wait nightly-report -- ./report.sh
  signalbox elect scheduler -- ./scheduler
  signalbox ls
  signalbox queue push crawl '"https://example.org"' --key example.org
  signalbox queue work crawl --slots 4 -- ./crawl.sh`,
		Version:      versionOf(),
		SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q; see signalbox help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) {
			kinds := map[string]string{"int": "a whole number", "int64": "a whole number", "duration": "a duration such as 90s or 5m", "stringToInt": "names with whole numbers such as call=1,chat=3"}
			kind := cmp.Or(kinds[invalid.GetFlag().Value.Type()], "another value")
			return usage("--%s must be %s, not %q; see %s --help", invalid.GetFlag().Name, kind, invalid.GetValue(), cmd.CommandPath())
		}
		return usage("%w; see %s --help", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "server that keeps the permits (default $SIGNALBOX_URL, else the private local engine):\n"+
		"redis://, rediss:// (TLS), unix://, redis+sentinel://, redis+cluster://")
	flags.StringVar(&a.socket, "socket", "", "Unix socket by which commands meet in the same private local engine\n"+
		"(default $SIGNALBOX_SOCKET, else one in the state folder; see signalbox help)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		switch changed := cmd.Flags().Changed; {
		case changed("socket") && a.socket == "":
			return usage("--socket must name a socket, such as --socket ~/signalbox/engine.sock")
		case changed("socket") && a.url != "":
			return usage("--socket and --url exclude each other: a server behind a socket is --url unix://PATH")
		}
		return nil
	}
	flags.BoolVar(&a.json, "json", false, "print JSON for programs")
	root.AddCommand(a.runCommand(), a.lockCommand(), a.electCommand(), a.limitCommand(), a.barrierCommand(), a.latchCommand(), a.acquireCommand(), a.whyCommand(),
		a.lsCommand(), a.inspectCommand(), a.resizeCommand(), a.releaseCommand(), a.serveCommand(), a.versionCommand(),
		a.functionsCommand(), a.watchCommand(), a.deadlocksCommand(), a.topCommand(), a.checkAOFCommand(), a.checkRDBCommand(),
		a.benchCommand(), a.raceCommand(), a.backupCommand(), a.restoreCommand(), a.queueCommand(), a.replicasCommand(), a.doctorCommand(), a.moveCommand(), a.manualCommand())
	return root
}

// server is the URL that was asked for, "" for the private local engine.
func (a *app) server() string {
	if a.url != "" || a.socket != "" {
		return a.url
	}
	return os.Getenv("SIGNALBOX_URL")
}

// open connects to the server that was asked for. The private local engine is
// started if it does not run, unless start is false, when errNotRunning is
// returned.
func (a *app) open(ctx context.Context, start bool) (*signalbox.Box, error) {
	return connect(ctx, a, start, func(url string) (*signalbox.Box, error) {
		return signalbox.Open(ctx, url, signalbox.Observe(a.beWary))
	})
}

// connect opens what is behind the URL of the server that was asked for.
func connect[T any](ctx context.Context, a *app, start bool, open func(url string) (T, error)) (opened T, err error) {
	if url := a.server(); url != "" {
		opened, err = open(url)
		return opened, unavailable(err)
	}
	private, err := a.findPrivate()
	if err != nil {
		return opened, err
	}
	a.private = private
	for again := true; ; again = false {
		if start {
			err = private.start(ctx)
		} else {
			err = private.ping(ctx)
		}
		if err != nil {
			return opened, err
		}
		opened, err = open(private.url())
		// An idle engine may have ended itself between the two.
		if err == nil || !again || ctx.Err() != nil {
			return opened, unavailable(err)
		}
	}
}

// beWary says what a server is not to be relied on for.
func (a *app) beWary(seen signalbox.Observation) {
	if seen.What == signalbox.Warned {
		a.warn(seen.Err.Error())
	}
}

// unavailable gives an error of opening its exit status.
func unavailable(err error) error {
	if err == nil || errors.Is(err, signalbox.ErrInvalid) {
		return err
	}
	return &exitError{exitUnavailable, err}
}

// with opens a box, calls do, and closes it.
func (a *app) with(ctx context.Context, do func(box *signalbox.Box) error) error {
	box, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	return errors.Join(do(box), box.Close())
}

// look is with for what only looks: a private local engine that does not run
// has nothing to show, and is not started. Then do gets nil.
func (a *app) look(ctx context.Context, do func(box *signalbox.Box) error) error {
	box, err := a.open(ctx, false)
	if errors.Is(err, errNotRunning) {
		return do(nil)
	}
	if err != nil {
		return err
	}
	return errors.Join(do(box), box.Close())
}

// silence is the log of the Redis client.
type silence struct{}

// Printf drops a message.
func (silence) Printf(context.Context, string, ...any) {}

// exactly is a check of the number of arguments that says what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		takes := strings.Join(names, " and ")
		if len(names) == 0 {
			takes = "no arguments (a server is named by --url, a queue by --queue)"
		}
		return usage("%s takes %s, got %d; see %s --help", cmd.CommandPath(), takes, len(args), cmd.CommandPath())
	}
}
