package rueidisbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// rueidis keeps to itself which server of a Cluster has a slot, and a connection of its Cluster's client is for one slot. So
// the servers are asked for their slots, and an ear is a connection of the client of one of them. What they said is
// remembered until a channel is not where it was.

// slots is who serves what, as the servers said; nil if they have to be asked (again).
type slots struct {
	mu     sync.Mutex
	ranges []slotRange
}

type slotRange struct {
	from, to int64
	addr     string
}

// Sharded is part of transport.Clustered.
func (c *carrier) Sharded() bool { return c.client.Mode() == rueidis.ClientModeCluster }

// Ear is part of transport.Clustered.
func (c *carrier) Ear(ctx context.Context, channel string) (transport.Ear, error) {
	join := c.client.B().Ssubscribe().Channel(channel).Build()
	slot := int64(join.Slot())
	ranges, err := c.served(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range ranges {
		if slot < r.from || slot > r.to {
			continue
		}
		if node := c.client.Nodes()[r.addr]; node != nil {
			return &shardEar{carrier: c, addr: r.addr, node: node}, nil
		}
		break // rueidis has not met it yet
	}
	c.slots.forget()
	return nil, fmt.Errorf("no server is known for slot %d of channel %q", slot, channel)
}

// served asks any server that answers.
func (c *carrier) served(ctx context.Context) ([]slotRange, error) {
	c.slots.mu.Lock()
	defer c.slots.mu.Unlock()
	if c.slots.ranges != nil {
		return c.slots.ranges, nil
	}
	failure := errors.New("the client knows no server")
	for addr, client := range c.client.Nodes() {
		answer, err := (&carrier{client: client}).Do(ctx, transport.Command{Words: []any{"cluster", "slots"}})
		if err != nil {
			failure = err
			continue
		}
		if c.slots.ranges, failure = slotRanges(answer, addr); failure == nil {
			return c.slots.ranges, nil
		}
	}
	return nil, failure
}

func (s *slots) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ranges = nil
}

// slotRanges reads the answer of CLUSTER SLOTS: of each range the first and the last slot, and the primary's host and port.
// A host that is not known is that of the server which was asked.
func slotRanges(answer any, asked string) ([]slotRange, error) {
	lines, _ := answer.([]any)
	ranges := make([]slotRange, 0, len(lines))
	for _, line := range lines {
		parts, _ := line.([]any)
		if len(parts) < 3 {
			return nil, fmt.Errorf("CLUSTER SLOTS of %s says %v", asked, answer)
		}
		primary, _ := parts[2].([]any)
		if len(primary) < 2 {
			return nil, fmt.Errorf("CLUSTER SLOTS of %s says %v", asked, answer)
		}
		from, _ := parts[0].(int64)
		to, _ := parts[1].(int64)
		host, _ := primary[0].(string)
		port, _ := primary[1].(int64)
		if host == "" || host == "?" {
			host, _, _ = net.SplitHostPort(asked) // an address that rueidis connects to
		}
		ranges = append(ranges, slotRange{from, to, net.JoinHostPort(host, strconv.FormatInt(port, 10))})
	}
	return ranges, nil
}

// shardEar hears at one server of a Cluster, whatever moves.
type shardEar struct {
	*carrier
	addr       string
	node       rueidis.Client
	connection rueidis.DedicatedClient
	lost       <-chan error
	ear
}

// Server is part of transport.Ear.
func (e *shardEar) Server() string { return e.addr }

// Join is part of transport.Ear.
func (e *shardEar) Join(ctx context.Context, channel string) error {
	if e.connection == nil {
		e.connection, _ = e.node.Dedicate()
		e.lost = e.connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: e.message, OnSubscription: e.subscription})
	}
	e.expect(channel)
	err := e.neutral(ctx, e.subscribe(ctx, channel))
	if err != nil {
		e.slots.forget()
	}
	return err
}

func (e *shardEar) subscribe(ctx context.Context, channel string) error {
	return e.connection.Do(ctx, e.connection.B().Ssubscribe().Channel(channel).Build()).Error()
}

// Leave is part of transport.Ear.
func (e *shardEar) Leave(ctx context.Context, channel string) error {
	return e.neutral(ctx, e.connection.Do(ctx, e.connection.B().Sunsubscribe().Channel(channel).Build()).Error())
}

// Hear is part of transport.Ear.
func (e *shardEar) Hear(ctx context.Context, hear func(transport.Event)) error {
	defer e.connection.Close()
	defer e.close()
	e.open(func(event transport.Event) {
		if event.Gone {
			e.slots.forget()
		}
		hear(event)
	})
	err := e.await(ctx, e.lost, func(ctx context.Context) error {
		if channel, any := e.any(); any {
			return e.subscribe(ctx, channel)
		}
		return nil
	})
	if ctx.Err() == nil {
		e.slots.forget()
	}
	return e.neutral(ctx, err)
}
