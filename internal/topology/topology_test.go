package topology_test

import (
	"fmt"
	"testing"

	"github.com/signalbox-io/signalbox/internal/topology"
)

func TestMain(m *testing.M) { topology.Main(m) }

// TestCluster lets everything happen to one Cluster that the fault tests let happen, one after the other.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := topology.StartCluster(t, topology.ClusterOptions{})
	owners := map[*topology.Node]bool{}
	for i := range 50 {
		owners[c.PrimaryOf(fmt.Sprint(i))] = true
	}
	if len(owners) != 3 {
		t.Fatalf("50 names have %d owners, want 3", len(owners))
	}

	old := c.PrimaryOf("a")
	if next := c.Failover("a"); next == old || c.PrimaryOf("a") != next || c.ReplicaOf(next) != old {
		t.Fatalf("%s was to take over from %s", next.Addr, old.Addr)
	}

	from, key := c.PrimaryOf("b"), "signalbox:{b}"
	if err := from.Client.Set(t.Context(), key, "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	to := c.MigrateSlot("b", nil)
	if value := to.Client.Get(t.Context(), key).Val(); value != "kept" || to == from || c.PrimaryOf("b") != to {
		t.Fatalf("the new owner has %q", value)
	}
	if err := from.Client.Get(t.Context(), key).Err(); err == nil || from.Refusals(t, "MOVED") != 1 {
		t.Fatalf("the old owner says %v and counts %d", err, from.Refusals(t, "MOVED"))
	}

	added := c.AddPrimary()
	c.MoveSlot("b", added, nil)
	if c.PrimaryOf("b") != added {
		t.Fatal("the added node does not serve what it was given")
	}

	dead := c.PrimaryOf("a")
	dead.Quiesce(t)
	dead.Kill()
	if next := c.AwaitTakeover("a", dead); next == dead || c.PrimaryOf("a") != next {
		t.Fatalf("%s was to take over", next.Addr)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := topology.StartSentinel(t, topology.SentinelOptions{})
	first := s.Primary()
	second := s.Failover()
	if second == first || s.Primary() != second {
		t.Fatalf("%s was to take over from %s", second.Addr, first.Addr)
	}
	second.Pause()
	third := s.AwaitTakeover(second)
	second.Resume()
	s.AwaitWhole()
	third.Kill()
	if fourth := s.AwaitTakeover(third); fourth == third {
		t.Fatalf("%s was to take over", fourth.Addr)
	}
}
