//go:build unix

package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/engineprocess"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/move"
)

// Real servers, an engine or a redis-server, that keep everything that they acknowledge, and a move in a process of its
// own, which can be killed.

const (
	moveFrom = "SIGNALBOX_TEST_MOVE_FROM"
	moveTo   = "SIGNALBOX_TEST_MOVE_TO"
	moveBy   = "SIGNALBOX_TEST_MOVE_BY"
)

func TestMain(m *testing.M) {
	engineprocess.Main()
	if os.Getenv(moveFrom) == "" {
		faults.Main(m)
		return
	}
	if err := run(context.Background(), options(os.Getenv(moveFrom), os.Getenv(moveTo), os.Getenv(moveBy))); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("moved")
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
	args := []string{
		"--appendfsync", "always", "--save", `""`, "--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes",
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, " ")
		args = append(args, "--"+name, value)
	}
	s = difftest.StartConfigured(t, args, func(path string) []string {
		config = path
		if kind == "engine" {
			return engineprocess.Command(path)
		}
		return []string{difftest.RedisServer(t), path}
	})
	return s, config
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
