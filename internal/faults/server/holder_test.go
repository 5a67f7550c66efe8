//go:build unix

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// A holder that is suspended cannot see its lease pass. It is a process of its own here: this test binary once more,
// which finds its server in the environment, acquires, and says what it sees, line by line.

const (
	holderURL = "SIGNALBOX_TEST_HOLDER"
	contested = "contested"
)

// hold is what the process does.
func hold(url string) {
	err := func() error {
		box, err := signalbox.Open(context.Background(), url)
		if err != nil {
			return err
		}
		defer box.Close()
		lease, err := box.Mutex(contested).Acquire(context.Background(), signalbox.TTL(faults.TTL))
		if err != nil {
			return err
		}
		first := lease.Deadline()
		for !lease.Deadline().After(first) && lease.Err() == nil { // so that it is renewed once
			runtime.Gosched()
		}
		fmt.Println(lease.Token())
		if _, err := io.ReadAll(os.Stdin); err != nil { // until it is to wake
			return err
		}
		over := !time.Now().Before(lease.Deadline())
		<-lease.Done()
		fmt.Println(over, errors.Is(lease.Err(), signalbox.ErrLeaseLost),
			errors.Is(lease.Release(context.Background()), signalbox.ErrLeaseLost))
		return nil
	}()
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// holder is that process seen from here.
type holder struct {
	process *os.Process
	stdin   io.Closer
	stdout  *bufio.Reader
}

// startHolder ends the process with the test, or with this process if that dies before.
func startHolder(t *testing.T, url string) *holder {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderURL+"="+url)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = diesWithParent()
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The system tells a child of its parent's death when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_, _ = cmd.Process.Wait() // how it ended is seen by what it said
		}
	}()
	must(t, <-started)
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-ended
	})
	return &holder{cmd.Process, stdin, bufio.NewReader(stdout)}
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	giveUp := context.AfterFunc(faults.Patient(t), func() { _ = h.process.Kill() }) // then there is no line any more
	defer giveUp()
	line, err := h.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("the holder said %q and ended: %v", line, err)
	}
	return strings.TrimSpace(line)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHolderSuspended(t *testing.T) {
	faults.Begin(t)
	redisServer := difftest.Redis(t)
	url := "redis://" + redisServer.Addr
	box, err := signalbox.Open(t.Context(), url)
	must(t, err)
	defer box.Close()

	h := startHolder(t, url)
	token, err := strconv.ParseInt(h.line(t), 10, 64)
	must(t, err)
	must(t, h.process.Signal(syscall.SIGSTOP))
	next, err := box.Mutex(contested).Acquire(faults.Patient(t)) // once the lease of the other is over
	must(t, err)
	if next.Token() <= token {
		t.Errorf("L2: token %d after %d", next.Token(), token)
	}
	must(t, h.stdin.Close())
	must(t, h.process.Signal(syscall.SIGCONT))
	if seen := h.line(t); seen != "true true true" {
		t.Errorf("the deadline had passed, the lease was lost, its release refused: %s", seen)
	}
	state, err := box.Inspect(t.Context(), contested)
	must(t, err)
	if state.Leases != 1 || state.Token != next.Token() || next.Err() != nil {
		t.Errorf("L4: the holder that woke up did something: %+v, %v", state, next.Err())
	}
	must(t, next.Release(t.Context()))
}
