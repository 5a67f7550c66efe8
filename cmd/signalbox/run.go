package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

const runHelp = `Run a command while holding permits of a resource: W of N, one of one if nothing
else is said. It waits for its turn, in the order of arrival, unless --no-wait is
given; --wait bounds the waiting. Who waits outlives a server that is away, and queues
again; --retry-for bounds that, and has a server that was never there tried again.

For cron: --quiet says nothing about waiting or being refused, and --conflict-exit-code 0
makes a refusal no failure. What is broken is still told, with its own exit status.

The command gets the environment, the standard streams, and
  SIGNALBOX_RESOURCE  the resource
  SIGNALBOX_TOKEN     the fencing token, larger than that of every grant before;
                      stores that check it refuse a holder that was overtaken
  SIGNALBOX_URL       the server, if one was given
  SIGNALBOX_SOCKET    the socket, if one was given

The command runs in a process group of its own. Signals sent to signalbox are
passed on to that group. The permits are released when the command itself ends;
what it left running in the background is neither waited for nor ended, and may
overlap the next holder: let the command wait for it (in a shell: wait).

The lease lives for --ttl and is renewed all the time. When it cannot be renewed,
the command gets SIGTERM at --kill-after before the lease ends, and SIGKILL at its
end, before somebody else can be granted the permits. When an operator ends the
lease, it gets SIGTERM at once and SIGKILL after --kill-after. Right after a
wait the lease is short until its first renewal, and so is the time after SIGTERM.

With --read and --write the resource is a read/write lock: any number of readers
at once, or one writer, first come, first served.

With several names it holds all of them or none, and waits in the queue of each
without holding any: two that name the same ones in another order do not block each
other. --limit and --weight are for each; SIGNALBOX_RESOURCE and SIGNALBOX_TOKEN
have a line for each. In a Redis Cluster the names must share a hash tag: a:{x} b:{x}.

With the command ends all that it has started. On Linux that includes daemons and
what left the process group (setsid, nohup): they are held in a cgroup of their own
where one can be made (cgroup v2, Linux 5.14, as root or in a delegated group), and
are otherwise found as descendants and killed until none is left. Elsewhere it is
the process group alone. Out of reach is what others start at the command's request:
systemd-run, at, containers, other machines; without a cgroup also what has become
another user (sudo).

If signalbox itself is killed with SIGKILL, Linux kills the command with it, unless
that has become another user; what the command has started runs on. Elsewhere the
command runs on as well. While signalbox is stopped (SIGSTOP) it ends nothing.
Against both the token helps.

Without --url the permits are in the private local engine of this user, in memory.
If it is killed, holders lose their leases, and those who wait start another and
queue again. See signalbox help for which commands meet there, and for what becomes
of them when its folder is removed.

Exit status: the command's, or 128 plus the number of the signal that ended it, or
  64   the command line makes no sense
  69   the server cannot be reached, or too few replicas have the grant
  75   no permit: refused, not granted in time, or sent away by an operator
       (--conflict-exit-code has another)
  76   the lease was lost, and the command was ended
  126  the command cannot be run
  127  the command was not found
` + eventsHelp

func (a *app) runCommand() *cobra.Command {
	var f terms
	cmd := &cobra.Command{
		Use: "run [flags] NAME… -- COMMAND [ARGUMENT…]", Short: "Run a command while holding a permit", Long: runHelp,
		Example: `  signalbox run --limit 2 downloads -- wget https://example.org/big
  signalbox run --no-wait nightly-report -- ./report.sh
  signalbox run --wait 10m --ttl 1m --label deploy production -- make deploy
  signalbox run --no-wait --hold-at-least 5m hourly-report -- ./report.sh   # on every machine, run once
  signalbox run --limit 3 --pace 1s crawl:example.org -- wget https://example.org/page
  signalbox run --read catalog -- ./export.sh
  signalbox run invoices customers -- ./merge.sh     # both, or neither
  signalbox run --no-wait --quiet --conflict-exit-code 0 nightly-report -- ./report.sh   # in a crontab`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, argv, err := runArguments(cmd, args)
			if err == nil {
				err = f.check(cmd, names)
			}
			if err != nil {
				return err
			}
			a.events = a.json
			return a.toldFailed(a.run(cmd.Context(), &f, names, argv))
		},
	}
	f.define(cmd.Flags())
	f.defineShare(cmd.Flags())
	f.defineCommand(cmd.Flags())
	return cmd
}

// runArguments takes the arguments apart: names, and a command behind --.
func runArguments(cmd *cobra.Command, args []string) (names, argv []string, err error) {
	dash, program := cmd.ArgsLenAtDash(), cmd.CommandPath()
	switch {
	case len(args) == 0:
		return nil, nil, usage("which resource, and which command? %s NAME -- COMMAND", program)
	case dash < 0 && len(args) == 1:
		return nil, nil, usage("%s: which command shall run? %s %s -- COMMAND", printable(args[0]), program, printable(args[0]))
	case dash < 0:
		return nil, nil, usage("put -- before the command: %s %s -- %s", program, printable(args[0]), printable(strings.Join(args[1:], " ")))
	case dash == 0:
		return nil, nil, usage("the name of the resource is missing before --: %s NAME -- COMMAND", program)
	case len(args) == dash:
		return nil, nil, usage("%s: the command is missing behind --", listed(args))
	}
	return args[:dash], args[dash:], nil
}

// run acquires, runs the command, and releases.
func (a *app) run(ctx context.Context, f *terms, names, argv []string) error {
	path, err := f.prepare(argv)
	if err != nil {
		return err // before the queue, not behind it
	}
	signals, end := hear()
	defer end()
	g, err := a.obtain(ctx, f, names, signals)
	if err != nil {
		return err
	}
	_, err = g.run(f, path, argv, signals)
	g.release(ctx)
	return err
}

// prepare finds the command, and labels the lease with it if nothing else is said.
func (f *terms) prepare(argv []string) (path string, err error) {
	f.label = cmp.Or(f.label, filepath.Base(argv[0]))
	return findCommand(argv[0])
}

// hear has the signals that are passed on sent to a channel until end is called, except those that the parent wants ignored
// (nohup, a shell's background job): the command then ignores them too.
func hear() (_ <-chan os.Signal, end func()) {
	signals := make(chan os.Signal, 16)
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

func findCommand(command string) (string, error) {
	path, err := exec.LookPath(command)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", &exitError{exitNotFound, fmt.Errorf("%s: command not found", printable(command))}
	}
	return "", cannotRun(command, err)
}

func cannotRun(command string, err error) error {
	var inner *exec.Error
	var path *os.PathError
	switch {
	case errors.As(err, &inner):
		err = inner.Err
	case errors.As(err, &path):
		err = path.Err
	}
	return &exitError{exitCannotRun, fmt.Errorf("%s: cannot be run: %w", printable(command), err)}
}

// run runs the command to its end, or to that of the lease. It reports whether a signal has asked the command to end.
func (g *grant) run(f *terms, path string, argv []string, signals <-chan os.Signal) (asked bool, _ error) {
	if cause := g.Err(); cause != nil { // this process may have been stopped since the grant
		return false, g.lost(cause, ", and the command was not started")
	}
	for _, lease := range g.leases {
		g.app.tell(eventJSON{Event: "acquired", Resource: lease.Resource(), Token: lease.Token(), ID: lease.ID()})
	}
	c, err := startChild(path, argv, append(os.Environ(), g.environment()...))
	if err != nil {
		return false, cannotRun(argv[0], err)
	}
	guard := newGuard(g, c, f.killAfter)
	status := guard.watch(signals)
	guard.close()
	interrupted := c.close()
	if guard.cause != nil {
		resource, reason, _ := g.loss(guard.cause)
		g.app.tell(eventJSON{Event: "lost", Time: guard.since, Resource: resource, Reason: reason})
	}
	g.app.tell(eventJSON{Event: "exited", Status: &status})
	switch {
	case guard.cause != nil:
	case status == 0:
		return guard.asked, nil
	case interrupted:
		return guard.asked, &exitError{status, errInterrupted}
	default:
		return guard.asked, &exitError{status, nil}
	}
	outcome := ", and the command was ended with it"
	if len(guard.left) > 0 {
		outcome += fmt.Sprintf(", but these of its processes could not be ended: %s", strings.Trim(fmt.Sprint(guard.left), "[]"))
	}
	return guard.asked, g.lost(guard.cause, outcome)
}

// whereabouts are the variables by which commands find the server that was given by a flag.
func (a *app) whereabouts() (environment []string) {
	if a.url != "" {
		environment = append(environment, "SIGNALBOX_URL="+a.url)
	}
	if a.socket != "" { // and no server, even if the environment names one
		environment = append(environment, "SIGNALBOX_URL=", "SIGNALBOX_SOCKET="+absolute(a.socket))
	}
	return environment
}

// absolute is a path that holds in other folders as well.
func absolute(path string) string {
	if found, err := filepath.Abs(path); err == nil {
		return found
	}
	return path
}
