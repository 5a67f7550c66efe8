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
	subscription := t.client.Subscribe(ctx, channels...)
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
			return neutral(err)
		}
	}
}

func tell(received any, hear func(transport.Event)) {
	switch received := received.(type) {
	case *redis.Subscription:
		hear(transport.Event{Channel: received.Channel, Subscribed: true})
	case *redis.Message:
		hear(transport.Event{Channel: received.Channel, Payload: received.Payload})
	}
}
