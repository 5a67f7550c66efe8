package aof_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk"
)

// A hundred clients who commit at once share two syncs: the one that the first of them began, and one for all
// who came while it ran.
func TestCommitsShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memory()
		l := start(t, d, aof.Options{Policy: aof.Always})
		before, writes := d.Syncs(), d.Writes()
		d.SlowSyncs(time.Millisecond)
		var clients sync.WaitGroup
		for n := range 100 {
			seq, _ := l.Append(request(n + 1))
			clients.Go(func() {
				if err := l.Commit(seq); err != nil {
					t.Error(err)
				}
			})
			if n == 0 {
				synctest.Wait() // the first one is at the disk
			}
		}
		clients.Wait()
		if got := d.Syncs() - before; got != 2 {
			t.Errorf("%d syncs, want 2", got)
		}
		if got := d.Writes() - writes; got != 2 {
			t.Errorf("%d writes, want 2", got)
		}
		must(t, l.Close())
		wantNumbers(t, d, 100)
	})
}

func TestEverySecondSyncsEachSecondIfThereIsSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memory()
		w := &work{l: start(t, d, aof.Options{Policy: aof.EverySecond})}
		before := d.Syncs()
		must(t, w.add(1))
		if got := d.Syncs() - before; got != 0 {
			t.Errorf("%d syncs before a second has gone", got)
		}
		time.Sleep(1100 * time.Millisecond)
		wantNumbers(t, d.PowerCut(1), 1)
		time.Sleep(5 * time.Second)
		if got := d.Syncs() - before; got != 1 {
			t.Errorf("%d syncs of one write", got)
		}
		must(t, w.l.Close())
	})
}

// A sync that takes long holds writers back from its third second on.
func TestSlowSyncHoldsWritersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memory()
		w := &work{l: start(t, d, aof.Options{Policy: aof.EverySecond})}
		must(t, w.add(1))
		d.SlowSyncs(10 * time.Second)
		time.Sleep(2 * time.Second) // one of which the sync has run
		began := time.Now()
		must(t, w.add(1))
		if took := time.Since(began); took != 0 {
			t.Errorf("after a second the writer waits %v", took)
		}
		if s := w.l.Status(); !s.PendingSync || s.DelayedSyncs != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(2 * time.Second)
		must(t, w.add(1))
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("the writer has gone on after %v, want it to wait for the sync", took)
		}
		if got := w.l.Status().DelayedSyncs; got != 1 {
			t.Errorf("%d delayed syncs", got)
		}
		must(t, w.l.Close())
	})
}

func TestPolicyChangesForThoseWhoWait(t *testing.T) {
	d := memory()
	w := &work{l: start(t, d, aof.Options{Policy: aof.Never})}
	must(t, w.add(2))
	w.l.SetPolicy(aof.Always)
	must(t, w.add(0))
	must(t, w.add(1))
	wantNumbers(t, d.PowerCut(1), 3)
	must(t, w.l.Close())
}

func TestAppendSaysWhenTooMuchIsPending(t *testing.T) {
	d := memory()
	l := start(t, d, aof.Options{MaxBufferBytes: 3 * len(request(1))})
	for n, want := range []bool{false, false, true} {
		if _, full := l.Append(request(n + 1)); full != want {
			t.Errorf("request %d: full is %v", n+1, full)
		}
	}
	must(t, l.Sync())
	if got := l.Status().BufferBytes; got != 0 {
		t.Errorf("%d bytes are pending still", got)
	}
	must(t, l.Close())
	wantNumbers(t, d, 3)
}

// Clients commit while rewrites come and go; run it with -race.
func TestCommitsBesideRewrites(t *testing.T) {
	for _, policy := range []aof.Policy{aof.Always, aof.EverySecond} {
		d := memory()
		l := start(t, d, aof.Options{Policy: policy})
		var engine sync.Mutex
		last := 0
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for range 100 {
					engine.Lock()
					last++
					seq, _ := l.Append(request(last))
					engine.Unlock()
					if err := l.Commit(seq); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 5 {
			engine.Lock()
			r, err := l.Begin()
			upTo := last
			engine.Unlock()
			must(t, err)
			base, err := r.Create(aof.BaseAOF)
			must(t, err)
			for n := range upTo {
				_, err := base.Write(request(n + 1))
				must(t, err)
			}
			must(t, r.Finish())
		}
		clients.Wait()
		must(t, l.Close())
		wantNumbers(t, d, 800)
	}
}

func BenchmarkCommit(b *testing.B) {
	for name, policy := range map[string]aof.Policy{"always": aof.Always, "everysec": aof.EverySecond} {
		b.Run(name, func(b *testing.B) {
			l := start(b, disk.At(b.TempDir()), aof.Options{Policy: policy})
			text := request(1)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			b.SetParallelism(32) // clients per processor
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					seq, _ := l.Append(text)
					if err := l.Commit(seq); err != nil {
						b.Error(err)
						return
					}
				}
			})
			must(b, l.Close())
		})
	}
}
