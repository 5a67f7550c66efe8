package embedded

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// TestConformance holds the Box of this package to every promise.
func TestConformance(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	dial := func(t *testing.T) redis.UniversalClient {
		client := redis.NewClient(&redis.Options{
			Dialer:     func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
			MaxRetries: -1, Addr: "engine", ContextTimeoutEnabled: true, ReadTimeout: time.Minute, // contexts decide
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		return client
	}
	conformance.ExerciseOver(t, dial, func(t *testing.T) transport.Transport { return direct{e, goredis.New(dial(t))} })
}
