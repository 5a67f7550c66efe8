//go:build unix

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// What happens to a server. It keeps what it acknowledges, unless a test says otherwise.

const (
	engineDir  = "SIGNALBOX_TEST_JOBS_ENGINE"
	enginePort = "SIGNALBOX_TEST_JOBS_PORT"
	workerURL  = "SIGNALBOX_TEST_JOBS_WORKER"
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(engineDir) != "":
		err = serve(os.Getenv(engineDir), os.Getenv(enginePort))
	case os.Getenv(workerURL) != "":
		err = workAsChild(os.Getenv(workerURL))
	default:
		faults.Main(m)
		return
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// inMemory is the folder of an engine that keeps nothing.
const inMemory = "none"

// serve is the engine as a process of its own.
func serve(dir, port string) error {
	config, err := engine.ReadConfig("", "appendonly=yes", "appendfsync=always")
	if err != nil {
		return err
	}
	options := engine.Options{Dir: dir, Config: config}
	if dir == inMemory {
		options = engine.Options{}
	}
	e, err := engine.Open(options)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	return e.Serve(listener)
}

func startEngine(t *testing.T, dir string) *difftest.Server {
	t.Helper()
	return difftest.Start(t, func(port string) []string {
		return []string{"/usr/bin/env", engineDir + "=" + dir, enginePort + "=" + port, os.Args[0]}
	})
}

func startRedis(t *testing.T) *difftest.Server {
	return difftest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
}

func TestJobsRedisKilled(t *testing.T) {
	faults.Begin(t)
	killed(t, startRedis(t))
}

func TestJobsEngineKilled(t *testing.T) {
	faults.Begin(t)
	killed(t, startEngine(t, t.TempDir()))
}

// killed has a server crash and come back between jobs.
func killed(t *testing.T, s *difftest.Server) {
	l := start(t, "redis://"+s.Addr, s.Addr)
	l.Repeat(5, 30, s.Restart)
	l.Finish()
}

func TestJobsScriptsFlushed(t *testing.T) {
	faults.Begin(t)
	s := difftest.Redis(t)
	l := start(t, "redis://"+s.Addr, s.Addr)
	l.Repeat(20, 20, func() { must(t, l.client.ScriptFlush(t.Context()).Err()) })
	l.Finish()
	if n := l.failing.Load(); n > 0 {
		t.Errorf("%d calls of workers failed", n)
	}
}

// TestJobsDataFlushed: what was on the server is gone, and so are its limits. What comes after that runs.
func TestJobsDataFlushed(t *testing.T) {
	faults.Begin(t)
	flushed(t, difftest.Redis(t))
}

func TestJobsEngineFlushed(t *testing.T) {
	faults.Begin(t)
	flushed(t, startEngine(t, t.TempDir()))
}

func flushed(t *testing.T, s *difftest.Server) {
	l := start(t, "redis://"+s.Addr, s.Addr)
	l.Repeat(5, 30, func() {
		l.Losing(func() { must(t, l.client.FlushAll(context.Background()).Err()) })
	})
	l.Finish()
}

// TestJobsRedisEmptied: a server without files is killed and comes back with nothing.
func TestJobsRedisEmptied(t *testing.T) {
	faults.Begin(t)
	emptied(t, difftest.Redis(t))
}

func TestJobsEngineEmptied(t *testing.T) {
	faults.Begin(t)
	emptied(t, startEngine(t, inMemory))
}

func emptied(t *testing.T, s *difftest.Server) {
	l := start(t, "redis://"+s.Addr, s.Addr)
	l.Repeat(5, 30, func() { l.Losing(s.Restart) })
	l.Finish()
}
