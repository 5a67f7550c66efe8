package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
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
queue again. See signalbox help for which commands meet there.

Exit status: the command's, or 128 plus the number of the signal that ended it, or
  64   the command line makes no sense
  69   the server cannot be reached, or too few replicas have the grant
  75   no permit: refused, not granted in time, or sent away by an operator
       (--conflict-exit-code has another)
  76   the lease was lost, and the command was ended
  126  the command cannot be run
  127  the command was not found`

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run [flags] NAME -- COMMAND [ARGUMENT…]", Short: "Run a command while holding a permit", Long: runHelp,
		Example: `  signalbox run --limit 2 downloads -- wget https://example.org/big
  signalbox run --no-wait nightly-report -- ./report.sh
  signalbox run --wait 10m --ttl 1m --label deploy production -- make deploy
  signalbox run --no-wait --hold-at-least 5m hourly-report -- ./report.sh   # on every machine, run once
  signalbox run --limit 3 --pace 1s crawl:example.org -- wget https://example.org/page
  signalbox run --read catalog -- ./export.sh
  signalbox run --no-wait --quiet --conflict-exit-code 0 nightly-report -- ./report.sh   # in a crontab`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := runArguments(cmd, args)
			if err == nil {
				err = f.check(cmd)
			}
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), f, name, argv)
		},
	}
	f.define(cmd.Flags())
	return cmd
}

// runArguments takes the arguments apart: a name, and a command behind --.
func runArguments(cmd *cobra.Command, args []string) (name string, argv []string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0:
		return "", nil, usage("which resource, and which command? signalbox run NAME -- COMMAND")
	case dash < 0 && len(args) == 1:
		return "", nil, usage("%s: which command shall run? signalbox run %s -- COMMAND", printable(args[0]), printable(args[0]))
	case dash < 0:
		return "", nil, usage("put -- before the command: signalbox run %s -- %s", printable(args[0]), printable(strings.Join(args[1:], " ")))
	case dash == 0:
		return "", nil, usage("the name of the resource is missing before --: signalbox run NAME -- COMMAND")
	case dash > 1:
		return "", nil, usage("one name before --, not %d: signalbox run NAME -- COMMAND", dash)
	case len(args) == 1:
		return "", nil, usage("%s: the command is missing behind --", printable(args[0]))
	}
	return args[0], args[1:], nil
}

// run acquires, runs the command, and releases.
func (a *app) run(ctx context.Context, f runFlags, name string, argv []string) error {
	path, err := findCommand(argv[0])
	if err != nil {
		return err // before the queue, not behind it
	}
	if f.label == "" {
		f.label = filepath.Base(argv[0])
	}
	signals := make(chan os.Signal, 16)
	notify(signals)
	defer signal.Stop(signals)

	box, lease, err := a.obtain(ctx, f, name, signals)
	if err != nil {
		return err
	}
	err = a.underLease(lease, f, path, argv, signals)
	a.mark.remove()
	// Close releases as Release does, but gives up on a server that has gone after the claim time, not after the ttl:
	// whoever waits for the command's exit status shall have it.
	closed := box.Close()
	released := lease.Release(ctx)
	if lost(released) {
		// The command has ended before it was known, or has been ended for it: then err says so.
		released = nil
	}
	if trouble := errors.Join(released, closed); trouble != nil {
		fmt.Fprintln(a.stderr, "signalbox:", trouble)
	}
	return err
}

func lost(err error) bool {
	return errors.Is(err, signalbox.ErrLeaseLost) || errors.Is(err, signalbox.ErrForced)
}

// notify has the signals that are passed on sent to a channel, except those that the parent wants ignored (nohup, a
// shell's background job): the command then ignores them too.
func notify(signals chan<- os.Signal) {
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
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

// obtain connects and acquires. A signal meanwhile gives up the place in the queue.
func (a *app) obtain(ctx context.Context, f runFlags, name string, signals <-chan os.Signal) (*signalbox.Box, *signalbox.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	obtained := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case s := <-signals:
				if !stops(s) && ends(s) {
					cancel(interrupted(s))
					return
				}
			case <-obtained:
				return
			}
		}
	}()
	box, lease, err := a.acquire(ctx, f, name)
	close(obtained)
	<-watched
	var given *exitError
	if errors.As(context.Cause(ctx), &given) && err == nil {
		// The grant and the signal have met.
		a.mark.remove()
		err = errors.Join(box.Close(), lease.Release(ctx))
	}
	cancel(nil)
	if given != nil {
		return nil, nil, given
	}
	return box, lease, err
}

// interrupted is how the program ends on a signal: nothing needs to be said.
func interrupted(s os.Signal) error {
	number, _ := s.(syscall.Signal)
	return &exitError{exitSignal + int(number), nil}
}

// attempt acquires once, and closes the box if that fails.
func (a *app) attempt(ctx context.Context, f runFlags, box *signalbox.Box, name string) (*signalbox.Lease, error) {
	lease, err := a.await(ctx, f, box, name)
	if err == nil {
		if err = f.replicated(lease); err == nil {
			return lease, nil
		}
		a.mark.remove()
		err = errors.Join(err, lease.Release(ctx))
	} else {
		err = a.explain(ctx, box, f, name, err)
	}
	// That a server which is away was not told of the end is nothing new.
	if closed := box.Close(); closed != nil && !errors.Is(err, signalbox.ErrUnavailable) {
		fmt.Fprintln(a.stderr, "signalbox:", closed)
	}
	return nil, err
}

// await waits for the grant, as long as it may.
func (a *app) await(ctx context.Context, f runFlags, box *signalbox.Box, name string) (*signalbox.Lease, error) {
	lock, options := f.lock(box, name), f.options()
	if f.noWait {
		lease, err := lock.TryAcquire(ctx, options...)
		return a.markHeld(ctx, f, lease, err)
	}
	if !f.quiet {
		display := a.newWaitingDisplay(ctx, box, name)
		defer display.close()
		options = append(options, signalbox.OnWait(display.changed))
	}
	if !f.until.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadline(ctx, f.until)
		defer done()
	}
	lease, err := lock.Acquire(ctx, options...)
	return a.markHeld(ctx, f, lease, err)
}

// reviving keeps the private engine alive until the function that it returns is called.
func (a *app) reviving(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.private.revive(ctx, a.warn)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// markHeld makes sure that nobody holds what an earlier private engine has granted.
func (a *app) markHeld(ctx context.Context, f runFlags, lease *signalbox.Lease, err error) (*signalbox.Lease, error) {
	if err != nil || a.private == nil {
		return lease, err
	}
	if a.mark, err = a.private.markHeld(ctx, lease.Resource(), !f.noWait, lease.Done()); err == nil {
		return lease, nil
	}
	if errors.Is(err, errFormer) || errors.Is(err, context.DeadlineExceeded) {
		err = f.refused("%s is busy: %w", printable(lease.Resource()), errFormer)
	}
	return nil, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
}

// explain turns the refusals into what a person wants to know.
func (a *app) explain(ctx context.Context, box *signalbox.Box, f runFlags, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, signalbox.ErrBusy):
		return f.refused("%s is busy: %s; leave out --no-wait to wait in the queue", printable(name), heldBy(ctx, box, name))
	case errors.Is(err, context.DeadlineExceeded):
		return f.refused("%s was not granted within %v: %s; give more time with --wait, or see signalbox inspect %s",
			printable(name), f.wait, heldBy(ctx, box, name), printable(name))
	case errors.Is(err, signalbox.ErrForced):
		return f.refused("%s: an operator took this waiter out of the queue", printable(name))
	case errors.Is(err, signalbox.ErrTooHeavy):
		return &exitError{exitUsage, fmt.Errorf("%s: --weight %d is more than the limit that an operator has set; see signalbox inspect %s",
			printable(name), f.weight, printable(name))}
	}
	return err
}

// underLease runs the command to its end, or to that of the lease.
func (a *app) underLease(lease *signalbox.Lease, f runFlags, path string, argv []string, signals <-chan os.Signal) error {
	environment := append(os.Environ(),
		"SIGNALBOX_RESOURCE="+lease.Resource(), fmt.Sprintf("SIGNALBOX_TOKEN=%d", lease.Token()))
	environment = append(environment, a.whereabouts()...)
	if cause := lease.Err(); cause != nil { // this process may have been stopped since the grant
		return leaseLost(lease, cause, "was not started")
	}
	c, err := startChild(path, argv, environment)
	if err != nil {
		return cannotRun(argv[0], err)
	}
	g := newGuard(lease, c, f.killAfter)
	status := g.watch(signals)
	g.close()
	interrupted := c.close()
	switch {
	case g.cause != nil:
	case status == 0:
		return nil
	case interrupted:
		return &exitError{status, errInterrupted}
	default:
		return &exitError{status, nil}
	}
	outcome := "was ended with it"
	if len(g.left) > 0 {
		outcome += fmt.Sprintf(", but these of its processes could not be ended: %s", strings.Trim(fmt.Sprint(g.left), "[]"))
	}
	return leaseLost(lease, g.cause, outcome)
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

// leaseLost says what became of the command under a lease that is over.
func leaseLost(lease *signalbox.Lease, cause error, outcome string) error {
	reason := "could not be renewed in time"
	if errors.Is(cause, signalbox.ErrForced) {
		reason = "was ended by an operator"
	}
	return &exitError{exitLost, fmt.Errorf("%s: the lease %s, and the command %s", printable(lease.Resource()), reason, outcome)}
}
