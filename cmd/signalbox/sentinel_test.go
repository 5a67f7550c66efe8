//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// enterAndLeave is what each command says to a file when it comes in and when it leaves, with its token.
const enterAndLeave = `trap 'echo "- $SIGNALBOX_TOKEN" >>%[1]s; exit 1' TERM; echo "+ $SIGNALBOX_TOKEN" >>%[1]s; sleep 0.05; echo "- $SIGNALBOX_TOKEN" >>%[1]s`

// TestRunBehindSentinels has kill -9 go round between two engines that three Sentinels watch, beside eight loops of
// `signalbox run --limit 2`. With --replicas never more than two are inside. Without it they go on with one engine alone,
// and a third one is inside only if a failover has lost a grant: docs/replication.md.
func TestRunBehindSentinels(t *testing.T) {
	t.Parallel()
	group := topology.StartSentinel(t, topology.SentinelOptions{Replicas: 1, Start: serveConfig})
	sure := startLoops(t, group.URL(), "--replicas", "1")
	plain := startLoops(t, group.URL())
	for range 3 {
		old := group.Primary()
		sure.await(8)
		plain.await(8)
		old.Kill()
		group.AwaitTakeover(old)
		plain.await(8) // one engine is enough
		old.Restart()
		group.AwaitWhole()
	}
	sure.await(8)
	plain.await(8)
	sure.end()
	plain.end()
	if output, err := exec.Command("signalbox", "doctor", "--url", group.URL()).CombinedOutput(); !strings.Contains(string(output), "ok           sentinels: 3 agree on 127.0.0.1:") {
		t.Errorf("doctor: %v\n%s", err, output)
	}
	if most, times := sure.most(); most > 2 {
		t.Errorf("%d were inside with --replicas, one of them too many %d times", most, times)
	}
	most, times := plain.most()
	t.Logf("without --replicas there were %d inside at most, too many %d times", most, times)
}

// serveConfig starts `signalbox serve` with a configuration file, as Sentinel wants it.
func serveConfig(t testing.TB, extraArgs ...string) *difftest.Server {
	t.Helper()
	return difftest.StartConfigured(t, extraArgs, func(path string) []string { return []string{"signalbox", "serve", "--config", path} })
}

// loops run a command under a permit again and again.
type loops struct {
	t       *testing.T
	file    string
	stop    context.CancelFunc
	running sync.WaitGroup
	entered atomic.Int64
}

func startLoops(t *testing.T, url string, flags ...string) *loops {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &loops{t: t, file: filepath.Join(t.TempDir(), "inside"), stop: stop}
	t.Cleanup(l.end)
	args := slices.Concat([]string{"run", "--url", url + "?read_timeout=500ms", "--limit", "2", "--ttl", "3s"}, flags,
		[]string{"x" + fmt.Sprint(len(flags)), "--", "sh", "-c", fmt.Sprintf(enterAndLeave, l.file)})
	for range 8 {
		l.running.Go(func() {
			for ctx.Err() == nil {
				cmd := exec.Command("signalbox", args...)
				cmd.SysProcAttr = &syscall.SysProcAttr{}
				dieWithParent(cmd.SysProcAttr)
				// While there is no primary, or no replica, it fails, and is tried again.
				if err := cmd.Run(); err == nil {
					l.entered.Add(1)
				} else if status := (*exec.ExitError)(nil); !errors.As(err, &status) {
					t.Error(err)
					return
				}
			}
		})
	}
	return l
}

// await returns when so many more have been inside.
func (l *loops) await(n int64) {
	l.t.Helper()
	goal := l.entered.Load() + n
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); l.entered.Load() < goal; <-again.C {
		if time.Now().After(end) {
			l.t.Fatalf("%d of %d have come in", l.entered.Load(), goal)
		}
	}
}

func (l *loops) end() {
	l.stop()
	l.running.Wait()
}

// most is how many were inside at once, and how often there was one too many.
func (l *loops) most() (most, times int) {
	l.t.Helper()
	text, err := os.ReadFile(l.file)
	if err != nil {
		l.t.Fatal(err)
	}
	now := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		sign, token, _ := strings.Cut(strings.TrimSpace(line), " ")
		left := "- " + token + "\n"
		if sign == "-" || !strings.Contains(string(text), left) { // that one was killed at the end of its lease
			delete(now, token)
			continue
		}
		now[token] = true
		if most = max(most, len(now)); len(now) > 2 {
			times++
		}
	}
	return most, times
}
