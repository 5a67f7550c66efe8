//go:build unix

package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/move"
)

// stages are the steps at which a move can be disturbed.
var stages = []string{move.StepCopy, move.StepFollow, move.StepCheck}

// atStage calls do when a move comes to a step for the first time.
func atStage(step string, do func()) func(move.Event) {
	done := false
	return func(e move.Event) {
		if e.Step == step && !done {
			done = true
			do()
		}
	}
}

// isOpen fails the test unless a server takes writes, tells of no move, and has so many keys.
func isOpen(t *testing.T, client *redis.Client, keys int64) {
	t.Helper()
	must(t, client.Set(t.Context(), "after", "1", 0).Err())
	must(t, client.Del(t.Context(), "after").Err())
	if got := client.DBSize(t.Context()).Val(); got != keys {
		t.Errorf("there are %d keys, want %d", got, keys)
	}
	if n := client.Exists(t.Context(), address.MovedKey).Val(); n != 0 {
		t.Error("it tells of a move")
	}
}

// takeBack undoes a move that came to its end.
func takeBack(t *testing.T, source, target *redis.Client) {
	t.Helper()
	must(t, source.ReplicaOf(t.Context(), "NO", "ONE").Err())
	must(t, source.ConfigRewrite(t.Context()).Err())
	must(t, source.Del(t.Context(), address.MovedKey).Err())
	must(t, target.FlushAll(t.Context()).Err())
}

// TestInterruptedAtEachStage: whenever it is interrupted, the source takes writes, the target is empty and takes writes as
// well, and the same move made again comes to its end.
func TestInterruptedAtEachStage(t *testing.T) {
	for _, kind := range kinds[:4] {
		t.Run(kind.from+"-"+kind.to+"-"+kind.by, func(t *testing.T) {
			from, to := start(t, kind.from), start(t, kind.to)
			source, target := dial(t, from.Addr), dial(t, to.Addr)
			fill(t, source, 3000)
			for _, stage := range stages {
				ctx, stop := context.WithCancel(t.Context())
				o := options(url(from), url(to), kind.by)
				o.Replace = false
				reached := false
				o.Tell = atStage(stage, func() {
					reached = true
					stop()
				})
				err := run(ctx, o)
				stop()
				switch {
				case !reached && err == nil: // it was faster than that
					takeBack(t, source, target)
				case !errors.Is(err, context.Canceled):
					t.Errorf("%s: ended with %v", stage, err)
				}
				isOpen(t, source, 3000)
				isOpen(t, target, 0)
			}
			o := options(url(from), url(to), kind.by)
			o.Replace = false
			must(t, run(t.Context(), o))
			if got := target.DBSize(t.Context()).Val(); got != 3000 {
				t.Errorf("%d keys were moved", got)
			}
		})
	}
}

// TestSourceDiesAtEachStage: the move ends with an error that says so, and the target is emptied.
func TestSourceDiesAtEachStage(t *testing.T) {
	for _, kind := range kinds[:4] {
		t.Run(kind.from+"-"+kind.to+"-"+kind.by, func(t *testing.T) {
			from, to := start(t, kind.from), start(t, kind.to)
			target := dial(t, to.Addr)
			fill(t, dial(t, from.Addr), 3000)
			for _, stage := range stages[1:] {
				o := options(url(from), url(to), kind.by)
				reached := false
				o.Tell = atStage(stage, func() {
					reached = true
					from.Kill()
				})
				err := run(t.Context(), o)
				if !reached && err == nil { // there was nothing to follow
					takeBack(t, dial(t, from.Addr), target)
					continue
				}
				if text := fmt.Sprint(err); err == nil || !strings.Contains(text, from.Addr) {
					t.Errorf("%s: ended with %v", stage, err)
				}
				isOpen(t, target, 0)
				from.Restart()
				source := dial(t, from.Addr)
				must(t, source.Del(t.Context(), address.MovedKey).Err()) // nobody looks for it; the next move removes it
				isOpen(t, source, 3000)
			}
		})
	}
}

// TestTargetDiesAtEachStage: the source goes on, and the error says what is left to be done.
func TestTargetDiesAtEachStage(t *testing.T) {
	for _, kind := range kinds[:4] {
		t.Run(kind.from+"-"+kind.to+"-"+kind.by, func(t *testing.T) {
			from, to := start(t, kind.from), start(t, kind.to)
			source := dial(t, from.Addr)
			fill(t, source, 3000)
			for _, stage := range stages[1:] {
				o := options(url(from), url(to), kind.by)
				reached := false
				o.Tell = atStage(stage, func() {
					reached = true
					to.Kill()
				})
				err := run(t.Context(), o)
				if !reached && err == nil {
					takeBack(t, source, dial(t, to.Addr))
					continue
				}
				if text := fmt.Sprint(err); err == nil || !strings.Contains(text, to.Addr) || !strings.Contains(text, "--undo") {
					t.Errorf("%s: ended with %v", stage, err)
				}
				isOpen(t, source, 3000)
				to.Restart()
			}
			must(t, run(t.Context(), options(url(from), url(to), kind.by)))
		})
	}
}

// TestSourceThatIsFull can be left: that is why it is.
func TestSourceThatIsFull(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind.from+"-"+kind.to, func(t *testing.T) {
			from, to := start(t, kind.from), start(t, kind.to)
			source := dial(t, from.Addr)
			fill(t, source, 1000)
			must(t, source.ConfigSet(t.Context(), "maxmemory", "1").Err())
			if err := source.Set(t.Context(), "k", "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
				t.Fatalf("a full server answers %v", err)
			}
			must(t, run(t.Context(), options(url(from), url(to), kind.by)))
			if got := source.Get(t.Context(), address.MovedKey).Val(); got != url(to) {
				t.Errorf("callers are told %q", got)
			}
		})
	}
}

// TestTargetThatIsTooSmall: a replica takes what it is given, but as a primary it would refuse each write.
func TestTargetThatIsTooSmall(t *testing.T) {
	for _, kind := range kinds[:4] {
		t.Run(kind.from+"-"+kind.to+"-"+kind.by, func(t *testing.T) {
			from, to := start(t, kind.from), start(t, kind.to, "maxmemory 3mb")
			fill(t, dial(t, from.Addr), 40_000)
			err := run(t.Context(), options(url(from), url(to), kind.by))
			if text := fmt.Sprint(err); err == nil || !strings.Contains(text, "give it more memory (maxmemory)") {
				t.Errorf("ended with %v", err)
			}
			isOpen(t, dial(t, from.Addr), 40_000)
			target := dial(t, to.Addr)
			faults.Await(t, "memory that is given back beside the work", func() bool { return target.Set(t.Context(), "after", "1", 0).Err() == nil })
			must(t, target.Del(t.Context(), "after").Err())
			isOpen(t, target, 0)
		})
	}
}

// TestAPartIsNotMovedOn: who moves from the target of a move that was killed would lose the rest.
func TestAPartIsNotMovedOn(t *testing.T) {
	from, to := start(t, "redis"), start(t, "redis")
	must(t, dial(t, from.Addr).Set(t.Context(), "signalbox:move", "redis://elsewhere:6379 ", 0).Err())
	err := run(t.Context(), options(url(from), url(to), move.ByAny))
	if !errors.Is(err, move.ErrRefused) || !strings.Contains(err.Error(), "has a part of redis://elsewhere:6379 only") {
		t.Errorf("ended with %v", err)
	}
}

// TestStaleAnnouncement: a URL that a killed move has left leads nobody astray when the next one announces nothing.
func TestStaleAnnouncement(t *testing.T) {
	from, to := start(t, "redis"), start(t, "redis")
	source := dial(t, from.Addr)
	must(t, source.Set(t.Context(), address.MovedKey, "redis://127.0.0.1:1", 0).Err())
	o := options(url(from), url(to), move.ByAny)
	o.Announce = ""
	must(t, run(t.Context(), o))
	for _, client := range []*redis.Client{source, dial(t, to.Addr)} {
		if got := client.Get(t.Context(), address.MovedKey).Val(); got != "" {
			t.Errorf("callers are told %q", got)
		}
	}
}

// TestAnnouncedNonsense is refused: nobody would find the target.
func TestAnnouncedNonsense(t *testing.T) {
	from, to := start(t, "redis"), start(t, "redis")
	o := options(url(from), url(to), move.ByAny)
	o.Announce = "10.0.0.5:6379"
	if err := run(t.Context(), o); !errors.Is(err, move.ErrRefused) || !strings.Contains(err.Error(), "--announce: the URL has no scheme") {
		t.Errorf("ended with %v", err)
	}
}
