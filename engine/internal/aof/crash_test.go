package aof_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
)

// life is everything that a log does, on a disk that may fail at any step.
func life(d *disktest.Disk, policy aof.Policy) (promised int) {
	for begun := range 2 {
		set, err := aof.Open(d, aof.DefaultNames)
		if err != nil {
			return promised
		}
		l, err := set.Start(aof.Options{Policy: policy})
		if err != nil {
			_ = set.Close()
			return promised
		}
		w := &work{l: l, last: promised, promised: promised}
		for _, do := range []func() error{
			func() error { return w.add(2) }, w.rewrite, func() error { return w.add(3) }, w.rewrite, func() error { return w.add(1) },
		} {
			if do() != nil {
				break
			}
		}
		promised = w.promised
		if err := l.Close(); err != nil || begun == 1 {
			return promised
		}
	}
	return promised
}

// The power fails after each step that the disk ever makes.
func TestPowerCutAtEveryStepLosesNothingPromised(t *testing.T) {
	whole := memory()
	if n := life(whole, aof.Always); n != 20 {
		t.Fatalf("without a power cut %d are promised", n)
	}
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	for step := range whole.Steps() + 1 {
		d := memory()
		d.CutAfter(step)
		promised := life(d, aof.Always)
		for seed := range seeds {
			after := d.PowerCut(seed)
			found, err := numbers(after)
			if err == nil {
				err = inOrder(found, promised)
			}
			if err != nil {
				t.Fatalf("step %d of %d, seed %d: %v", step, whole.Steps(), seed, err)
			}
		}
	}
}

// Where nothing is promised but order, order is kept.
func TestPowerCutKeepsOrderInEveryPolicy(t *testing.T) {
	for _, policy := range []aof.Policy{aof.EverySecond, aof.Never} {
		whole := memory()
		life(whole, policy)
		for step := range whole.Steps() + 1 {
			d := memory()
			d.CutAfter(step)
			life(d, policy)
			for seed := range uint64(20) {
				found, err := numbers(d.PowerCut(seed))
				if err == nil {
					err = inOrder(found, 0)
				}
				if err != nil {
					t.Fatalf("step %d of %d, seed %d: %v", step, whole.Steps(), seed, err)
				}
			}
		}
	}
}

// A second power cut while the first one is being mended.
func TestPowerCutDuringRecoveryLosesNothingPromised(t *testing.T) {
	whole := memory()
	life(whole, aof.Always)
	for step := range whole.Steps() + 1 {
		d := memory()
		d.CutAfter(step)
		promised := life(d, aof.Always)
		for again := range 12 {
			second := d.PowerCut(uint64(step))
			second.CutAfter(again)
			if set, err := aof.Open(second, aof.DefaultNames); err == nil {
				if l, err := set.Start(aof.Options{Policy: aof.Always}); err == nil {
					_ = l.Close() // the power is perhaps gone
				}
			}
			found, err := numbers(second.PowerCut(uint64(again)))
			if err == nil {
				err = inOrder(found, promised)
			}
			if err != nil {
				t.Fatalf("steps %d and %d: %v", step, again, err)
			}
		}
	}
}

// A killed process leaves to the system what it has written: in every policy that is what was promised.
func TestKillAtEveryStepLosesNothingPromised(t *testing.T) {
	for _, policy := range []aof.Policy{aof.Always, aof.EverySecond, aof.Never} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			whole := memory()
			life(whole, policy)
			for step := range whole.Steps() + 1 {
				d := memory()
				d.CutAfter(step)
				promised := life(d, policy)
				found, err := numbers(d.Restart())
				if err == nil {
					err = inOrder(found, promised)
				}
				if err != nil {
					t.Fatalf("step %d of %d: %v", step, whole.Steps(), err)
				}
			}
		})
	}
}

// What a killed process has left to the system is made durable before the next one promises anything: names
// too, for the manifest that was loaded may be one whose rename is not on the plates yet.
func TestPowerCutAfterAKillLosesNothingLoadedOrPromised(t *testing.T) {
	whole := memory()
	life(whole, aof.Always)
	for step := range whole.Steps() + 1 {
		d := memory()
		d.CutAfter(step)
		life(d, aof.Always)
		next := d.Restart()
		loaded, err := numbers(next)
		must(t, err)
		w := &work{l: start(t, next, aof.Options{Policy: aof.Always}), last: len(loaded)}
		for range 2 {
			for seed := range uint64(8) {
				found, err := numbers(next.PowerCut(seed))
				if err == nil {
					err = inOrder(found, w.last)
				}
				if err != nil {
					t.Fatalf("killed at step %d of %d, seed %d: %v", step, whole.Steps(), seed, err)
				}
			}
			must(t, w.add(1))
		}
		must(t, w.l.Close())
	}
}

// Each sync in turn fails; the power goes at once, or after everything else has been tried.
func TestFailedSyncPromisesNothing(t *testing.T) {
	whole := memory()
	life(whole, aof.Always)
	for fail := 0; fail < whole.Steps()/2; fail += 2 {
		for cut := fail % 3; cut < 40; cut += 3 {
			folders := cut%2 == 0
			d := memory()
			promised := lifeWithFailure(t, d, fail, folders, cut/2)
			for seed := range uint64(5) {
				found, err := numbers(d.PowerCut(seed))
				if err == nil {
					err = inOrder(found, promised)
				}
				if err != nil {
					t.Fatalf("syncs fail after step %d (folders: %v), power after %d more, seed %d: %v", fail, folders, cut/2, seed, err)
				}
			}
		}
	}
}

// lifeWithFailure works until some step, from where one sync fails, and goes on whatever happens until the power
// fails too.
func lifeWithFailure(t *testing.T, d *disktest.Disk, step int, folders bool, cut int) (promised int) {
	set, err := aof.Open(d, aof.DefaultNames)
	must(t, err)
	l, err := set.Start(aof.Options{Policy: aof.Always})
	must(t, err)
	w := &work{l: l}
	failed := false
	for range 8 {
		if !failed && d.Steps() >= step {
			failed = true
			d.CutAfter(cut)
			if folders {
				d.FailFolderSyncsAfter(step/2%4, 1) // the one before a manifest's rename, or the one after it
			} else {
				d.FailSyncs(1)
			}
		}
		before := w.promised
		err := w.add(1)
		if l.Status().State == aof.NeedsBase && (err == nil || w.promised != before) {
			t.Fatalf("promised in the state %v", l.Status().Err)
		}
		if w.last%3 == 0 {
			_ = w.rewrite() // may be what fails
		}
	}
	_ = l.Close() // says what is not safe
	return w.promised
}

func TestFailedSyncIsMendedByARewriteOnly(t *testing.T) { synctest.Test(t, mendedByARewriteOnly) }

func mendedByARewriteOnly(t *testing.T) {
	d := memory()
	w := &work{l: start(t, d, aof.Options{Policy: aof.Always})}
	must(t, w.add(3))
	d.FailSyncs(1)
	var failed *aof.FailedError
	if err := w.add(1); !errors.As(err, &failed) || failed.State != aof.NeedsBase || !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v, want that a base is needed", err)
	}
	if err := w.l.Retry(); err != nil {
		t.Errorf("Retry has nothing to mend: %v", err)
	}
	if err := w.add(1); !errors.As(err, &failed) {
		t.Errorf("%v, want that a base is needed still", err)
	}
	if err := w.l.Sync(); !errors.As(err, &failed) {
		t.Errorf("%v, want that Sync does not promise either", err)
	}

	r, err := w.l.Begin()
	must(t, err)
	base, err := r.Create(aof.BaseAOF)
	must(t, err)
	for n := range w.last {
		_, err := base.Write(request(n + 1))
		must(t, err)
	}
	if err := w.add(1); !errors.As(err, &failed) {
		t.Errorf("%v, want nothing promised before Finish", err)
	}
	time.Sleep(2100 * time.Millisecond) // by then it is written all the same
	must(t, r.Finish())
	for seed := range uint64(20) {
		wantNumbers(t, d.PowerCut(seed), 6)
	}
	if s := w.l.Status(); s.State != aof.Healthy || s.Err != nil {
		t.Errorf("after the rewrite: %v", s.Err)
	}
	must(t, w.add(1))
	for seed := range uint64(20) {
		wantNumbers(t, d.PowerCut(seed), 7)
	}
	must(t, w.l.Close())
}

// The first sync of a process is of what the one before has left to the system. If it fails the log does not begin, but
// the system may have dropped what it still shows: the process after that must know, since its own syncs succeed.
func TestAFirstSyncThatFailsIsRememberedForTheNextProcess(t *testing.T) {
	for _, folders := range []bool{false, true} {
		d := memory()
		w := &work{l: start(t, d, aof.Options{Policy: aof.Never})}
		must(t, w.add(3))
		d = d.Restart()
		set, err := aof.Open(d, aof.DefaultNames)
		must(t, err)
		if folders {
			d.FailFolderSyncs(1)
		} else {
			d.FailSyncs(1)
		}
		if _, err := set.Start(aof.Options{}); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%v, want that the log does not begin", err)
		}
		must(t, set.Close())
		set, err = aof.Open(d, aof.DefaultNames)
		must(t, err)
		if !set.Unsynced {
			t.Errorf("of a folder: %v: the next process takes what it loads for durable", folders)
		}
		must(t, set.Close())
	}
}

// So is that of a file that is cut to its last whole request.
func TestATrimWhoseSyncFailsIsRememberedForTheNextProcess(t *testing.T) {
	d := memory()
	w := &work{l: start(t, d, aof.Options{Policy: aof.Never})}
	must(t, w.add(3))
	d = d.Restart()
	set, err := aof.Open(d, aof.DefaultNames)
	must(t, err)
	d.FailSyncs(1)
	if err := set.Trim(int64(len(request(1)))); !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v, want that the sync fails", err)
	}
	must(t, set.Close())
	set, err = aof.Open(d, aof.DefaultNames)
	must(t, err)
	if !set.Unsynced {
		t.Error("the next process takes what it loads for durable")
	}
	must(t, set.Close())
}

func TestFullDiskIsFoundAndRecovers(t *testing.T) {
	for room := range int64(3 * len(request(1))) {
		d := memory()
		w := &work{l: start(t, d, aof.Options{Policy: aof.Always})}
		must(t, w.add(2))
		d.FullAfter(room)
		err := error(nil)
		for err == nil {
			err = w.add(1)
		}
		var failed *aof.FailedError
		if !errors.As(err, &failed) || failed.State != aof.WriteFailed || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%v, want that writing failed", err)
		}
		if _, err := w.l.Begin(); !errors.As(err, &failed) {
			t.Errorf("%v, want no rewrite begun", err)
		}
		if err := w.l.Retry(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Retry: %v", err)
		}
		wantNumbers(t, d.PowerCut(1), w.promised)
		d.FullAfter(-1)
		must(t, w.l.Retry())
		must(t, w.add(1))
		must(t, w.l.Close())
		wantNumbers(t, d.PowerCut(1), w.last)
	}
}

// A request that had to wait for the disk may be older than what EverySecond may lose: the log works again when it
// is synced.
func TestARetryIsOverWhenWhatWaitedIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memory()
		w := &work{l: start(t, d, aof.Options{Policy: aof.EverySecond})}
		d.FullAfter(0)
		if err := w.add(1); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%v, want that the disk is full", err)
		}
		d.FullAfter(-1)
		d.SlowSyncs(300 * time.Millisecond)
		tried := make(chan error, 1)
		go func() { tried <- w.l.Retry() }()
		time.Sleep(200 * time.Millisecond)
		if s := w.l.Status(); s.State != aof.WriteFailed || !errors.Is(s.Err, syscall.ENOSPC) {
			t.Errorf("before it is synced: %v, %v", s.State, s.Err)
		}
		must(t, <-tried)
		if s := w.l.Status(); s.State != aof.Healthy || s.Err != nil {
			t.Errorf("after that: %v, %v", s.State, s.Err)
		}
		wantNumbers(t, d.PowerCut(1), 1)
		must(t, w.l.Close())
	})
}

func TestReadOnlyDiskIsFoundAndRecovers(t *testing.T) {
	d := memory()
	w := &work{l: start(t, d, aof.Options{})}
	must(t, w.add(1))
	d.ReadOnly(true)
	if err := w.add(1); !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v, want that the disk is read-only", err)
	}
	d.ReadOnly(false)
	must(t, w.l.Retry())
	must(t, w.l.Close())
	wantNumbers(t, d, 2)
}

func TestRewriteThatFailsChangesNothing(t *testing.T) {
	for room := range int64(400) {
		d := memory()
		w := &work{l: start(t, d, aof.Options{Policy: aof.Always})}
		must(t, w.add(5))
		d.FullAfter(room)
		err := w.rewrite()
		d.FullAfter(-1)
		must(t, w.l.Retry())
		must(t, w.add(1))
		if err == nil && w.l.Status().State != aof.Healthy {
			t.Errorf("room for %d: %v", room, w.l.Status().Err)
		}
		wantNumbers(t, d.PowerCut(1), w.last)
		must(t, w.rewrite())
		must(t, w.l.Close())
		wantNumbers(t, d, w.last)
	}
}
