//go:build linux

package lossy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// A server whose clock steps while it runs, as one does that is set by hand, or by the network after a long sleep.

// stepping is a server that looks up in a file by how much its clock is off.
type stepping struct {
	*difftest.Server
	t      *testing.T
	file   string
	client *redis.Client
}

func startStepping(t *testing.T) *stepping {
	t.Helper()
	s := &stepping{t: t, file: filepath.Join(t.TempDir(), "offset")}
	s.write(0)
	s.Server = difftest.ClockedRedis(t, []string{"FAKETIME_NO_CACHE=1", "FAKETIME_TIMESTAMP_FILE=" + s.file})
	s.client = dial(t, s.Server)
	return s
}

// write replaces the file, so that nobody reads half of it.
func (s *stepping) write(off time.Duration) {
	s.t.Helper()
	next := s.file + ".next"
	must(s.t, os.WriteFile(next, fmt.Appendf(nil, "%+f\n", off.Seconds()), 0o600))
	must(s.t, os.Rename(next, s.file))
}

// step sets the clock, and returns when the server says so.
func (s *stepping) step(off time.Duration) {
	s.t.Helper()
	s.write(off)
	faults.Await(s.t, "a clock that has stepped", func() bool {
		at, err := s.client.Time(s.t.Context()).Result()
		must(s.t, err)
		return (time.Until(at) - off).Abs() < time.Minute
	})
}

func (s *stepping) box(addr string) *signalbox.Box {
	s.t.Helper()
	box := faults.Open(s.t, faults.WithOption("redis://"+addr, "read_timeout=200ms"), faults.Claim)
	s.t.Cleanup(func() {
		// One that was cut off can tell the server nothing.
		if err := box.Close(); err != nil && !errors.Is(err, signalbox.ErrUnavailable) {
			s.t.Error(err)
		}
	})
	return box
}

// TestClockStepsBack: what ends at a time by the server's clock must not end an hour late. Who lives notices nothing.
func TestClockStepsBack(t *testing.T) {
	faults.Begin(t)
	s := startStepping(t)
	proxy := faultproxy.Start(t, s.Addr)
	crashing, box := s.box(proxy.Addr()), s.box(s.Addr)
	crashed, err := crashing.Mutex("crashed").Acquire(faults.Patient(t), signalbox.TTL(faults.TTL))
	must(t, err)
	held := acquire(t, box, "held")
	nothing := faultproxy.Direction{Drop: true}
	proxy.Set(faultproxy.Fault{Requests: nothing, Replies: nothing})
	s.step(-time.Hour)
	next, err := box.Mutex("crashed").Acquire(faults.Patient(t))
	if err != nil {
		t.Fatalf("the lease of a crashed holder, whose ttl was %v, is not over: %v", faults.TTL, err)
	}
	if crashed.Err() == nil {
		t.Error("L1: the first holder believes that it holds")
	}
	larger(t, crashed, next)
	must(t, next.Release(faults.Patient(t)))
	must(t, held.Release(faults.Patient(t)))
	again := acquire(t, box, "held")
	larger(t, held, again)
	must(t, again.Release(faults.Patient(t)))
}

// TestClockStepsForward: nothing can tell that an hour has not passed, so leases end early. Their holders are told.
func TestClockStepsForward(t *testing.T) {
	faults.Begin(t)
	s := startStepping(t)
	first, second := s.box(s.Addr), s.box(s.Addr)
	early := acquire(t, first, "m")
	s.step(time.Hour)
	next := acquire(t, second, "m")
	larger(t, early, next)
	faults.Awaited(t, "the end of the lease", early.Done()) // its renewal finds nothing
	if !errors.Is(early.Err(), signalbox.ErrLeaseLost) || next.Err() != nil {
		t.Errorf("the first was to be told: %v, %v", early.Err(), next.Err())
	}
	must(t, next.Release(faults.Patient(t)))
}
