package clienttest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// patience is how long a program may take that needs a few seconds on a busy machine. It passes in full only when
// the program hangs.
const patience = 50 * time.Second

// onBoth runs a test on the engine and on a real redis-server, each new and empty.
func onBoth(t *testing.T, test func(t *testing.T, addr string)) {
	t.Helper()
	t.Parallel()
	t.Run("engine", func(t *testing.T) {
		t.Parallel()
		test(t, serveEngine(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, difftest.Redis(t).Addr)
	})
}

// onBothProtocols is onBoth with each version of the protocol.
func onBothProtocols(t *testing.T, test func(t *testing.T, addr string, protocol int)) {
	t.Helper()
	t.Parallel()
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, addr string) { test(t, addr, protocol) })
		})
	}
}

// serveEngine serves a new engine on a loopback port and returns its address.
func serveEngine(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{Port: l.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// split takes an address apart for programs that want host and port.
func split(t *testing.T, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// run runs a program to its end and returns what it wrote. It fails the test with that if the program fails.
func run(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader([]byte(stdin))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, errors.Join(err, ctx.Err()), out)
	}
	return string(out)
}

// check fails the test unless err is nil and got is want.
func check[T any](t *testing.T, what string, want, got T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// must fails the test if err is not nil.
func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
