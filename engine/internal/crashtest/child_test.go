package crashtest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
)

// The child's part of the test binary. It gets its listener from the parent, so that
// nobody has to ask whether it listens yet.

const (
	childFolder   = "CRASH_CHILD_FOLDER"
	childSettings = "CRASH_CHILD_SETTINGS"
	listenerFile  = 3
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childFolder)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := serve(dir, strings.Split(os.Getenv(childSettings), ";")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is what the child does until it is killed, told to shut down, or left alone: its input
// ends with its parent.
func serve(dir string, settings []string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // nothing ever comes
		os.Exit(1)
	}()
	file := os.NewFile(listenerFile, "listener")
	listener, err := net.FileListener(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	config, err := engine.ReadConfig("", settings...)
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{Dir: dir, Config: config, LoadInBackground: true, Log: func(level int, message string) {
		if level > 2 {
			fmt.Fprintln(os.Stderr, message)
		}
	}})
	if err != nil {
		return err
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	err = e.Loaded()
	if err == nil {
		select {
		case <-terminate:
		case err = <-served:
		}
	}
	return errors.Join(err, e.Close())
}

// child is an engine in a process of its own.
type child struct {
	cmd    *exec.Cmd
	socket string
	output strings.Builder
}

// start starts a child on a folder.
func start(t *testing.T, dir, socket string, settings []string) *child {
	t.Helper()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(os.Args[0]), socket: socket}
	c.cmd.Env = append(os.Environ(), childFolder+"="+dir, childSettings+"="+strings.Join(settings, ";"))
	c.cmd.ExtraFiles = []*os.File{file}
	c.cmd.Stderr = &c.output
	if _, err := c.cmd.StdinPipe(); err != nil { // it is open as long as this process lives, and nobody waits for the child
		t.Fatal(err)
	}
	err = c.cmd.Start()
	t.Cleanup(c.end)
	// Only the child has the listener from here on: who is connected to it when it dies, knows.
	if err := errors.Join(err, file.Close(), listener.Close()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *child) dial() (net.Conn, error) { return net.Dial("unix", c.socket) }

// end sees to it that a failed test leaves no child.
func (c *child) end() {
	if c.cmd.Process != nil && c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill() // it may have ended
		_ = c.cmd.Wait()         // however it has
	}
}

// kill ends the child and waits for that. It reports whether the child had ended before, by itself
// and as it should.
func (c *child) kill(t *testing.T) (ended bool) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	err := c.cmd.Wait()
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && (!ok || !status.Signaled() || status.Signal() != syscall.SIGKILL) {
		t.Fatalf("the engine has ended: %v\n%s", err, c.output.String())
	}
	return err == nil
}
