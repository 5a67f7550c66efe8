package queue

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// gate lets the queue's commands through when its server is known to be one that can be worked with. An old one would begin a
// transition, and stop in its middle. As long as nobody knows, everybody asks; that is not for long.
type gate struct {
	transport.Transport
	queue string
	open  atomic.Bool
}

// Do is part of transport.Transport.
func (g *gate) Do(ctx context.Context, command transport.Command) (any, error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	return g.Transport.Do(ctx, command)
}

func (g *gate) check(ctx context.Context) error {
	if g.open.Load() {
		return nil
	}
	_, err := ledger.New(g.Transport).Within(answerWithin).CheckServer(ctx)
	if err == nil {
		err = store.CheckRights(ctx, g.Transport, g.queue)
	}
	if err == nil {
		g.open.Store(true)
	}
	return err
}

func (q *Queue) checkServer(ctx context.Context) error {
	if err := q.gate.check(ctx); err != nil {
		return fmt.Errorf("queue %q: %w", q.name, err)
	}
	return nil
}
