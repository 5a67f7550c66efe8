package queue_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/queue"
)

// onEach runs a test on a real Redis, and on the engine in virtual time, where nothing is left to chance.
func onEach(t *testing.T, test func(t *testing.T, server redis.UniversalClient)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, connect(t, &redis.Options{Addr: difftest.Redis(t).Addr, PoolSize: 50}))
	})
	t.Run("engine", func(t *testing.T) { inBubble(t, test) })
}

func inBubble(t *testing.T, test func(t *testing.T, server redis.UniversalClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, e.Close()) })
		test(t, connect(t, &redis.Options{
			Addr: "engine", PoolSize: 50, Dialer: func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
		}))
	})
}

func connect(t *testing.T, options *redis.Options) redis.UniversalClient {
	t.Helper()
	options.MaxRetries, options.ContextTimeoutEnabled = -1, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c := redis.NewClient(options)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func open(t *testing.T, server redis.UniversalClient, settings ...queue.Setting) *queue.Queue {
	t.Helper()
	q, err := queue.New(server, "app", settings...)
	must(t, err)
	t.Cleanup(func() { must(t, q.Close()) })
	return q
}

// start runs a worker until the test ends, or stop is called, which waits for its end.
func start(t *testing.T, w *queue.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// deaf is a client whose requests get nowhere while it is cut off.
type deaf struct {
	redis.UniversalClient
	cut *atomic.Bool
}

func (d *deaf) Do(ctx context.Context, args ...any) *redis.Cmd {
	if d.cut.Load() {
		cmd := redis.NewCmd(ctx, args...)
		cmd.SetErr(io.EOF)
		return cmd
	}
	return d.UniversalClient.Do(ctx, args...)
}

func (d *deaf) Process(ctx context.Context, cmd redis.Cmder) error {
	if d.cut.Load() {
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	return d.UniversalClient.Process(ctx, cmd)
}
