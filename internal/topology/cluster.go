package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// ClusterOptions say how large a Cluster is. Zero values are replaced.
type ClusterOptions struct {
	Primaries int // 3; a failover is voted on by the primaries, so three is the least that survives one
	Replicas  int // 3, dealt out to the primaries in turn; -1 = none
	// NodeTimeout is for how long a node may be silent before the others replace it: 10 s, which is to be longer than
	// the machine may stall.
	NodeTimeout time.Duration
}

// hurried is the NodeTimeout in place of that until a Cluster is whole, and while a failover is wanted: it is also the
// pace at which nodes tell each other what is new.
const hurried = time.Second

func (o *ClusterOptions) fill() {
	if o.Primaries == 0 {
		o.Primaries = 3
	}
	if o.Replicas == 0 {
		o.Replicas = 3
	}
	o.Replicas = max(o.Replicas, 0)
	if o.NodeTimeout == 0 {
		o.NodeTimeout = 10 * time.Second
	}
}

// slotCount is the number of slots of every Cluster.
const slotCount = 16384

// Cluster is a Redis Cluster of this test's own.
type Cluster struct {
	t       testing.TB
	options ClusterOptions
	nodes   []*Node
}

// StartCluster returns a Cluster that is up: all nodes agree on who has which slots, and all replicas follow.
func StartCluster(t testing.TB, options ClusterOptions) *Cluster {
	t.Helper()
	options.fill()
	c := &Cluster{t: t, options: options}
	for i := range options.Primaries + options.Replicas {
		n := c.startNode()
		must(t, n.Client.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		if i < options.Primaries {
			first, behind := i*slotCount/options.Primaries, (i+1)*slotCount/options.Primaries
			must(t, n.Client.ClusterAddSlotsRange(t.Context(), first, behind-1).Err())
		}
	}
	lastWords(t, func() (servers []*difftest.Server) {
		for _, n := range c.nodes {
			servers = append(servers, n.Server)
		}
		return servers
	})
	for _, n := range c.nodes[1:] {
		c.meet(n)
	}
	c.AwaitWhole()
	for i, n := range c.nodes[options.Primaries:] {
		must(t, n.Client.ClusterReplicate(t.Context(), c.nodes[i%options.Primaries].id).Err())
	}
	c.AwaitWhole()
	c.setNodeTimeout(options.NodeTimeout)
	return c
}

// startNode starts a node that knows nobody.
func (c *Cluster) startNode() *Node {
	c.t.Helper()
	dir, bus := c.t.TempDir(), ""
	server := difftest.Start(c.t, func(port string) []string {
		bus = difftest.FreePort(c.t)
		return []string{
			difftest.RedisServer(c.t), "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no",
			"--enable-debug-command", "yes", "--cluster-enabled", "yes", "--cluster-port", bus,
			"--cluster-node-timeout", fmt.Sprint(hurried.Milliseconds()), // they find each other sooner
			"--repl-diskless-sync-delay", "0",
		}
	})
	n := newNode(c.t, server)
	n.bus = bus
	var err error
	n.id, err = n.Client.ClusterMyID(c.t.Context()).Result()
	must(c.t, err)
	c.nodes = append(c.nodes, n)
	return n
}

// meet introduces a node to the first that lives; AwaitWhole returns once everybody has heard of it.
func (c *Cluster) meet(n *Node) {
	c.t.Helper()
	host, port := n.HostPort()
	must(c.t, c.live()[0].Client.Do(c.t.Context(), "CLUSTER", "MEET", host, port, n.bus).Err())
}

// AddPrimary has one more node join, without slots: MoveSlot gives it some.
func (c *Cluster) AddPrimary() *Node {
	c.t.Helper()
	c.setNodeTimeout(hurried)
	defer c.setNodeTimeout(c.options.NodeTimeout)
	n := c.startNode()
	c.meet(n)
	c.AwaitWhole()
	return n
}

// URL is what signalbox.Open takes.
func (c *Cluster) URL() string {
	var hosts []string
	for _, n := range c.live() {
		hosts = append(hosts, n.Addr)
	}
	return "redis+cluster://" + strings.Join(hosts, ",")
}

// Nodes returns all nodes that are neither killed nor paused.
func (c *Cluster) Nodes() []*Node { return slices.Clone(c.live()) }

// Primaries returns those of Nodes that serve slots.
func (c *Cluster) Primaries() (nodes []*Node) {
	c.t.Helper()
	view := c.AwaitWhole()
	for _, n := range c.live() {
		if len(view[n.id].slots) > 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (c *Cluster) live() (nodes []*Node) {
	for _, n := range c.nodes {
		if !n.down {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// SlotOf returns the slot that the keys of a resource are in.
func (c *Cluster) SlotOf(name string) int {
	c.t.Helper()
	resource, err := ledger.NewResource(name)
	must(c.t, err)
	slot, err := c.live()[0].Client.ClusterKeySlot(c.t.Context(), resource.Keys()[0]).Result()
	must(c.t, err)
	return int(slot)
}

// PrimaryOf returns the node that serves a resource, as the nodes agree.
func (c *Cluster) PrimaryOf(name string) *Node {
	c.t.Helper()
	slot := c.SlotOf(name)
	view := c.AwaitWhole()
	for _, n := range c.nodes {
		if view[n.id].owns(slot) {
			return n
		}
	}
	c.t.Fatalf("nobody serves slot %d of %q", slot, name)
	return nil
}

// ReplicaOf returns a replica of a primary that is alive.
func (c *Cluster) ReplicaOf(primary *Node) *Node {
	c.t.Helper()
	view := c.AwaitWhole()
	for _, n := range c.live() {
		if view[n.id].primary == primary.id {
			return n
		}
	}
	c.t.Fatalf("%s has no replica", primary.Addr)
	return nil
}

// Failover has a replica take over from the primary of a resource, which takes part in it: nothing is lost. It returns
// the new primary.
func (c *Cluster) Failover(name string) *Node {
	c.t.Helper()
	replica := c.ReplicaOf(c.PrimaryOf(name))
	c.setNodeTimeout(hurried)
	defer c.setNodeTimeout(c.options.NodeTimeout)
	must(c.t, replica.Client.ClusterFailover(c.t.Context()).Err())
	again := time.Now().Add(hurried + manualFailoverTimeout)
	await(c.t, replica.Addr+" as primary", func(ctx context.Context) bool {
		if info := replica.replication(ctx); info["role"] == "master" {
			return true
		}
		if time.Now().After(again) { // it gave up: a vote was late
			again = time.Now().Add(hurried + manualFailoverTimeout)
			return replica.Client.ClusterFailover(ctx).Err() != nil
		}
		return false
	})
	c.AwaitWhole()
	return replica
}

// manualFailoverTimeout is how long Redis itself tries.
const manualFailoverTimeout = 5 * time.Second

// AwaitTakeover returns who serves a resource once that is not `old` any more, which was killed or paused.
func (c *Cluster) AwaitTakeover(name string, old *Node) *Node {
	c.t.Helper()
	slot := c.SlotOf(name)
	c.setNodeTimeout(hurried)
	defer c.setNodeTimeout(c.options.NodeTimeout)
	var next *Node
	await(c.t, "a node in the place of "+old.Addr, func(ctx context.Context) bool {
		view, ok := c.agreed(ctx)
		for _, n := range c.live() {
			if n != old && ok && view[n.id].owns(slot) {
				next = n
			}
		}
		return next != nil
	})
	return next
}

// setNodeTimeout is told to all nodes that are alive.
func (c *Cluster) setNodeTimeout(timeout time.Duration) {
	c.t.Helper()
	for _, n := range c.live() {
		must(c.t, n.Client.ConfigSet(c.t.Context(), "cluster-node-timeout", fmt.Sprint(timeout.Milliseconds())).Err())
	}
}
