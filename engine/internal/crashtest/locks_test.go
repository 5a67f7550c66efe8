package crashtest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// Locks and semaphores of the library on an engine that is killed: with appendfsync always a kill
// is an interruption, and no more.

var lockSettings = []string{"appendonly=yes", "appendfsync=always", "save=", "auto-aof-rewrite-min-size=4kb", "auto-aof-rewrite-percentage=50"}

// open opens a box on the engine.
func open(t *testing.T, f *folder) *signalbox.Box {
	t.Helper()
	box, err := signalbox.Open(t.Context(), "unix://"+f.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

// A holder and a waiter outlive the kill of their server: the holder keeps its lease, the waiter its
// place, and nobody is granted what another one holds.
func TestAHolderAndAWaiterSurviveAKill(t *testing.T) {
	f := newFolder(t, policy{settings: lockSettings})
	defer f.remove(t)
	c := start(t, f.dir, f.socket, lockSettings)
	holder, err := open(t, f).Mutex("job").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan *signalbox.Lease, 1)
	waiting := open(t, f)
	go func() {
		lease, err := waiting.Mutex("job").Acquire(t.Context())
		if err != nil {
			t.Error(err)
		}
		granted <- lease
	}()
	onlooker := open(t, f)
	faults.Await(t, "a waiter in the queue", func() bool {
		status, err := onlooker.Inspect(t.Context(), "job")
		return err == nil && status.Waiters == 1
	})
	for range 3 {
		c.kill(t)
		c = start(t, f.dir, f.socket, lockSettings)
		faults.Await(t, "holder and waiter as before", func() bool {
			status, err := onlooker.Inspect(t.Context(), "job")
			if err == nil && (len(status.Holders) != 1 || status.Waiters != 1 || status.Holders[0].Token != holder.Token()) {
				t.Fatalf("after a kill there are %+v", status)
			}
			return err == nil
		})
		if _, err := onlooker.Mutex("job").TryAcquire(t.Context()); !errors.Is(err, signalbox.ErrBusy) {
			t.Fatalf("a third is told %v", err)
		}
	}
	if err := holder.Err(); err != nil {
		t.Fatalf("the holder has lost its lease: %v", err)
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := <-granted
	if next == nil || next.Token() <= holder.Token() {
		t.Fatalf("the waiter has %v after token %d", next, holder.Token())
	}
	if err := next.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.kill(t)
}

// L1 and L2 hold for everybody, and everybody gets a turn, while the engine is killed again and again.
func TestLocksSurviveAKill(t *testing.T) {
	kills := min(100, number(t, "CRASH_ROUNDS", defaultRounds)/12)
	f := newFolder(t, policy{settings: lockSettings})
	defer f.remove(t)
	c := start(t, f.dir, f.socket, lockSettings)
	well := redis.NewClient(&redis.Options{
		Network: "unix", Addr: f.socket, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() {
		if err := well.Close(); err != nil {
			t.Error(err)
		}
	}()
	load := faults.StartLoad(t, faults.Setup{
		URL: "unix://" + f.socket + "?read_timeout=200ms", Well: "unix://" + f.socket,
		Servers: func() []*redis.Client { return []*redis.Client{well} },
	})
	r := rand.New(rand.NewPCG(uint64(number(t, "SEED", 1)), 99))
	for range kills {
		c.kill(t)
		if r.IntN(3) == 0 { // and while it loads
			c = start(t, f.dir, f.socket, lockSettings)
			time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
			c.kill(t)
		}
		c = start(t, f.dir, f.socket, lockSettings)
		load.Granted(100)
		if r.IntN(2) == 0 { // the next kill comes in the middle of a rewrite, perhaps
			if err := well.BgRewriteAOF(context.Background()).Err(); err != nil {
				t.Logf("no rewrite: %v", err) // one runs already
			}
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
	}
	load.Finish()
	c.kill(t)
}
