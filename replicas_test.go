package signalbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// WithReplicas tells how many replicas have the grant, and those have it.
func TestReplicasHaveTheGrant(t *testing.T) {
	t.Parallel()
	primary := difftest.Redis(t, "--repl-diskless-sync-delay", "0")
	host, port := "127.0.0.1", primary.Addr[len("127.0.0.1:"):]
	replica := difftest.Redis(t, "--replicaof", host+" "+port)
	ctx := t.Context()
	copied := redis.NewClient(&redis.Options{Addr: replica.Addr})
	defer copied.Close()
	box := openBox(t, primary.Addr)
	awaitReplica(t, box)
	lease, err := box.Mutex("m").Acquire(ctx, signalbox.WithReplicas(1, patience))
	if err != nil {
		t.Fatal(err)
	}
	if lease.Replicas() != 1 {
		t.Errorf("%d replicas have the grant", lease.Replicas())
	}
	if line, err := copied.HGet(ctx, "signalbox:{m}", "clock").Result(); err != nil || !strings.Contains(line, lease.ID()) {
		t.Errorf("the replica does not know the lease: %q, %v", line, err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	replica.Pause()
	defer replica.Resume()
	lease, err = box.Mutex("m").Acquire(ctx, signalbox.WithReplicas(1, 50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if lease.Replicas() != 0 {
		t.Errorf("%d replicas have the grant, and the only one is stopped", lease.Replicas())
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
}

// awaitReplica returns when the replica has joined.
func awaitReplica(t *testing.T, box *signalbox.Box) {
	t.Helper()
	for end := time.Now().Add(2 * patience); ; {
		lease, err := box.Mutex("joined").Acquire(t.Context(), signalbox.WithReplicas(1, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lease.Replicas() == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the replica does not join")
		}
	}
}
