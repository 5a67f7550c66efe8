package rueidisbox

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/internal/leak"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/transporttest"
)

// options are those of a client that connects with dial, never asks for signs of life by itself, and waits for long.
func options(dial func() (net.Conn, error)) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:      []string{"server:6379"}, // never looked up
		DialCtxFn:        func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return dial() },
		Dialer:           net.Dialer{KeepAlive: -1},
		ConnWriteTimeout: 2 * time.Minute,
		DisableCache:     true,
	}
}

func TestTransport(t *testing.T) {
	for name, change := range map[string]func(*rueidis.ClientOption){
		"RESP3":              func(*rueidis.ClientOption) {},
		"RESP2":              func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true },
		"no auto pipelining": func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
		"no retry":           func(o *rueidis.ClientOption) { o.DisableRetry = true },
	} {
		t.Run(name, func(t *testing.T) {
			defer leak.Check(t)()
			transporttest.Exercise(t, func(t *testing.T, dial func() (net.Conn, error)) (transport.Transport, func()) {
				option := options(dial)
				change(&option)
				client, err := rueidis.NewClient(option)
				if err != nil {
					t.Fatal(err)
				}
				return &carrier{client: client}, client.Close
			})
		})
	}
}

func TestTransportInCluster(t *testing.T) {
	transporttest.ExerciseCluster(t, func(t *testing.T, addrs []string, dial func(string) (net.Conn, error)) transport.Transport {
		return &carrier{client: newClient(t, rueidis.ClientOption{
			InitAddress: addrs,
			DialCtxFn: func(_ context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return dial(addr)
			},
		})}
	})
}
