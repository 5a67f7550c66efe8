package autocomplete_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/autocomplete"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/leak"
)

func TestMain(m *testing.M) {
	// Where the command line says nothing else.
	if err := flag.Set("rapid.checks", strconv.Itoa(cases.Count(100))); err != nil {
		panic(err)
	}
	leak.Main(m)
}

// client is one that counts its round trips.
type client struct {
	*redis.Client
	trips atomic.Int64
}

func (c *client) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *client) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.trips.Add(1)
		return next(ctx, cmd)
	}
}

func (c *client) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "hello" { // a new connection introduces itself
			c.trips.Add(1)
		}
		return next(ctx, cmds)
	}
}

// onEach runs a test on a real Redis and on the engine in process.
func onEach(t *testing.T, test func(t *testing.T, c *client)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, onRedis(t)) })
	t.Run("engine", func(t *testing.T) { test(t, onEngine(t)) })
}

func onRedis(t testing.TB) *client {
	t.Helper()
	return connect(t, &redis.Options{Addr: difftest.Redis(t).Addr})
}

func onEngine(t testing.TB) *client {
	t.Helper()
	e, err := engine.Open(engine.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return connect(t, &redis.Options{
		Addr: "engine", Dialer: func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
	})
}

func connect(t testing.TB, options *redis.Options) *client {
	t.Helper()
	options.MaxRetries = -1
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c := &client{Client: redis.NewClient(options)}
	c.AddHook(c)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// set adds entries, each the text of its id.
func set(t *testing.T, d *autocomplete.Dictionary, weights map[string]float64) {
	t.Helper()
	for text, weight := range weights {
		must(t, d.Set(t.Context(), autocomplete.Entry{ID: text, Text: text, Weight: weight}))
	}
}

// texts are the texts of what a lookup finds.
func texts(t *testing.T, d *autocomplete.Dictionary, prefix string, k int) []string {
	t.Helper()
	entries, err := d.Lookup(t.Context(), prefix, k)
	must(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Text)
	}
	return found
}

// wantNoKeys fails if anything is on the server.
func wantNoKeys(t *testing.T, c *client) {
	t.Helper()
	for _, key := range c.Keys(t.Context(), "*").Val() {
		t.Errorf("%s was left behind", key)
	}
}
