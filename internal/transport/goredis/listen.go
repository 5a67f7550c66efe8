package goredis

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// Listen is part of transport.Transport. A go-redis subscription would open a new connection by itself; it is closed
// before it can, so that the caller hears of the loss.
func (t *Transport) Listen(ctx context.Context, channels []string, hear func(transport.Event)) error {
	return t.receive(ctx, t.client.Subscribe(ctx, channels...), hear)
}

// receive closes a subscription when it has ended.
func (t *Transport) receive(ctx context.Context, subscription *redis.PubSub, hear func(transport.Event)) error {
	var once sync.Once
	shut := func() {
		// A subscription that failed has nothing left to report when it closes.
		once.Do(func() { _ = subscription.Close() })
	}
	defer shut()
	defer context.AfterFunc(ctx, shut)()
	for silent := false; ; {
		received, err := subscription.ReceiveTimeout(ctx, transport.Silence)
		var network net.Error
		switch {
		case err == nil:
			silent = false
			tell(received, hear)
		case !silent && errors.As(err, &network) && network.Timeout():
			silent = true
			if err := subscription.Ping(ctx); err != nil {
				return neutral(err)
			}
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			err = neutral(err)
			t.lookAround(ctx, err)
			return err
		}
	}
}

func tell(received any, hear func(transport.Event)) {
	switch received := received.(type) {
	case *redis.Subscription:
		gone := received.Kind == "sunsubscribe"
		hear(transport.Event{Channel: received.Channel, Subscribed: !gone, Gone: gone})
	case *redis.Message:
		hear(transport.Event{Channel: received.Channel, Payload: received.Payload})
	}
}

// Sharded is part of transport.Clustered.
func (t *Transport) Sharded() bool { return t.cluster != nil }

// Ear is part of transport.Clustered. It belongs to one node, whatever moves.
func (t *Transport) Ear(ctx context.Context, channel string) (transport.Ear, error) {
	node, err := t.cluster.MasterForKey(ctx, channel)
	if err != nil {
		return nil, neutral(err)
	}
	return &ear{Transport: t, node: node}, nil
}

type ear struct {
	*Transport
	node         *redis.Client
	subscription *redis.PubSub
}

// Server is part of transport.Ear.
func (e *ear) Server() string { return e.node.Options().Addr }

// Join is part of transport.Ear.
func (e *ear) Join(ctx context.Context, channel string) error {
	if e.subscription == nil {
		e.subscription = e.node.SSubscribe(ctx)
	}
	return neutral(e.subscription.SSubscribe(ctx, channel))
}

// Leave is part of transport.Ear.
func (e *ear) Leave(ctx context.Context, channel string) error {
	return neutral(e.subscription.SUnsubscribe(ctx, channel))
}

// Hear is part of transport.Ear. A channel that is gone, or is somewhere else, is looked for where the slots are now.
func (e *ear) Hear(ctx context.Context, hear func(transport.Event)) error {
	err := e.receive(ctx, e.subscription, func(event transport.Event) {
		if event.Gone {
			e.cluster.ReloadState(ctx)
		}
		hear(event)
	})
	if err != nil && ctx.Err() == nil {
		e.cluster.ReloadState(ctx)
	}
	return err
}
