package topology

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A view is what one node of a Cluster thinks of all, by their ids. The Cluster is whole when every node that lives has
// the same view of those that live, says that its state is ok, and follows its primary if it is a replica.
type view map[string]member

type member struct {
	flags   []string
	primary string // of a replica
	slots   [][2]int
}

func (m member) has(flag string) bool { return slices.Contains(m.flags, flag) }

func (m member) owns(slot int) bool {
	return slices.ContainsFunc(m.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// parseView reads the answer of CLUSTER NODES. Slots on their way are left out.
func parseView(text string) view {
	v := make(view)
	for line := range strings.Lines(text) {
		part := strings.Fields(line)
		if len(part) < 8 {
			continue
		}
		m := member{flags: strings.Split(part[2], ",")}
		if part[3] != "-" {
			m.primary = part[3]
		}
		for _, text := range part[8:] {
			first, last, isRange := strings.Cut(text, "-")
			if !isRange {
				last = first
			}
			from, errFrom := strconv.Atoi(first)
			to, errTo := strconv.Atoi(last)
			if errFrom == nil && errTo == nil {
				m.slots = append(m.slots, [2]int{from, to})
			}
		}
		v[part[0]] = m
	}
	return v
}

// of keeps what the view says of some nodes, without the mark of the one whose view it is.
func (v view) of(nodes []*Node) view {
	kept := make(view)
	for _, n := range nodes {
		m, ok := v[n.id]
		if !ok {
			continue
		}
		m.flags = slices.DeleteFunc(slices.Clone(m.flags), func(flag string) bool { return flag == "myself" })
		kept[n.id] = m
	}
	return kept
}

func (v view) equal(other view) bool {
	return maps.EqualFunc(v, other, func(a, b member) bool {
		return a.primary == b.primary && slices.Equal(a.flags, b.flags) && slices.Equal(a.slots, b.slots)
	})
}

// agreed returns the view that all living nodes share, and whether they do.
func (c *Cluster) agreed(ctx context.Context) (view, bool) {
	nodes := c.live()
	var common view
	for _, n := range nodes {
		if !strings.Contains(n.Client.ClusterInfo(ctx).Val(), "cluster_state:ok") {
			return nil, false
		}
		own := parseView(n.Client.ClusterNodes(ctx).Val()).of(nodes)
		if common == nil {
			common = own
		}
		if len(own) != len(nodes) || !own.equal(common) {
			return nil, false
		}
		if own[n.id].has("slave") && !n.follows(ctx) {
			return nil, false
		}
	}
	return common, true
}

// AwaitWhole returns when the Cluster is whole, with the view that all nodes share.
func (c *Cluster) AwaitWhole() view {
	c.t.Helper()
	var common view
	await(c.t, "a whole Cluster", func(ctx context.Context) (ok bool) {
		common, ok = c.agreed(ctx)
		return ok
	})
	return common
}

// PassedOn is how many messages of clients the nodes have passed on to each other.
func (c *Cluster) PassedOn() (sum int) {
	c.t.Helper()
	for _, n := range c.nodes {
		info, err := n.Client.ClusterInfo(c.t.Context()).Result()
		must(c.t, err)
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if strings.HasPrefix(name, "cluster_stats_messages_publish") && strings.HasSuffix(name, "_sent") {
				n, err := strconv.Atoi(value)
				must(c.t, err)
				sum += n
			}
		}
	}
	return sum
}
