package classic_test

import (
	"net"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// What needs replicas runs on Redis, on the engine, and where each is the
// other's replica.

// kinds are the servers that replicate.
var kinds = []string{"redis", "engine"}

// onEachKind runs a test with servers of each kind.
func onEachKind(t *testing.T, name string, test func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(name+" "+kind, func(t *testing.T) { test(t, kind) })
	}
}

// listening starts a server of a kind that others can follow, on the data in a
// folder. kill ends it, and waits until it is gone.
func listening(t *testing.T, kind, dir string, settings ...string) (s *server, kill func()) {
	t.Helper()
	settings = append([]string{"repl-diskless-sync-delay=0"}, settings...)
	if kind == "redis" {
		args := []string{"--dir", dir}
		for _, setting := range settings {
			name, value, _ := strings.Cut(setting, "=")
			args = append(args, "--"+name, value)
		}
		r := difftest.Redis(t, args...)
		s, kill = &server{addr: r.Addr}, r.Kill
	} else {
		s, kill = servedEngine(t, dir, settings)
	}
	s.admin = s.connect(t, nil)
	return s, kill
}

func servedEngine(t *testing.T, dir string, settings []string) (s *server, kill func()) {
	t.Helper()
	config, err := engine.ReadConfig("", append([]string{"appendonly=no", "save="}, settings...)...)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	e, err := engine.Open(engine.Options{Config: config, Dir: dir, Port: l.Addr().(*net.TCPAddr).Port})
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- e.Serve(l) }()
	over := false
	kill = func() {
		if !over {
			over = true
			must(t, e.Close())
			must(t, <-served)
		}
	}
	t.Cleanup(kill)
	return &server{addr: l.Addr().String()}, kill
}

// follow makes a replica of a server and waits until it is linked.
func follow(t *testing.T, replica, primary *server) {
	t.Helper()
	host, port, err := net.SplitHostPort(primary.addr)
	must(t, err)
	must(t, replica.admin.Do(t.Context(), "REPLICAOF", host, port).Err())
	for !containsLine(replica.admin.Info(t.Context(), "replication").Val(), "master_link_status:up") {
		must(t, t.Context().Err())
	}
}

// pair is a primary and a replica of it that writes an append-only file.
type pair struct{ primary, replica *server }

// another is one more replica, of the kind of the first.
type another func(t *testing.T) *server

func onEachPair(t *testing.T, test func(t *testing.T, p pair, other another)) {
	t.Helper()
	for _, primary := range kinds {
		onEachKind(t, primary, func(t *testing.T, replica string) {
			other := func(t *testing.T) *server {
				s, _ := listening(t, replica, t.TempDir(), "appendonly=yes")
				return s
			}
			s, _ := listening(t, primary, t.TempDir())
			p := pair{s, other(t)}
			follow(t, p.replica, p.primary)
			test(t, p, other)
		})
	}
}
