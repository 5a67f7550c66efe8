//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// mortal is `signalbox serve` behind a Unix socket: killed whenever somebody wants it to be, and started again at once
// on the same folder.
//
// One goroutine, run, owns the process. It stays on its thread, since the system lets a child die with the thread that
// started it. Everybody else asks it by restart. Who must not have a request under way when the engine dies holds
// `quiet` for reading meanwhile.
type mortal struct {
	socket, dir string
	random      *rand.Rand // run's
	wanted      chan want
	over        chan struct{} // closed when it is not to live any more
	quiet       sync.RWMutex
	lives       atomic.Int64 // how often it was started
	longest     time.Duration
	until       time.Time     // the present life must last until then; run's, as longest is
	broken      chan struct{} // closed when it does not start any more,
	why         error         // for this reason
	ended       chan struct{}
	cmd         *exec.Cmd
	output      strings.Builder // of this life
}

// want asks for the end of a life, if it has not ended yet.
type want struct {
	life int64
	done chan struct{}
}

// mostAway is how long the engine may take to come back on a machine with much else to do. It takes 50 ms on a quiet one.
const mostAway = 5 * time.Second

// newMortal starts an engine that ends with the test.
func newMortal(t *testing.T, random *rand.Rand) *mortal {
	t.Helper()
	home, err := os.MkdirTemp("", "restart") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{
		socket: filepath.Join(home, "s"), dir: filepath.Join(home, "data"), random: random,
		wanted: make(chan want), over: make(chan struct{}), broken: make(chan struct{}), ended: make(chan struct{}),
	}
	go m.run()
	t.Cleanup(func() {
		close(m.over)
		<-m.ended
		if m.why != nil {
			t.Error(m.why)
		}
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	m.restart(0)
	if m.why != nil {
		t.FailNow()
	}
	return m
}

// restart ends a life and returns when the next one has begun; if another has done that already, at once.
func (m *mortal) restart(life int64) {
	w := want{life, make(chan struct{})}
	select {
	case m.wanted <- w:
		<-w.done
	case <-m.broken:
	case <-m.over:
	}
}

func (m *mortal) run() {
	defer close(m.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for m.why == nil {
		select {
		case w := <-m.wanted:
			m.grant(w)
		case <-m.over:
			m.why = m.kill()
			return
		}
	}
	m.why = errors.Join(m.why, m.kill())
}

// grant ends the life that somebody wants to be over.
func (m *mortal) grant(w want) {
	defer close(w.done)
	if w.life != m.lives.Load() {
		return
	}
	time.Sleep(time.Until(m.until))
	if m.why = m.reincarnate(); m.why != nil {
		close(m.broken)
	}
}

// reincarnate kills the engine, sometimes the next one too while it starts or loads, and returns when it answers.
func (m *mortal) reincarnate() error {
	m.quiet.Lock()
	defer m.quiet.Unlock()
	began := time.Now()
	if err := m.kill(); err != nil {
		return err
	}
	for m.lives.Load() > 0 && m.random.IntN(5) == 0 {
		if err := m.start(); err != nil {
			return err
		}
		time.Sleep(time.Duration(m.random.IntN(40000)) * time.Microsecond)
		if err := m.kill(); err != nil {
			return err
		}
	}
	if err := m.start(); err != nil {
		return err
	}
	if err := m.ready(); err != nil {
		return errors.Join(err, m.kill())
	}
	m.lives.Add(1)
	m.longest = max(m.longest, time.Since(began))
	m.until = time.Now().Add(m.span())
	return nil
}

// span is how long the engine lives at least, so that there is more life than death.
func (m *mortal) span() time.Duration { return time.Duration(m.random.IntN(250)) * time.Millisecond }

func (m *mortal) start() error {
	m.output.Reset()
	m.cmd = exec.Command("signalbox", "serve", "--unix", m.socket, "--dir", m.dir,
		"--set", "appendfsync=always", "--set", "auto-aof-rewrite-min-size=64kb", "--set", "auto-aof-rewrite-percentage=50")
	m.cmd.SysProcAttr = &syscall.SysProcAttr{}
	dieWithParent(m.cmd.SysProcAttr)
	m.cmd.Stderr = &m.output
	return m.cmd.Start()
}

// kill ends the engine, which must not have ended by itself.
func (m *mortal) kill() error {
	if m.cmd == nil || m.cmd.Process == nil {
		return nil
	}
	cmd := m.cmd
	m.cmd = nil
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	err := cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return fmt.Errorf("the engine has ended by itself: %w\n%s", err, m.output.String())
	}
	return nil
}

// ready returns when the engine has loaded its data.
func (m *mortal) ready() error {
	client := m.client()
	defer client.Close()
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		err := client.Get(ctx, "ready?").Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the engine has not come back within %v: %w\n%s", patience, err, m.output.String())
		}
	}
}

// client returns a client that sends nothing a second time.
func (m *mortal) client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: "unix", Addr: m.socket, ContextTimeoutEnabled: true, MaxRetries: -1, ReadTimeout: time.Minute, // contexts decide
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
