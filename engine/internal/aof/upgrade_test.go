package aof_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
)

// old is a disk with the one file of an older Redis.
func old(t *testing.T) *disktest.Disk {
	t.Helper()
	d := memory()
	f, err := d.Create(aof.DefaultNames.File)
	must(t, err)
	for n := range 4 {
		_, err := f.Write(request(n + 1))
		must(t, err)
	}
	must(t, f.Sync())
	must(t, f.Close())
	must(t, d.SyncFolder("."))
	return d
}

func TestOldFileIsTakenOverWhereverThePowerFails(t *testing.T) {
	for step := range 30 {
		d := old(t)
		d.CutAfter(step)
		if set, err := aof.Open(d, aof.DefaultNames); err == nil {
			if !set.Upgraded {
				t.Error("the set does not say that it was upgraded")
			}
			if l, err := set.Start(aof.Options{}); err == nil {
				_ = l.Close() // the power is perhaps gone
			}
		}
		for seed := range uint64(20) {
			wantNumbers(t, d.PowerCut(seed), 4)
		}
	}
}

// The old file may be one that its Redis has not synced to the end: it becomes a base, and only the last file may be torn.
func TestAnOldFileIsDurableBeforeAnythingFollowsIt(t *testing.T) {
	d := memory()
	f, err := d.Create(aof.DefaultNames.File)
	must(t, err)
	for n := range 4 {
		_, err := f.Write(request(n + 1))
		must(t, err)
	}
	must(t, f.Close())
	w := &work{l: start(t, d, aof.Options{Policy: aof.Always}), last: 4}
	must(t, w.add(1))
	for seed := range uint64(20) {
		wantNumbers(t, d.PowerCut(seed), 5)
	}
	must(t, w.l.Close())
}

func TestOldFileIsLeftAloneBesideASet(t *testing.T) {
	d := old(t)
	w := &work{l: start(t, d, aof.Options{})}
	w.last = 4
	must(t, w.add(1))
	must(t, w.l.Close())
	f, err := d.Create(aof.DefaultNames.File)
	must(t, err)
	must(t, f.Close())
	wantNumbers(t, d, 5)
}

func TestOpenRemovesWhatACrashLeft(t *testing.T) {
	d := memory()
	w := &work{l: start(t, d, aof.Options{})}
	must(t, w.add(2))
	must(t, w.rewrite())
	must(t, w.l.Close())
	leftovers := []string{"appendonly.aof.9.base.rdb", "appendonly.aof.9.incr.aof", "temp-appendonly.aof.manifest", "temp-rewriteaof-2.rdb"}
	others := []string{"temp-holiday.jpg", "appendonly.aof.1.incr.aof", "notes.txt"}
	for _, name := range append(leftovers, others...) {
		f, err := d.Create("appendonlydir/" + name)
		must(t, err)
		must(t, f.Close())
	}
	set, err := aof.Open(d, aof.DefaultNames)
	must(t, err)
	if len(set.Removed) != len(leftovers) {
		t.Errorf("removed %v, want %v", set.Removed, leftovers)
	}
	for _, name := range others {
		if _, err := d.Size("appendonlydir/" + name); err != nil {
			t.Error(err)
		}
	}
	must(t, set.Close())
}

func TestMissingFileIsRefused(t *testing.T) {
	d := memory()
	w := &work{l: start(t, d, aof.Options{})}
	must(t, w.add(1))
	must(t, w.l.Close())
	must(t, d.Remove("appendonlydir/appendonly.aof.1.incr.aof"))
	if _, err := aof.Open(d, aof.DefaultNames); err == nil {
		t.Error("a set without one of its files was opened")
	}
}

// aof-load-truncated: what a kill has torn is trimmed, and the log goes on there.
func TestTornTailIsTrimmedAndGoneOnWith(t *testing.T) {
	d := memory()
	w := &work{l: start(t, d, aof.Options{})}
	must(t, w.add(3))
	must(t, w.l.Close())
	name := "appendonlydir/appendonly.aof.1.incr.aof"
	d.Damage(name, func(b []byte) []byte { return b[:len(b)-1] })
	set, err := aof.Open(d, aof.DefaultNames)
	must(t, err)
	must(t, set.Trim(int64(2*len(request(1)))))
	l, err := set.Start(aof.Options{})
	must(t, err)
	w = &work{l: l, last: 2}
	must(t, w.add(2))
	must(t, l.Close())
	wantNumbers(t, d, 4)
}
