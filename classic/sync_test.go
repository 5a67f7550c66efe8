package classic_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/classic"
)

func TestWaitForSyncReturnsWhenTheReplicaHasTheData(t *testing.T) {
	onEachPair(t, func(t *testing.T, p pair, _ another) {
		primary, replica := p.primary, p.replica
		a := primary.actor(t, "a")
		must(t, a.Redis.Set(t.Context(), "k", "v", 0).Err())
		old := float64(epoch.Add(-20 * time.Minute).Unix())
		must(t, primary.admin.ZAdd(t.Context(), "sync:wait", redis.Z{Score: old, Member: "forgotten"}).Err())
		client := a.Client
		client.Clock = nil // the system's: data takes its time
		must(t, classic.WaitForSync(t.Context(), client, replica.admin))
		if got := replica.admin.Get(t.Context(), "k").Val(); got != "v" {
			t.Errorf("the replica has %q, want v", got)
		}
		primary.wantNoKeys(t, "k") // neither its token nor what was forgotten
	})
}

func TestWaitForSyncRefusesWhatNeverEnds(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		wantErr(t, classic.WaitForSync(t.Context(), a.Client, s.admin), classic.ErrNotReplica)
		s.wantNoKeys(t)
	})
	onEachPair(t, func(t *testing.T, p pair, _ another) {
		primary, replica := p.primary, p.replica
		must(t, replica.admin.ConfigSet(t.Context(), "appendonly", "no").Err())
		client := primary.actor(t, "a").Client
		client.Clock = nil
		wantErr(t, classic.WaitForSync(t.Context(), client, replica.admin), classic.ErrNoAppendOnly)
		primary.wantNoKeys(t)
	})
}

func TestWaitForSyncWaitsWhileTheLinkIsDown(t *testing.T) {
	onEachPair(t, func(t *testing.T, p pair, _ another) {
		primary, replica := p.primary, p.replica
		a := primary.actor(t, "a")
		must(t, replica.admin.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err()) // where nobody answers
		a.clock.sleeps = 2
		asked := replica.actor(t, "replica")
		wantErr(t, classic.WaitForSync(t.Context(), a.Client, asked.Redis), errNoPatience)
		wantRequests(t, asked, "info", "info", "info") // and not for the token yet
		primary.wantNoKeys(t)
	})
}

func TestWaitForSyncSaysNothingOfAnotherReplica(t *testing.T) {
	onEachPair(t, func(t *testing.T, p pair, more another) {
		primary, replica := p.primary, p.replica
		other := more(t)
		follow(t, other, primary)
		must(t, other.admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err()) // cut off, and promoted later
		client := primary.actor(t, "a").Client
		client.Clock = nil
		must(t, client.Redis.Set(t.Context(), "k", "v", 0).Err())
		must(t, classic.WaitForSync(t.Context(), client, replica.admin))
		if n := other.admin.Exists(t.Context(), "k").Val(); n != 0 {
			t.Fatal("the other has the data as well")
		}
	})
}

// Whatever is written, to the last moment before a failover, may be missing
// after it: the lock of somebody who still believes in it, for one.
func TestFailoverLosesALockThatWasNotReplicated(t *testing.T) {
	onEachPair(t, func(t *testing.T, p pair, _ another) {
		primary, replica := p.primary, p.replica
		for _, name := range []string{"Lock", "LuaLock", "BinaryLock"} {
			must(t, replica.admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err()) // the link breaks; it is promoted
			get(lockers(primary.actor(t, "a").Client)[name].Acquire(t, time.Second))(t)
			get(lockers(replica.actor(t, "b").Client)[name].Acquire(t, time.Second))(t) // two hold it
			must(t, primary.admin.FlushAll(t.Context()).Err())
			must(t, replica.admin.FlushAll(t.Context()).Err())
		}
	})
}

func TestWaitForSyncFastClockRemovesATokenThatIsWaitedFor(t *testing.T) {
	onEachPair(t, func(t *testing.T, p pair, more another) {
		primary, replica := p.primary, p.replica
		a, b := primary.actor(t, "a"), primary.actor(t, "b")
		other := more(t) // the replica that a waits for; its link comes up later
		must(t, other.admin.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
		client := b.Client
		client.Clock = fast{}
		a.clock.sleeps = 100
		a.clock.onSleep = func() { // a's token is on the primary, and nowhere else
			must(t, classic.WaitForSync(t.Context(), client, replica.admin))
			follow(t, other, primary)
		}
		wantErr(t, classic.WaitForSync(t.Context(), a.Client, other.admin), errNoPatience) // for what never comes
	})
}

// fast is a clock an hour ahead of the actors', that does not move.
type fast struct{}

func (fast) Now() time.Time { return epoch.Add(time.Hour) }

func (fast) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }
