//go:build unix

package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
)

// A lease that was lost between the grant and the start of the command: the command is not even looked for.
func TestCommandOfALostLeaseIsNotStarted(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("SIGNALBOX_URL", "")
	t.Setenv("SIGNALBOX_STATE", filepath.Join(folder, "state"))
	a := &app{stderr: t.Output(), stdout: t.Output()}
	box, err := a.open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(box.Close(), a.stopPrivate(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	lease, err := box.Mutex("x").Acquire(t.Context(), signalbox.TTL(6*time.Second))
	if err == nil {
		_, err = box.Force(t.Context(), "x", lease.ID())
	}
	if err != nil {
		t.Fatal(err)
	}
	<-lease.Done()
	missing := filepath.Join(folder, "missing")
	g := &grant{app: a, box: box, leases: []*signalbox.Lease{lease}, done: lease.Done()}
	_, err = g.run(&terms{killAfter: time.Second}, missing, []string{missing}, nil)
	if status(err) != exitLost || !strings.Contains(err.Error(), "was not started") || !errors.Is(lease.Err(), signalbox.ErrForced) {
		t.Errorf("status %d: %v", status(err), err)
	}
}
