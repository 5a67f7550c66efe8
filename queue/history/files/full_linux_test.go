package files_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
)

// TestFullDisk: a call that fails has kept nothing, and the same call works when there is room; whether the file goes on or
// the next one was to begin.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no file system of its own here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	sink := open(t, dir+"/history", files.SegmentBytes(30_000))
	var all []history.Entry
	failures := 0
	for len(all) < 5000 {
		part := historytest.Entries(len(all), 70)
		err := sink.Append(t.Context(), historytest.Queue, part)
		if err == nil {
			all = append(all, part...)
			continue
		}
		if failures++; !errors.Is(err, syscall.ENOSPC) || failures > 3 {
			t.Fatal(err)
		}
		if ids, err := read(t, sink); err != nil || !slices.Equal(ids, idsOf(all)) {
			t.Fatalf("%d entries of %d, %v", len(ids), len(all), err)
		}
		if failures == 2 { // a new process finds the same
			must(t, sink.Close())
			sink = open(t, dir+"/history", files.SegmentBytes(30_000))
			if sink.Repaired() != nil {
				t.Errorf("something was left: %v", sink.Repaired())
			}
		}
		if failures == 3 {
			must(t, syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=2m"))
		}
	}
	if failures != 3 {
		t.Errorf("%d failures", failures)
	}
	if ids, err := read(t, sink); err != nil || !slices.Equal(ids, idsOf(all)) {
		t.Errorf("%d entries of %d, %v", len(ids), len(all), err)
	}
	report, err := files.Check(t.Context(), dir+"/history")
	if err != nil || report.Damage != nil || report.Torn != nil {
		t.Errorf("%+v, %v", report, err)
	}
	must(t, sink.Close())
}
