//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

// A child is the command under a permit. Without process groups only the command itself can be ended.
type child struct {
	states  chan state
	process *os.Process
}

// state is what became of the child.
type state struct {
	stopped bool // never, here
	status  int
}

// passedOn are the signals that are heard. The console sends them to the command as well.
var passedOn = []os.Signal{os.Interrupt}

func ends(os.Signal) bool     { return true }
func suspends(os.Signal) bool { return false }
func stops(os.Signal) bool    { return false }

func startChild(path string, argv, environment []string) (*child, error) {
	cmd := &exec.Cmd{Path: path, Args: argv, Env: environment, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{make(chan state, 1), cmd.Process}
	go func() {
		err := cmd.Wait()
		var failed *exec.ExitError
		switch {
		case err == nil:
			c.states <- state{}
		case errors.As(err, &failed):
			c.states <- state{status: failed.ExitCode()}
		default:
			c.states <- state{status: exitFailure}
		}
	}()
	return c, nil
}

// become runs a command to its end, as the last that this process does: it cannot take its place.
func become(path string, argv, environment []string) error {
	c, err := startChild(path, argv, environment)
	if err != nil {
		return cannotRun(argv[0], err)
	}
	if ended := <-c.states; ended.status != 0 {
		return &exitError{ended.status, nil}
	}
	return nil
}

func (c *child) close() bool      { return false }
func (c *child) signal(os.Signal) {}
func (c *child) kill()            { _ = c.process.Kill() } // that it has ended is no error
func (c *child) terminate()       { c.kill() }
func (c *child) resume()          {}
func (c *child) stop(state) bool  { return false }
func (c *child) left() []int      { return nil }

func passInterruptOn() {}
