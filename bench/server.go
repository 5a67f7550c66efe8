package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine"
)

// backend is where locks live: a server, or an engine in this process.
type backend struct {
	Addr   string // empty: in process
	engine *engine.Engine
}

// client makes a client like the one signalbox.Open makes.
func (b backend) client() *redis.Client { return b.clientOf(0) }

// clientOf makes one for so many goroutines, each with a connection to use; 0 is the library's default.
func (b backend) clientOf(goroutines int) *redis.Client {
	options := &redis.Options{Addr: b.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: goroutines}
	if b.engine != nil {
		options.Dialer = func(context.Context, string, string) (net.Conn, error) { return b.engine.Dial() }
	}
	return redis.NewClient(options)
}

// openBackend opens the engine of an address that is empty.
func openBackend(addr string) (backend, error) {
	if addr != "" {
		return backend{Addr: addr}, nil
	}
	e, err := engine.Open(engine.Options{})
	return backend{engine: e}, err
}

func (b backend) close() error {
	if b.engine == nil {
		return nil
	}
	return b.engine.Close()
}

// server is a server process.
type server struct {
	name, addr, version string
	process             *process
}

func (s *server) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

// servers are the two that are compared, on the same core, and in turn.
type servers struct {
	redis, engine *server
	folder        string // of redis-server
}

func startServers(ctx context.Context, on cores) (*servers, error) {
	folder, err := os.MkdirTemp("", "signalbox-bench-")
	if err != nil {
		return nil, err
	}
	s := &servers{folder: folder}
	if s.redis, err = startRedis(ctx, on.server, folder); err == nil {
		s.engine, err = startEngine(on.server)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *servers) stop() {
	if s.redis != nil {
		s.redis.process.kill()
	}
	if s.engine != nil {
		s.engine.process.stop()
	}
	_ = os.RemoveAll(s.folder) // what is left is in the system's folder for such things
}

// startRedis starts one that keeps nothing, unless the arguments say otherwise.
func startRedis(ctx context.Context, on []int, folder string, args ...string) (*server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not on PATH; `make test-deps` installs it on Debian")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	s := &server{name: "Redis", addr: addr}
	s.process, err = start(on, path, append([]string{
		"--bind", "127.0.0.1", "--port", s.port(), "--dir", folder,
		"--save", "", "--appendonly", "no", "--loglevel", "warning", "--logfile", "redis.log",
	}, args...)...)
	if err != nil {
		return nil, err
	}
	client := backend{Addr: addr}.client()
	defer shut(client)
	for giveUp := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		info, err := client.Info(ctx, "server").Result()
		if err == nil {
			s.version = infoField(info, "redis_version:")
			return s, nil
		}
		if time.Now().After(giveUp) {
			s.process.kill()
			return nil, fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
}

func startEngine(on []int) (*server, error) {
	s := &server{name: "engine"}
	var err error
	if s.process, err = startRole(on, "serve", nil); err != nil {
		return nil, err
	}
	if err := s.process.hear(&s.addr); err != nil {
		s.process.stop()
		return nil, err
	}
	return s, nil
}

// serveRole is the engine as a server.
func serveRole(ctx context.Context, _ []byte) error {
	go engine.AdjustCollector(ctx) // as signalbox serve does; it ends with the process
	e, err := engine.Open(engine.Options{})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	if err := say(listener.Addr().String()); err != nil {
		return err
	}
	dismissed()
	return errors.Join(e.Close(), <-served)
}

func infoField(info, name string) string {
	_, rest, _ := strings.Cut(info, name)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

func decode(config []byte, into any) error {
	if err := json.Unmarshal(config, into); err != nil {
		return fmt.Errorf("config of the role: %w", err)
	}
	return nil
}
