package embedded_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/engine"
)

func open(t *testing.T, dir string) *embedded.Box {
	t.Helper()
	box, err := embedded.Open(dir, signalbox.Owner("somebody"))
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// An engine that goes under a lease, and comes back, knows of the lease: nobody else
// gets in before it expires, and then with a larger token. Invariants L1 and L2.
func TestALeaseHoldsOverARestartUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		before := open(t, dir)
		lease, err := before.Mutex("m").Acquire(t.Context(), signalbox.TTL(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if err := before.Engine().Close(); err != nil { // the box could not release it any more
			t.Fatal(err)
		}
		after := open(t, dir)
		var busy *signalbox.BusyError
		if _, err := after.Mutex("m").TryAcquire(t.Context()); !errors.As(err, &busy) {
			t.Fatalf("after the restart the mutex is taken again: %v", err)
		}
		began := time.Now()
		next, err := after.Mutex("m").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 30*time.Second || waited > 2*time.Minute {
			t.Errorf("the next holder came after %v, with a ttl of a minute", waited)
		}
		if next.Token() <= lease.Token() {
			t.Errorf("token %d after %d", next.Token(), lease.Token())
		}
		if lease.Err() == nil {
			t.Error("the first holder was not told")
		}
		if err := errors.Join(after.Close(), before.Close()); err != nil {
			t.Error(err)
		}
	})
}

// What is in the folder says nothing less than what was in memory: the limit that an
// operator has set, and who holds what.
func TestAFolderHasEverything(t *testing.T) {
	dir := t.TempDir()
	box := open(t, dir)
	if _, err := box.Resize(t.Context(), "db", 3); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Semaphore("db", 10).Acquire(t.Context(), signalbox.Weight(2), signalbox.TTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want, err := box.Engine().Do(t.Context(), "DEBUG", "DIGEST")
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Engine().Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if got, err := again.Engine().Do(t.Context(), "DEBUG", "DIGEST"); err != nil || got.String() != want.String() {
		t.Errorf("the digest is %v, %v; want %v", got, err, want)
	}
	state, err := again.Inspect(t.Context(), "db")
	if err != nil || state.Limit != 3 || state.Held != 2 {
		t.Errorf("%+v, %v", state, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if err := box.Close(); !errors.Is(err, signalbox.ErrUnavailable) {
		t.Errorf("the engine of a box was closed before it, and its Close says %v", err)
	}
}

func TestAFolderIsUsedByOneAtATime(t *testing.T) {
	dir := t.TempDir()
	box := open(t, dir)
	_, err := embedded.Open(dir)
	var used *engine.InUseError
	if !errors.As(err, &used) || used.PID != os.Getpid() {
		t.Errorf("a second box on the folder: %v", err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Close(); err != nil {
		t.Error(err)
	}
}
