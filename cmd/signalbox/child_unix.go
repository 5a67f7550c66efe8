//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A child is the command under a permit, the leader of a process group of its own, so that signals reach all it starts.
// What leaves the group is in the containment all the same, where the system has one (see contain_linux.go).
//
// One goroutine on a thread of its own starts it and waits for it. The thread matters: Linux kills the child when the
// thread that started it dies (see contain_linux.go), so it must live as long as the child. Waiting by hand instead of
// through os/exec shows stops too, which the job control of shells is made of.
//
// The terminal. A terminal belongs to one group at a time, the foreground: it gets Ctrl-C, and it alone may read. The
// child gets the terminal if signalbox owns it, at the start if both input and output are the terminal; otherwise (in
// a pipeline, where others may need it) when the child is stopped for reaching for it. It goes back at the end. Without
// the terminal the child gets Ctrl-C through signalbox.
type child struct {
	states   chan state
	group    int // the id of the process group, and of the child
	inside   *containment
	terminal *terminal
	endedBy  syscall.Signal // set before the last state is sent
}

// state is what became of the child.
type state struct {
	stopped bool
	signal  syscall.Signal // that stopped it
	status  int            // the exit status, if it has ended
}

// passedOn are the signals that go to the command.
var passedOn = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGWINCH,
}

// ends reports whether a signal gives up the place in the queue.
func ends(s os.Signal) bool {
	return s == unix.SIGINT || s == unix.SIGTERM || s == unix.SIGHUP || s == unix.SIGQUIT
}

func startChild(path string, argv, environment []string) (*child, error) {
	c := &child{states: make(chan state, 1), terminal: openTerminal(), inside: newContainment()}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.inside.start(func(attributes *syscall.SysProcAttr) error {
			cmd := &exec.Cmd{
				Path: path, Args: argv, Env: environment, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: attributes,
			}
			err := cmd.Start()
			if err == nil {
				c.group = cmd.Process.Pid
			}
			return err
		})
		started <- err
		if err == nil {
			c.wait()
		}
	}()
	if err := <-started; err != nil {
		c.terminal.close()
		c.inside.close()
		return nil, err
	}
	if term.IsTerminal(0) && term.IsTerminal(1) && c.terminal.give(c.group) {
		// It may have reached for the terminal before it had it.
		c.send(unix.SIGCONT)
	}
	return c, nil
}

// wait reports each stop, and the end. Orphans that the containment has adopted are collected on the way.
func (c *child) wait() {
	whom := c.inside.reaped(c.group)
	for {
		var status unix.WaitStatus
		id, err := unix.Wait4(whom, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR: // system calls return bare numbers
		case err == nil && id != c.group:
		case err != nil:
			c.states <- state{status: exitFailure}
			return
		case status.Stopped():
			c.states <- state{stopped: true, signal: status.StopSignal()}
		case status.Signaled():
			c.endedBy = status.Signal()
			c.states <- state{status: exitSignal + int(status.Signal())}
			return
		default:
			c.states <- state{status: status.ExitStatus()}
			return
		}
	}
}

// close takes the terminal back. It reports whether a Ctrl-C there has ended the child.
func (c *child) close() (interrupted bool) {
	ours := c.terminal.takeBack()
	c.terminal.close()
	c.inside.close()
	return ours && c.endedBy == unix.SIGINT
}

// passInterruptOn gives a Ctrl-C that the child had to those who would have had it if the child were in our group: a
// script that runs us, and us. Shells end a script only if the command they waited for was ended by the signal.
func passInterruptOn() {
	if unix.Getpgrp() == os.Getpid() {
		return // there is nobody else
	}
	signal.Reset(unix.SIGINT)
	if unix.Kill(0, unix.SIGINT) == nil {
		time.Sleep(time.Second) // it ends us meanwhile
	}
}

// become runs a command in the place of this process. It returns only if that fails.
func become(path string, argv, environment []string) error {
	return cannotRun(argv[0], syscall.Exec(path, argv, environment))
}

// send signals the group. That it has ended meanwhile is no error.
func (c *child) send(s syscall.Signal) { _ = unix.Kill(-c.group, s) }

// signal passes a signal on.
func (c *child) signal(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		c.send(number)
	}
}

// kill ends the child and all that it has started. It may have to be repeated, until nobody is left.
func (c *child) kill() {
	c.send(unix.SIGKILL)
	c.inside.kill(c.group)
}

// terminate asks them to end. A stopped process hears that only when it goes on.
func (c *child) terminate() {
	c.send(unix.SIGTERM)
	c.send(unix.SIGCONT)
	c.inside.terminate(c.group)
}

func (c *child) resume() { c.send(unix.SIGCONT) }

// left lists the processes that the child has left behind, by their ids. The child itself has ended.
func (c *child) left() []int { return c.inside.left(c.group) }

// stop answers the stop of the child: one that reached for the terminal gets it, if it is ours to give; after any other
// signalbox stops as well, and stop returns true when it goes on.
func (c *child) stop(s state) bool {
	if (s.signal == unix.SIGTTIN || s.signal == unix.SIGTTOU) && c.terminal.give(c.group) {
		return false
	}
	whom := os.Getpid()
	if c.terminal.takeBack() {
		whom = 0 // Ctrl-Z is for all of the group, such as the script that runs us
	}
	suspend(whom)
	c.terminal.give(c.group)
	return true
}

// suspend stops a process or, with 0, our group, us among them, until a shell lets it go on. Without a shell in our
// session nobody would, so then it does nothing.
func suspend(whom int) {
	parent, err := unix.Getsid(os.Getppid())
	if own, errOwn := unix.Getsid(0); err != nil || errOwn != nil || own != parent {
		return
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	if unix.Kill(whom, unix.SIGSTOP) == nil {
		<-continued
	}
}

// suspends reports whether a signal asks to be suspended.
func suspends(s os.Signal) bool { return s == unix.SIGTSTP }

// stops reports whether a signal asks to be suspended, and suspends.
func stops(s os.Signal) bool {
	if !suspends(s) {
		return false
	}
	suspend(os.Getpid())
	return true
}

// terminal is the controlling terminal, nil if there is none.
type terminal struct {
	file  *os.File
	given int // the group that it was given to, 0 if none
}

func openTerminal() *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil // a service, a cron job, a test
	}
	return &terminal{file: file}
}

func (t *terminal) close() {
	if t != nil {
		_ = t.file.Close() // nothing was written
	}
}

func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// give hands the terminal to a group and reports whether it was ours to give.
func (t *terminal) give(group int) bool {
	if t == nil || t.foreground() != unix.Getpgrp() {
		return false
	}
	if unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group) != nil {
		return false
	}
	// From now on we are in the background, where taking the terminal back, and with `stty tostop` a word on it,
	// would stop us.
	signal.Ignore(unix.SIGTTOU)
	t.given = group
	return true
}

// takeBack makes us the foreground again, unless somebody else has become it, and reports whether it did.
func (t *terminal) takeBack() bool {
	if t == nil || t.given == 0 || t.foreground() != t.given {
		return false
	}
	t.given = 0
	return unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, unix.Getpgrp()) == nil
}
