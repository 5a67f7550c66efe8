//go:build unix

package jobs_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/engineprocess"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// What happens to a server. It keeps what it acknowledges, unless a test says otherwise.

const workerURL = "SIGNALBOX_TEST_JOBS_WORKER"

func TestMain(m *testing.M) {
	engineprocess.Main()
	url := os.Getenv(workerURL)
	if url == "" {
		faults.Main(m)
		return
	}
	if err := workAsChild(url); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
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
	killed(t, engineprocess.Start(t, "--appendfsync", "always"))
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
	flushed(t, engineprocess.Start(t, "--appendfsync", "always"))
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
	emptied(t, engineprocess.Start(t, "--appendonly", "no", "--save", `""`))
}

func emptied(t *testing.T, s *difftest.Server) {
	l := start(t, "redis://"+s.Addr, s.Addr)
	l.Repeat(5, 30, func() { l.Losing(s.Restart) })
	l.Finish()
}
