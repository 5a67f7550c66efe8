// Package engineprocess starts an engine as a process of its own, for tests that kill it, or have Sentinel write its
// configuration anew: the test program once more, which finds in the environment what it is to serve. The TestMain of who
// uses it begins with Main.
package engineprocess

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// configPath is the environment variable that has a test program serve an engine by the configuration file of that path.
const configPath = "SIGNALBOX_TEST_ENGINE"

// Main serves the engine, if this process was started for that, until it is killed; else it does nothing.
func Main() {
	if path := os.Getenv(configPath); path != "" {
		fmt.Println("failed:", serve(path))
		os.Exit(1)
	}
}

func serve(path string) error {
	config, err := engine.ReadConfig(path)
	if err != nil {
		return err
	}
	plain, secure, err := config.Listen()
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{
		Config: config, Dir: config.Dir(), Port: plain[0].Addr().(*net.TCPAddr).Port,
		Log: func(_ int, line string) { fmt.Println(time.Now().Format("15:04:05.000"), line) },
	})
	if err != nil {
		return err
	}
	ended := make(chan error, len(plain)+len(secure))
	for _, door := range plain {
		go func() { ended <- e.Serve(door) }()
	}
	for _, door := range secure {
		go func() { ended <- e.ServeTLS(door) }()
	}
	return errors.Join(<-ended, e.Close())
}

// Command is the command line of an engine with a configuration file.
func Command(path string) []string {
	return []string{"/usr/bin/env", configPath + "=" + path, os.Args[0]}
}

// Start starts an engine with an append-only file, in a folder of its own. The arguments are those that redis-server takes.
func Start(t testing.TB, extraArgs ...string) *difftest.Server {
	t.Helper()
	return difftest.StartConfigured(t, extraArgs, Command)
}
