package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
)

// What was pruned is not read, and not missed; files go with their last entry, and everything else is as before.
func TestPrune(t *testing.T) {
	folder, segments, all := written(t)
	before, err := os.ReadFile(segments[0])
	must(t, err)
	sink := open(t, folder)
	sees := func(from int, all []history.Entry, files_ int) {
		t.Helper()
		for _, s := range []*files.Sink{sink, open(t, folder, files.ReadOnly())} {
			if ids, err := read(t, s); err != nil || !slices.Equal(ids, idsOf(all[from:])) {
				t.Errorf("%d entries are read, want %d (%v)", len(ids), len(all)-from, err)
			}
		}
		report, err := files.Check(t.Context(), folder)
		must(t, err)
		if report.Segments != files_ || report.Entries != uint64(len(all)-from) || len(report.Damage) > 0 || report.Pruned != all[from-1].ID {
			t.Errorf("the report: %+v", report)
		}
	}
	must(t, files.Prune(folder, all[3].ID))
	sees(4, all, 5)
	must(t, files.Prune(folder, all[150].ID)) // while somebody has it open to write
	sees(151, all, 3)
	for _, err := range []error{files.Prune(folder, all[20].ID), files.Prune(folder, all[150].ID)} { // they have gone
		must(t, err)
	}
	sees(151, all, 3)
	all = append(all, historytest.Entries(300, 50)...)
	must(t, sink.Append(t.Context(), historytest.Queue, all[290:]))
	sees(151, all, 3)
	must(t, sink.Close())

	must(t, os.WriteFile(segments[0], before, 0o600)) // a crash has left it
	sink = open(t, folder)
	sees(151, all, 4)
	must(t, files.Prune(folder, all[151].ID))
	if _, err := os.Stat(segments[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the crash has left is still there: %v", err)
	}
	must(t, files.Prune(folder, all[len(all)-1].ID)) // all of them
	if position, err := sink.Position(t.Context()); err != nil || position != all[len(all)-1].ID {
		t.Errorf("the position is %q, %v", position, err)
	}
	all = append(all, historytest.Entries(350, 1)...)
	must(t, sink.Append(t.Context(), historytest.Queue, all[350:]))
	sees(350, all, 1)
}

// A hole behind what was pruned is still found; and so is a file that says what was pruned, if it is not what it was.
func TestPrunedAndDamaged(t *testing.T) {
	folder, segments, all := written(t)
	must(t, files.Prune(folder, all[100].ID))
	must(t, os.Remove(segments[2]))
	sink := open(t, folder, files.ReadOnly())
	var hole *files.Damage
	if ids, err := read(t, sink); !errors.As(err, &hole) || hole.Lost != 70 || len(ids) != 39 {
		t.Errorf("%d entries, and %v", len(ids), err)
	}
	marker := filepath.Join(folder, "pruned")
	edit(t, marker, func(b []byte) []byte { b[3] ^= 1; return b })
	if _, err := read(t, sink); !errors.Is(err, history.ErrDamaged) {
		t.Errorf("the error is %v", err)
	}
	must(t, os.Remove(marker))
	if ids, err := read(t, sink); !errors.As(err, &hole) || len(ids) > 0 {
		t.Errorf("%d entries, and %v", len(ids), err)
	}
}

func TestPruneRefuses(t *testing.T) {
	folder, segments, all := written(t)
	for _, upto := range []string{"", "yesterday", "1800000000000-0"} {
		if err := files.Prune(folder, upto); err == nil {
			t.Errorf("up to %q", upto)
		}
	}
	if err := files.Prune(filepath.Join(folder, "none"), all[0].ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	edit(t, segments[4], func(b []byte) []byte { b[entryAt(t, b, all[283])+42] ^= 4; return b })
	if err := files.Prune(folder, all[200].ID); !errors.Is(err, history.ErrDamaged) {
		t.Errorf("the error is %v", err)
	}
	if ids, err := read(t, open(t, folder, files.ReadOnly())); !errors.Is(err, history.ErrDamaged) || len(ids) != 283 {
		t.Errorf("%d entries, and %v", len(ids), err)
	}
}
