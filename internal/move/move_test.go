//go:build unix

package move_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/move"
)

// TestKeysThatAreRenewedWhileTheyAreCopied: a key with a short time, which its holder renews all the time, is there after
// the copying that takes longer than that time. A target that is no replica removes it in between.
func TestKeysThatAreRenewedWhileTheyAreCopied(t *testing.T) {
	from, to := start(t, "redis"), start(t, "redis")
	client := dial(t, from.Addr)
	fill(t, client, 5000)
	const short = 40 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer stop()
	began := make(chan struct{})
	renewing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			// What fails for the source that is closed is the end.
			if n == 0 {
				_ = client.HSet(ctx, "lease", "holder", "me").Err()
				close(began)
			}
			_ = client.PExpire(ctx, "lease", short).Err()
		}
	})
	<-began
	o := options(url(from), url(to), move.ByRestore)
	// As if the target were far behind: what is told is told slowly.
	o.Tell = func(e move.Event) {
		if e.Step == move.StepCopy {
			wait := time.NewTimer(3 * short / 2)
			<-wait.C
		}
		if e.Step == move.StepCutOver {
			n, err := dial(t, to.Addr).PExpireTime(t.Context(), "lease").Result()
			want, wantErr := client.PExpireTime(t.Context(), "lease").Result()
			if err != nil || wantErr != nil || n != want && n != -2 { // it may have ended since, on either
				t.Errorf("the lease ends at %v in the target, at %v in the source, %v, %v", n, want, err, wantErr)
			}
		}
	}
	must(t, run(t.Context(), o))
}

// TestWaitersKeepTheirPlaces: those who wait in the source are served in their order in the target.
func TestWaitersKeepTheirPlaces(t *testing.T) {
	for _, by := range []string{move.ByReplicaOf, move.ByRestore} {
		t.Run(by, func(t *testing.T) {
			from, to := start(t, "engine"), start(t, "redis")
			box, err := signalbox.Open(t.Context(), url(from))
			must(t, err)
			defer box.Close()
			held, err := box.Mutex("m").Acquire(t.Context())
			must(t, err)
			first := held.Token()
			var mu sync.Mutex
			var order []int
			var waiting sync.WaitGroup
			for i := range 10 {
				waiting.Go(func() {
					lease, err := box.Mutex("m").Acquire(faults.Patient(t))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					order = append(order, i)
					if lease.Token() <= first {
						t.Errorf("token %d after %d", lease.Token(), first)
					}
					first = lease.Token()
					mu.Unlock()
					if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				})
				faults.Await(t, "a waiter", func() bool {
					state, err := box.Inspect(t.Context(), "m")
					return err == nil && state.Waiters == i+1
				})
			}
			must(t, run(t.Context(), options(url(from), url(to), by)))
			if held.Err() != nil {
				t.Errorf("the lease of before: %v", held.Err())
			}
			must(t, held.Release(t.Context()))
			waiting.Wait()
			if !slices.IsSorted(order) || len(order) != 10 {
				t.Errorf("served as %v", order)
			}
		})
	}
}

// TestInterruptedLeavesNothing: the source takes writes, the target is empty.
func TestInterruptedLeavesNothing(t *testing.T) {
	for _, by := range []string{move.ByReplicaOf, move.ByRestore} {
		t.Run(by, func(t *testing.T) {
			from, to := start(t, "redis"), start(t, "engine")
			fill(t, dial(t, from.Addr), 5000)
			ctx, stop := context.WithCancel(t.Context())
			o := options(url(from), url(to), by)
			o.Tell = func(e move.Event) {
				if e.Step == move.StepCheck {
					stop()
				}
			}
			if err := run(ctx, o); !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
			must(t, dial(t, from.Addr).Set(t.Context(), "k", "v", 0).Err())
			target := dial(t, to.Addr)
			must(t, target.Set(t.Context(), "k", "v", 0).Err())
			if n := target.DBSize(t.Context()).Val(); n != 1 {
				t.Errorf("%d keys are left", n)
			}
			if n := dial(t, from.Addr).Exists(t.Context(), "signalbox:moved").Val(); n != 0 {
				t.Error("the source tells of a move")
			}
		})
	}
}

// TestSomebodyElseWritesToTheTarget: it is found before the callers are there.
func TestSomebodyElseWritesToTheTarget(t *testing.T) {
	from, to := start(t, "redis"), start(t, "redis")
	fill(t, dial(t, from.Addr), 5000)
	o := options(url(from), url(to), move.ByRestore)
	var once sync.Once
	o.Tell = func(e move.Event) {
		if e.Step == move.StepCheck {
			once.Do(func() {
				if err := dial(t, to.Addr).Set(t.Context(), "stranger", 1, 0).Err(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	err := run(t.Context(), o)
	if !errors.Is(err, move.ErrDiverged) || !strings.Contains(fmt.Sprint(err), "does somebody else write") {
		t.Errorf("ended with %v", err)
	}
	must(t, dial(t, from.Addr).Set(t.Context(), "k", "v", 0).Err())
}
