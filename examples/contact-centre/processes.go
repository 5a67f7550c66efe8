package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A process is a part of the centre with a process of its own, so that it can be killed: this program, started with a role.
// It is started again whenever it ends.
//
// Its standard input is a pipe that this process holds and never writes to: when it ends, however that happens, so does the
// child.
type process struct {
	what string   // for people
	args []string // after "role"

	mu     sync.Mutex
	cmd    *exec.Cmd
	killed bool // by kill: its end is no failure
}

// keep has the process run until ctx ends. tell hears of each end that nobody wanted.
func (p *process) keep(ctx context.Context, tell func(error)) {
	for ctx.Err() == nil {
		err := p.once(ctx)
		if err != nil && ctx.Err() == nil {
			tell(fmt.Errorf("%s ended by itself: %w", p.what, err))
			pause(ctx, 200*time.Millisecond)
		}
	}
}

// once runs the process until it ends, or ctx does.
func (p *process) once(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, append([]string{"role"}, p.args...)...)
	cmd.Stderr = os.Stderr
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.killed = false
	err = cmd.Start()
	p.cmd = cmd
	p.mu.Unlock()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = lifeline.Close()
		select {
		case err = <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			err = <-ended
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd = nil; p.killed {
		return nil
	}
	return err
}

// kill kills the process as kill -9 does, and says whether there was one.
func (p *process) kill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.killed || p.cmd.Process.Kill() != nil {
		return false
	}
	p.killed = true
	return true
}

// child is the context of a process with a role: it ends when the parent does.
func child(ctx context.Context, stdin io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx
}
