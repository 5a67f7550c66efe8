package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestRueidisCachesOnItsSide uses a client as its authors mean it to be used,
// with the cache on: a second read asks nobody, and a change is seen by the
// next one after the client has heard of it.
func TestRueidisCachesOnItsSide(t *testing.T) {
	t.Parallel()
	addr := listen(t, engine.Options{})
	for name, options := range map[string]rueidis.ClientOption{
		"opt-in":    {},
		"broadcast": {ClientTrackingOptions: []string{"BCAST", "PREFIX", "k:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := "k:" + name
			invalid := make(chan string, 100)
			options.InitAddress = []string{addr}
			options.OnInvalidations = func(messages []rueidis.RedisMessage) {
				for _, message := range messages {
					name, _ := message.ToString()
					invalid <- name
				}
				if messages == nil {
					invalid <- "all"
				}
			}
			client, err := rueidis.NewClient(options)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			other := dialTCP(t, addr)
			do(t, other, "SET", key, "1")
			awaitInvalidation(t, invalid, key, name == "broadcast")

			read := func(want string, wantHit bool) {
				t.Helper()
				result := client.DoCache(t.Context(), client.B().Get().Key(key).Cache(), time.Hour)
				got, err := result.ToString()
				check(t, "GET", want, got, err)
				check(t, "from the cache", wantHit, result.IsCacheHit(), nil)
			}
			read("1", false)
			read("1", true)
			do(t, other, "SET", key, "2")
			awaitInvalidation(t, invalid, key, true)
			read("2", false)
			read("2", true)
			do(t, other, "PEXPIRE", key, "1")
			awaitInvalidation(t, invalid, key, true)
			awaitInvalidation(t, invalid, key, name == "broadcast") // and when it expires
			do(t, other, "SET", key, "3")
			awaitInvalidation(t, invalid, key, name == "broadcast")
			read("3", false)
		})
	}
}

func awaitInvalidation(t *testing.T, invalid <-chan string, key string, wanted bool) {
	t.Helper()
	if !wanted {
		return
	}
	for {
		select {
		case got := <-invalid:
			if got == key {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nobody has said that %s has changed", key)
		}
	}
}

func dialTCP(t *testing.T, addr string) *difftest.Conn {
	t.Helper()
	conn, err := difftest.Connect(tcp(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestTheTrackingTableIsBounded reads more keys than may be remembered: the
// others are called back, though nobody has changed them.
func TestTheTrackingTableIsBounded(t *testing.T) {
	t.Parallel()
	conn, err := difftest.Connect(dial(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const most, read = 10, 50
	do(t, conn, "HELLO", "3")
	do(t, conn, "CONFIG", "SET", "tracking-table-max-keys", fmt.Sprint(most))
	do(t, conn, "CLIENT", "TRACKING", "ON")
	calledBack := map[string]bool{}
	receive := func() difftest.Value {
		for {
			reply, err := conn.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if reply.Kind != difftest.Push {
				return reply
			}
			calledBack[reply.Elems[1].Elems[0].Text] = true
		}
	}
	for i := range read {
		if err := conn.Send("GET", fmt.Sprint("key:", i)); err != nil {
			t.Fatal(err)
		}
		receive()
	}
	if err := conn.Send("PING"); err != nil {
		t.Fatal(err)
	}
	receive()
	if len(calledBack) != read-most {
		t.Errorf("%d keys have been called back, not %d", len(calledBack), read-most)
	}
}
