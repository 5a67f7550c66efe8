package cluster_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/topology"
)

func TestMain(m *testing.M) { faults.Main(m) }

// site is a Cluster and a load on it.
type site struct {
	*faults.Load
	*topology.Cluster
	names []string // of what the load works on
}

// start begins the test. noFailure says that no caller may notice the fault.
func start(t *testing.T, noFailure bool) *site {
	t.Helper()
	faults.Begin(t)
	c := topology.StartCluster(t, topology.ClusterOptions{})
	names, owners := faults.Names(t), map[*topology.Node]bool{}
	for _, name := range names {
		owners[c.PrimaryOf(name)] = true
	}
	if len(owners) < 2 {
		t.Fatalf("all of %q are on one primary", names)
	}
	load := faults.StartLoad(t, faults.Setup{
		URL: c.URL() + "?read_timeout=500ms", Well: c.URL(), NoFailure: noFailure,
		Servers: func() (clients []*redis.Client) {
			for _, n := range c.Primaries() {
				clients = append(clients, n.Client)
			}
			return clients
		},
	})
	return &site{load, c, names}
}

// refusals is how often the living nodes have answered with an error that begins so.
func (s *site) refusals(t *testing.T, word string) (sum int) {
	t.Helper()
	for _, n := range s.Nodes() {
		sum += n.Refusals(t, word)
	}
	return sum
}
