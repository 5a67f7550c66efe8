package sentinel_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// An engine as a process of its own: this test binary once more, with a configuration file that Sentinel has it rewrite.

const engineConfig = "SIGNALBOX_TEST_SENTINEL_ENGINE"

func TestMain(m *testing.M) {
	path := os.Getenv(engineConfig)
	if path == "" {
		faults.Main(m)
		return
	}
	if err := serveEngine(path); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// serveEngine serves until the process is killed.
func serveEngine(path string) error {
	config, err := engine.ReadConfig(path)
	if err != nil {
		return err
	}
	plain, _, err := config.Listen()
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{
		Config: config, Dir: config.Dir(), Port: plain[0].Addr().(*net.TCPAddr).Port,
		Log: func(_ int, line string) { fmt.Println(line) },
	})
	if err != nil {
		return err
	}
	return errors.Join(e.Serve(plain[0]), e.Close())
}

// startEngine takes arguments as redis-server does.
func startEngine(t testing.TB, extraArgs ...string) *difftest.Server {
	t.Helper()
	return difftest.StartConfigured(t, extraArgs, func(path string) []string { return []string{"/usr/bin/env", engineConfig + "=" + path, os.Args[0]} })
}
