//go:build unix

package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
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

	h := faults.StartChild(t, holderURL+"="+url)
	token, err := strconv.ParseInt(h.Line(t), 10, 64)
	must(t, err)
	must(t, h.Process.Signal(syscall.SIGSTOP))
	next, err := box.Mutex(contested).Acquire(faults.Patient(t)) // once the lease of the other is over
	must(t, err)
	if next.Token() <= token {
		t.Errorf("L2: token %d after %d", next.Token(), token)
	}
	h.Dismiss(t)
	must(t, h.Process.Signal(syscall.SIGCONT))
	if seen := h.Line(t); seen != "true true true" {
		t.Errorf("the deadline had passed, the lease was lost, its release refused: %s", seen)
	}
	state, err := box.Inspect(t.Context(), contested)
	must(t, err)
	if state.Leases != 1 || state.Token != next.Token() || next.Err() != nil {
		t.Errorf("L4: the holder that woke up did something: %+v, %v", state, next.Err())
	}
	must(t, next.Release(t.Context()))
}
