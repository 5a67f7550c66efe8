//go:build unix

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// killer has the engine killed at moments in the course of one promise: they are counted in its requests, so that each
// promise is hit however short it takes, and at the same places for the same seed as far as its own course is the same.
type killer struct {
	engine *mortal
	busy   sync.WaitGroup // kills under way

	mu     sync.Mutex
	random *rand.Rand
	gap    int // requests until the next kill
	spread int // the largest gap; it doubles, so that long promises are not hit out of all proportion
	left   int // kills
}

func newKiller(engine *mortal, random *rand.Rand, kills int) *killer {
	const spread = 5
	return &killer{engine: engine, random: random, gap: random.IntN(3), spread: spread, left: kills}
}

// due says whether this request is to be hit, and how long after it was sent.
func (k *killer) due() (late time.Duration, hit bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gap--
	if k.gap >= 0 || k.left == 0 {
		return 0, false
	}
	k.left--
	k.spread *= 2
	k.gap = k.random.IntN(k.spread)
	return time.Duration(k.random.IntN(3000)) * time.Microsecond, true
}

// now kills before the request at hand, if it is one to be hit.
func (k *killer) now() {
	if _, hit := k.due(); hit {
		k.engine.restart(k.engine.lives.Load())
	}
}

// soon kills while the request at hand is under way, or a moment before or after.
func (k *killer) soon() {
	late, hit := k.due()
	if !hit {
		return
	}
	life := k.engine.lives.Load()
	k.busy.Go(func() {
		time.Sleep(late)
		k.engine.restart(life)
	})
}

// dial returns a client that is hit between two requests only.
func (k *killer) dial(t *testing.T) redis.UniversalClient {
	client := k.client(t)
	client.AddHook(shelter{k.engine})
	return client
}

func (k *killer) client(t *testing.T) *redis.Client {
	client := k.engine.client()
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// open returns a transport that is hit at any moment.
func (k *killer) open(t *testing.T) transport.Transport {
	return exposed{goredis.New(k.client(t)), k}
}

// steady returns a transport that is hit between two requests only.
func (k *killer) steady(t *testing.T) transport.Transport {
	return sheltered{goredis.New(k.client(t)), k}
}

var _, _ conformance.Open = (*killer)(nil).open, (*killer)(nil).steady

type exposed struct {
	transport.Transport
	killer *killer
}

func (e exposed) Do(ctx context.Context, command transport.Command) (any, error) {
	e.killer.soon()
	return e.Transport.Do(ctx, command)
}

func (e exposed) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	e.killer.soon()
	return e.Transport.Pipeline(ctx, commands)
}

func (e exposed) Together(ctx context.Context, commands []transport.Command) []transport.Reply {
	e.killer.soon()
	return e.Transport.Together(ctx, commands)
}

func (e exposed) Listen(ctx context.Context, channels []string, hear func(transport.Event)) error {
	e.killer.soon()
	return e.Transport.Listen(ctx, channels, hear)
}

func (e exposed) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	return visit(ctx, e)
}

// sheltered loses subscriptions and connections, and no request.
type sheltered struct {
	transport.Transport
	killer *killer
}

// enter returns when the engine is there, and will be until leave.
func (s sheltered) enter() (leave func()) {
	s.killer.now()
	s.killer.engine.quiet.RLock()
	return s.killer.engine.quiet.RUnlock
}

func (s sheltered) Do(ctx context.Context, command transport.Command) (any, error) {
	defer s.enter()()
	return s.Transport.Do(ctx, command)
}

func (s sheltered) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	defer s.enter()()
	return s.Transport.Pipeline(ctx, commands)
}

func (s sheltered) Together(ctx context.Context, commands []transport.Command) []transport.Reply {
	defer s.enter()()
	return s.Transport.Together(ctx, commands)
}

func (s sheltered) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	return visit(ctx, s)
}

// shelter is sheltered for a client.
type shelter struct{ engine *mortal }

// inside marks the context of a request that has entered: a client asks the server for its version in the middle of the
// first request of a connection, through the same hooks, and to enter twice would be to wait for oneself.
type inside struct{}

func (s shelter) enter(ctx context.Context) (_ context.Context, leave func()) {
	if ctx.Value(inside{}) != nil {
		return ctx, func() {}
	}
	s.engine.quiet.RLock()
	return context.WithValue(ctx, inside{}, true), s.engine.quiet.RUnlock
}

func (s shelter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s shelter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, leave := s.enter(ctx)
		defer leave()
		return next(ctx, cmd)
	}
}

func (s shelter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, leave := s.enter(ctx)
		defer leave()
		return next(ctx, cmds)
	}
}
