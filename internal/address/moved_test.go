package address_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	client, _, err := address.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client.(*redis.Client)
}

// moved makes a server one that was moved away.
func moved(t *testing.T, client *redis.Client, url string) {
	t.Helper()
	if url != "" {
		if err := client.Set(t.Context(), address.MovedKey, url, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
}

func TestClientsGoWhereTheDataGoes(t *testing.T) {
	a, b := difftest.Redis(t), difftest.Redis(t, "--requirepass", "geheim")
	client := dial(t, "redis://"+a.Addr)
	heard := client.Subscribe(t.Context(), "channel")
	defer func() {
		if err := heard.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := heard.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved(t, dial(t, "redis://"+a.Addr), "redis://:geheim@"+b.Addr)

	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatalf("the new server answers %v", err)
	}
	other := dial(t, "redis://:geheim@"+b.Addr)
	if got := other.Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("the new server has %q", got)
	}
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	messages := heard.Channel()
	for other.Publish(ctx, "channel", "hello").Val() == 0 { // until it has subscribed again
		if ctx.Err() != nil {
			t.Fatal("nobody listens at the new server")
		}
	}
	if m := <-messages; m == nil || m.Payload != "hello" {
		t.Errorf("heard %v", m)
	}
}

// TestReplicasAreNotLeft: a server that does not say where its data went is what the URL names.
func TestReplicasAreNotLeft(t *testing.T) {
	for _, url := range []string{"", "nonsense", "redis+cluster://127.0.0.1:1", "itself"} {
		a := difftest.Redis(t)
		client := dial(t, "redis://"+a.Addr)
		moved(t, client, strings.Replace(url, "itself", "redis://"+a.Addr, 1))
		for range 2 {
			if err := client.Set(t.Context(), "k", "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
				t.Errorf("%q: %v", url, err)
			}
		}
	}
}

// A connection that the server has closed while nobody used it is not used again.
func TestClosedConnectionsAreNotUsed(t *testing.T) {
	server := difftest.Redis(t)
	client := dial(t, "redis://"+server.Addr)
	killer := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer func() {
		if err := killer.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 10 {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := killer.ClientKillByFilter(t.Context(), "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Fatal(err)
		}
	}
}
