package autocomplete_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/autocomplete"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// Every call works on a Cluster, whichever node has a dictionary's slot, and dictionaries spread over the nodes.
func TestCluster(t *testing.T) {
	ctx := t.Context()
	cluster := topology.StartCluster(t, topology.ClusterOptions{Replicas: -1, NodeTimeout: 30 * time.Second})
	var addrs []string
	for _, node := range cluster.Nodes() {
		addrs = append(addrs, node.Addr)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { must(t, c.Close()) })
	for i := range 12 {
		name := fmt.Sprint("dictionary ", i)
		d, want := autocomplete.New(c, name), model{}
		for j := range 700 { // more than a leaf holds
			id := fmt.Sprint(j)
			want[id] = autocomplete.Entry{ID: id, Text: fmt.Sprint("text ", j%10), Weight: float64(j)}
		}
		load(t, d, want)
		must(t, d.Set(ctx, autocomplete.Entry{ID: "new", Text: "text new", Weight: 0.5}))
		if _, err := d.Increment(ctx, "new", 1000); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Remove(ctx, "699"); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, d, "TEXT", 3); !slices.Equal(got, []string{"text new", "text 8", "text 7"}) {
			t.Errorf("%s: %q", name, got)
		}
		if n, err := d.Len(ctx); err != nil || n != 700 {
			t.Errorf("%s: %d entries (%v)", name, n, err)
		}
		r := autocomplete.NewRecent(c, name)
		must(t, r.Add(ctx, "ann", "bob"))
		if got, err := r.Match(ctx, "ann", "b", 1); err != nil || !slices.Equal(got, []string{"bob"}) {
			t.Errorf("%s: %q (%v)", name, got, err)
		}
	}
	for _, node := range cluster.Nodes() {
		if n := node.Client.DBSize(ctx).Val(); n == 0 {
			t.Errorf("%s has nothing", node.Addr)
		}
	}
	for i := range 12 {
		must(t, autocomplete.New(c, fmt.Sprint("dictionary ", i)).Drop(ctx))
	}
}
