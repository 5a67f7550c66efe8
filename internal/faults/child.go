//go:build unix

package faults

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// Child is the test binary once more, as a process of its own that can be suspended or killed. Its TestMain finds in the
// environment what it is to do. It is told things by lines of its standard input, and says what it sees by lines.
type Child struct {
	Process *os.Process
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	ended   chan struct{}
}

// StartChild starts one, with something added to the environment. It ends with the test, or with this process if that
// dies before.
func StartChild(t *testing.T, environment ...string) *Child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = diesWithParent()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	c := &Child{stdin: stdin, stdout: bufio.NewReader(stdout), ended: make(chan struct{})}
	go func() {
		// The system tells a child of its parent's death when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_, _ = cmd.Process.Wait() // how it ended is seen by what it said
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	c.Process = cmd.Process
	t.Cleanup(func() { c.Kill(t) })
	return c
}

// Line is the next that the child says.
func (c *Child) Line(t *testing.T) string {
	t.Helper()
	giveUp := context.AfterFunc(Patient(t), func() { _ = c.Process.Kill() }) // then there is no line any more
	defer giveUp()
	line, err := c.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("the child said %q and ended: %v", line, err)
	}
	return strings.TrimSpace(line)
}

// Tell writes a line to the child.
func (c *Child) Tell(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// Dismiss ends what the child reads.
func (c *Child) Dismiss(t *testing.T) {
	t.Helper()
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the child without warning, and returns when it is gone. Killing it again does nothing.
func (c *Child) Kill(t *testing.T) {
	t.Helper()
	if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-c.ended
}

// Rest is all that the child still says until it ends.
func (c *Child) Rest(t *testing.T) string {
	t.Helper()
	giveUp := context.AfterFunc(Patient(t), func() { _ = c.Process.Kill() })
	defer giveUp()
	said, err := io.ReadAll(c.stdout)
	if err != nil {
		t.Errorf("the child said %q: %v", said, err)
	}
	<-c.ended
	return strings.TrimSpace(string(said))
}
