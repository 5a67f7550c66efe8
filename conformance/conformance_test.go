package conformance_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

func TestRedis(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("suite", func(t *testing.T) {
		server := difftest.Redis(t)
		conformance.Exercise(t, func(t *testing.T) redis.UniversalClient {
			client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
			t.Cleanup(func() { client.Close() })
			return client
		})
	})
}
