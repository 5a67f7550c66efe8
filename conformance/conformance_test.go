package conformance_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/leak"
)

// Each server has a suite of its own, which waits more than it works, so they run beside one another, and leaks are looked
// for when all are over.
func TestMain(m *testing.M) { leak.Main(m) }

// dialer makes clients with the given way to connect.
func dialer(addr string, connect func(context.Context, string, string) (net.Conn, error)) conformance.Dial {
	return func(t *testing.T) redis.UniversalClient {
		client := redis.NewClient(&redis.Options{
			Addr: addr, Dialer: connect, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Minute, // contexts decide
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() {
			if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
				t.Error(err)
			}
		})
		return client
	}
}

// exercise runs the suite over clients with the given way to connect.
func exercise(t *testing.T, addr string, connect func(context.Context, string, string) (net.Conn, error)) {
	t.Helper()
	conformance.Exercise(t, dialer(addr, connect))
}

func TestQueue(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) { conformance.ExerciseQueue(t, dialer(difftest.Redis(t).Addr, nil)) })
	t.Run("engine", func(t *testing.T) { conformance.ExerciseQueue(t, dialer(serveEngine(t), nil)) })
}

func TestRedis(t *testing.T) {
	t.Parallel()
	t.Run("suite", func(t *testing.T) { exercise(t, difftest.Redis(t).Addr, nil) })
}

func TestEngineOverTCP(t *testing.T) {
	t.Parallel()
	t.Run("suite", func(t *testing.T) {
		exercise(t, serveEngine(t), nil)
	})
}

// serveEngine has an engine listen, and returns its address.
func serveEngine(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := openEngine(t)
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestEngineInProcess(t *testing.T) {
	t.Parallel()
	t.Run("suite", func(t *testing.T) {
		e := openEngine(t)
		exercise(t, "engine", func(context.Context, string, string) (net.Conn, error) { return e.Dial() })
	})
}

func openEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
