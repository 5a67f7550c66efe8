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
	var ear ear
	defer ear.close()
	ear.expect(channels...)
	ear.open(hear)
	lost := connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: ear.message, OnSubscription: ear.subscription})
	subscribe := func(ctx context.Context) error {
		return connection.Do(ctx, connection.B().Subscribe().Channel(channels...).Build()).Error()
	}
	err := subscribe(ctx)
	if err == nil {
		err = ear.await(ctx, lost, subscribe)
	}
	return c.neutral(ctx, err)
}

// ear is where the hooks of one connection bring what they hear.
type ear struct {
	mu       sync.Mutex
	hear     func(transport.Event) // nil until it is open
	early    []transport.Event     // what came before that
	last     time.Time             // when something came
	channels map[string]bool       // what is subscribed to, and whether that was confirmed
	shut     bool
}

// expect says that channels are about to be subscribed to.
func (e *ear) expect(channels ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.channels == nil {
		e.channels, e.last = map[string]bool{}, time.Now()
	}
	for _, channel := range channels {
		e.channels[channel] = false
	}
}

func (e *ear) open(hear func(transport.Event)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.early {
		hear(event)
	}
	e.hear, e.early = hear, nil
}

func (e *ear) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
}

// await returns when the context ends or the connection is lost. again subscribes to what is subscribed to already, which
// changes nothing and is answered. (A PING would go over another connection where there is no RESP3.)
func (e *ear) await(ctx context.Context, lost <-chan error, again func(context.Context) error) error {
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
			return err
		case <-look.C:
			if quiet := e.quiet(); quiet < transport.Silence {
				look.Reset(transport.Silence - quiet)
				continue
			}
			soon, done := context.WithTimeout(ctx, transport.Silence)
			err := again(soon)
			done()
			if err != nil {
				return err
			}
			look.Reset(transport.Silence)
		}
	}
}

func (e *ear) message(m rueidis.PubSubMessage) {
	e.tell(func() (transport.Event, bool) { return transport.Event{Channel: m.Channel, Payload: m.Message}, true })
}

// subscription takes the first confirmation of each channel for news, and all later ones for signs of life.
func (e *ear) subscription(s rueidis.PubSubSubscription) {
	e.tell(func() (transport.Event, bool) {
		confirmed, known := e.channels[s.Channel]
		switch s.Kind {
		case "subscribe", "ssubscribe":
			if known {
				e.channels[s.Channel] = true
			}
			return transport.Event{Channel: s.Channel, Subscribed: true}, known && !confirmed
		case "sunsubscribe":
			delete(e.channels, s.Channel)
			return transport.Event{Channel: s.Channel, Gone: true}, true
		}
		return transport.Event{}, false
	})
}

func (e *ear) tell(what func() (transport.Event, bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = time.Now()
	event, news := what()
	switch {
	case !news || e.shut:
	case e.hear == nil:
		e.early = append(e.early, event)
	default:
		e.hear(event)
	}
}

func (e *ear) quiet() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Since(e.last)
}

// any returns one of the channels that are heard.
func (e *ear) any() (channel string, found bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for channel := range e.channels {
		return channel, true
	}
	return "", false
}
