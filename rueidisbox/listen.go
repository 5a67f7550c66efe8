package rueidisbox

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// A subscription has a connection of its own: rueidis could put it on one it shares with others, but would leave the
// channel subscribed there, and would open a new one by itself without telling that messages went by. It is closed at the
// end, so that nothing of it comes back into the pool.
//
// rueidis calls hooks from the goroutine that reads the connection. They hold the ear's lock, so that none is under way
// once Listen has returned.

// Listen is part of transport.Transport.
func (c *carrier) Listen(ctx context.Context, channels []string, hear func(transport.Event)) error {
	connection, _ := c.client.Dedicate()
	defer connection.Close()
	ear := &ear{hear: hear, missing: len(channels), last: time.Now()}
	defer ear.close()
	lost := connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: ear.message, OnSubscription: ear.subscription})
	subscribe := func(ctx context.Context) error {
		return connection.Do(ctx, connection.B().Subscribe().Channel(channels...).Build()).Error()
	}
	if err := subscribe(ctx); err != nil {
		return c.neutral(ctx, err)
	}
	look := time.NewTimer(transport.Silence)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			if err == nil { // another subscription took the place of this one, on a connection that could not be opened
				err = io.ErrUnexpectedEOF
			}
			return c.neutral(ctx, err)
		case <-look.C:
			if quiet := ear.quiet(); quiet < transport.Silence {
				look.Reset(transport.Silence - quiet)
				continue
			}
			// To subscribe again changes nothing, and is answered. A PING would go over another connection where
			// there is no RESP3.
			soon, done := context.WithTimeout(ctx, transport.Silence)
			err := subscribe(soon)
			done()
			if err != nil {
				return c.neutral(ctx, err)
			}
			look.Reset(transport.Silence)
		}
	}
}

// ear is where the hooks of one subscription bring what they hear.
type ear struct {
	hear func(transport.Event)

	mu      sync.Mutex
	last    time.Time // when something came
	missing int       // channels that are not confirmed yet
	shut    bool
}

func (e *ear) message(m rueidis.PubSubMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = time.Now()
	if !e.shut {
		e.hear(transport.Event{Channel: m.Channel, Payload: m.Message})
	}
}

// subscription takes the first confirmation of each channel for news, and all later ones for signs of life.
func (e *ear) subscription(s rueidis.PubSubSubscription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = time.Now()
	if s.Kind == "subscribe" && e.missing > 0 && !e.shut {
		e.missing--
		e.hear(transport.Event{Channel: s.Channel, Subscribed: true})
	}
}

func (e *ear) quiet() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Since(e.last)
}

func (e *ear) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
}
