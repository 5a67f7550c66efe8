package disktest_test

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
)

func create(t *testing.T, d disk.Disk, name string) disk.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, f disk.File, text string) {
	t.Helper()
	_, err := io.WriteString(f, text)
	must(t, err)
}

// content is what a file holds; "-" if there is none.
func content(t *testing.T, d disk.Disk, name string) string {
	t.Helper()
	r, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

// outcomes are what is found after many power cuts.
func outcomes(t *testing.T, d *disktest.Disk, name string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for seed := range uint64(300) {
		found[content(t, d.PowerCut(seed), name)] = true
	}
	return found
}

func TestOnlyWhatIsSyncedSurvives(t *testing.T) {
	d := disktest.New()
	f := create(t, d, "f")
	write(t, f, "one")
	must(t, f.Sync())
	found := outcomes(t, d, "f")
	if !found["-"] || !found["one"] || len(found) != 2 {
		t.Errorf("a file whose folder is not synced is there or not: %v", found)
	}
	must(t, d.SyncFolder("."))
	if found := outcomes(t, d, "f"); len(found) != 1 {
		t.Errorf("synced with its folder: %v", found)
	}
	write(t, f, "two")
	write(t, f, "six")
	found = outcomes(t, d, "f")
	for _, want := range []string{"one", "onetwo", "onetwosix", "onet", "one\x00\x00\x00six"} {
		if !found[want] {
			t.Errorf("never %q: %v", want, found)
		}
	}
	must(t, f.Sync())
	if found := outcomes(t, d, "f"); len(found) != 1 || !found["onetwosix"] {
		t.Errorf("after a sync: %v", found)
	}
}

func TestRenameIsOldOrNew(t *testing.T) {
	d := disktest.New()
	for _, name := range []string{"a", "b"} {
		f := create(t, d, name)
		write(t, f, name)
		must(t, f.Sync())
	}
	must(t, d.SyncFolder("."))
	must(t, d.Rename("b", "a"))
	if found := outcomes(t, d, "a"); len(found) != 2 || !found["a"] || !found["b"] {
		t.Error(found)
	}
	must(t, d.SyncFolder("."))
	if found := outcomes(t, d, "a"); len(found) != 1 || !found["b"] {
		t.Error(found)
	}
}

func TestFailedSyncLosesWhatWasWritten(t *testing.T) {
	d := disktest.New()
	f := create(t, d, "f")
	must(t, d.SyncFolder("."))
	write(t, f, "lost")
	d.FailSyncs(1)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if got := content(t, d, "f"); got != "lost" {
		t.Errorf("programs see %q", got)
	}
	write(t, f, "kept")
	must(t, f.Sync())
	if found := outcomes(t, d, "f"); len(found) != 1 || !found["\x00\x00\x00\x00kept"] {
		t.Errorf("%v", found)
	}
}

func TestFullDiskWritesShort(t *testing.T) {
	d := disktest.New()
	f := create(t, d, "f")
	d.FullAfter(4)
	if n, err := io.WriteString(f, "abcdef"); n != 4 || !errors.Is(err, syscall.ENOSPC) {
		t.Error(n, err)
	}
	must(t, f.Truncate(0))
	d.FullAfter(-1)
	write(t, f, "xy")
	if got := content(t, d, "f"); got != "xy" {
		t.Error(got)
	}
}

func TestAfterTheCutNothingHappens(t *testing.T) {
	d := disktest.New()
	f := create(t, d, "f")
	must(t, d.SyncFolder("."))
	d.CutAfter(1)
	write(t, f, "a")
	if err := f.Sync(); !errors.Is(err, disktest.ErrPowerCut) {
		t.Error(err)
	}
	if _, err := d.Create("g"); !errors.Is(err, disktest.ErrPowerCut) {
		t.Error(err)
	}
}
