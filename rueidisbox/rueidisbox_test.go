package rueidisbox

import (
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/leak"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// The suites wait more than they work, so they run beside each other, and leaks are looked for when both are over. What
// rueidis itself leaves asleep is not ours: the client of a Cluster looks at it once more, up to a second after it was closed.
func TestMain(m *testing.M) {
	leak.Main(m, "github.com/redis/rueidis.(*call).DelayDo.func1")
}

// newClient returns a client as its users make one, closed at the end of the test.
func newClient(t *testing.T, option rueidis.ClientOption) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// exercise runs the suite over clients of a server.
func exercise(t *testing.T, option rueidis.ClientOption) {
	t.Helper()
	conformance.ExerciseOver(t, func(t *testing.T) redis.UniversalClient {
		looker := redis.NewClient(&redis.Options{Addr: option.InitAddress[0], ReadTimeout: time.Minute})
		t.Cleanup(func() {
			if err := looker.Close(); err != nil {
				t.Error(err)
			}
		})
		return looker
	}, func(t *testing.T) transport.Transport { return &carrier{client: newClient(t, option)} })
}

func TestRedis(t *testing.T) {
	t.Parallel()
	t.Run("suite", func(t *testing.T) {
		exercise(t, rueidis.ClientOption{InitAddress: []string{difftest.Redis(t).Addr}})
	})
}

func TestEngineOverTCP(t *testing.T) {
	t.Parallel()
	t.Run("suite", func(t *testing.T) {
		exercise(t, rueidis.ClientOption{InitAddress: []string{serve(t)}, DisableCache: true})
	})
}

// serve returns the address of an engine that ends with the test.
func serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
