//go:build unix

package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/move"
)

// Real servers, an engine or a redis-server, that keep everything that they acknowledge, and a move in a process of its
// own, which can be killed.

const (
	engineConfig = "SIGNALBOX_TEST_MOVE_ENGINE"
	enginePort   = "SIGNALBOX_TEST_MOVE_PORT"
	moveFrom     = "SIGNALBOX_TEST_MOVE_FROM"
	moveTo       = "SIGNALBOX_TEST_MOVE_TO"
	moveBy       = "SIGNALBOX_TEST_MOVE_BY"
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(engineConfig) != "":
		err = serve(os.Getenv(engineConfig), os.Getenv(enginePort))
	case os.Getenv(moveFrom) != "":
		err = run(context.Background(), options(os.Getenv(moveFrom), os.Getenv(moveTo), os.Getenv(moveBy)))
		if err == nil {
			fmt.Println("moved")
		}
	default:
		faults.Main(m)
		return
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// serve is the engine as a process of its own.
func serve(config, port string) error {
	c, err := engine.ReadConfig(config, "port="+port)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	plain, secure, err := c.Listen()
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{Dir: filepath.Dir(config), Config: c, Port: n})
	if err != nil {
		return err
	}
	ended := make(chan error)
	for _, l := range plain {
		go func() { ended <- e.Serve(l) }()
	}
	for _, l := range secure {
		go func() { ended <- e.ServeTLS(l) }()
	}
	return <-ended
}

// start starts a server of a kind, with a configuration file that it can write anew.
func start(t *testing.T, kind string, settings ...string) *difftest.Server {
	t.Helper()
	s, _ := startConfigured(t, kind, settings...)
	return s
}

// startConfigured tells the configuration file, too.
func startConfigured(t *testing.T, kind string, settings ...string) (s *difftest.Server, config string) {
	t.Helper()
	dir := t.TempDir()
	config = filepath.Join(dir, "server.conf")
	lines := append([]string{
		"bind 127.0.0.1", "dir " + dir, "appendonly yes", "appendfsync always", `save ""`, "repl-diskless-sync-delay 0", "enable-debug-command yes",
	}, settings...)
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return difftest.Start(t, func(port string) []string {
		if kind == "engine" {
			return []string{"/usr/bin/env", engineConfig + "=" + config, enginePort + "=" + port, os.Args[0]}
		}
		return []string{difftest.RedisServer(t), config, "--port", port}
	}), config
}

func url(s *difftest.Server) string { return "redis://" + s.Addr }

// options are those of a move from one URL to another.
func options(from, to, by string) move.Options {
	o := move.Options{By: by, Check: move.CheckAll, Pause: 2 * time.Second, MaxSkew: time.Second, Replace: true, Announce: to}
	for _, end := range []struct {
		*move.Server
		url string
	}{{&o.From, from}, {&o.To, to}} {
		client, place, err := address.One(end.url)
		if err != nil {
			panic(err)
		}
		end.Client, end.Place = client, place
	}
	return o
}

// run moves, and closes the clients.
func run(ctx context.Context, o move.Options) error {
	return errors.Join(move.Run(ctx, o), o.From.Client.Close(), o.To.Client.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}
