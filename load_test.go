package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What very many leases and waiters of one process do to its server, and to each other. bench-locks measures the same with
// more of them (ARGS='-only load'); here is what must hold however fast the machine is.

// loadPatience passes in full only if a test fails.
const loadPatience = 2 * time.Minute

// A reply that takes 10 ms is no fault: what thousands ask for at once comes in order, over the connections there are, and
// a lease beside them is renewed in time.
func TestReleasesOfManyDoNotCollapse(t *testing.T) {
	const connections = 50
	n := scaled(5000)
	proxy := faultproxy.Start(t, difftest.Redis(t).Addr)
	box := openBox(t, proxy.Addr())
	beside, err := box.Mutex("beside").Acquire(t.Context(), signalbox.TTL(3*time.Second))
	must(t, err)
	proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Delay: 10 * time.Millisecond}})
	ctx, cancel := context.WithTimeout(t.Context(), loadPatience)
	defer cancel()
	var mu sync.Mutex
	var first error
	failed := 0
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			lease, err := box.Mutex(fmt.Sprintf("own:%d", i)).Acquire(ctx)
			if err == nil {
				err = lease.Release(ctx)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
				first = err
			}
		})
	}
	all.Wait()
	if failed > 0 {
		t.Errorf("%d of %d failed, such as: %v", failed, n, first)
	}
	if got := proxy.Opened(); got > connections {
		t.Errorf("%d connections were opened, want %d at most", got, connections)
	}
	if err := beside.Err(); err != nil {
		t.Errorf("the lease beside them: %v", err)
	}
	must(t, beside.Release(t.Context()))
	forgotten(t, box)
}

// However many leases a Box has, Close gives them back, or says that it did not. On a busy machine now and then an answer is as
// late as that of a server that hangs: then it says so.
func TestCloseOfManyLeavesNone(t *testing.T) {
	for what, slow := range map[string]struct {
		n     int
		claim time.Duration
		delay time.Duration
	}{
		"many":                             {scaled(20_000), signalbox.DefaultClaim, 10 * time.Millisecond},
		"for longer than it bears silence": {8000, time.Second, 200 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			var last error
			for range 3 {
				server := difftest.Redis(t)
				proxy := faultproxy.Start(t, server.Addr)
				box, err := signalbox.Open(t.Context(), "redis://"+proxy.Addr(), signalbox.Claim(slow.claim))
				must(t, err)
				holdEach(t, box, slow.n)
				proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Delay: slow.delay}})
				if last = box.Close(); last == nil {
					noLeases(t, server.Addr)
					return
				}
				t.Log(last)
			}
			t.Error(last)
		})
	}
}

func noLeases(t *testing.T, addr string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	left := 0
	for found := client.Scan(t.Context(), 0, ledger.StatePattern, 1000).Iterator(); found.Next(t.Context()); {
		if strings.Contains(client.HGet(t.Context(), found.Val(), "clock").Val(), " L ") {
			left++
		}
	}
	if left > 0 {
		t.Errorf("%d leases are left, and Close said nothing", left)
	}
}

// holdEach acquires as many mutexes, each of a name of its own.
func holdEach(t *testing.T, box *signalbox.Box, n int) {
	t.Helper()
	const workers = 100
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				if _, err := box.Mutex(fmt.Sprintf("held:%d", i)).Acquire(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A server that is away is told nothing, and the caller must know: until the ttl is over nobody else gets these leases.
func TestCloseSaysWhatItCouldNotTell(t *testing.T) {
	t.Parallel()
	for what, away := range map[string]func(*difftest.Server){
		"killed": (*difftest.Server).Kill,
		"paused": (*difftest.Server).Pause,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := difftest.Redis(t)
			var box *signalbox.Box
			var err error
			eventually(t, "a server that answers within 200ms", func() bool {
				box, err = signalbox.Open(t.Context(), "redis://"+server.Addr+"?read_timeout=200ms", signalbox.Claim(shortClaim))
				return err == nil
			})
			holdEach(t, box, 100)
			away(server)
			err = box.Close()
			if !errors.Is(err, signalbox.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
			for _, want := range []string{"100", `"held:`} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %s: %v", want, err)
				}
			}
		})
	}
}

// A Box says that it lives, and that is enough for all who wait in it for one name.
func TestManyWaitersSendOneHeartbeat(t *testing.T) {
	const n, seconds = 1000, 10
	synctest.Test(t, func(t *testing.T) {
		box, sent, _ := countedBox(t)
		mutex := box.Mutex("m")
		first, err := mutex.Acquire(t.Context(), signalbox.TTL(time.Minute))
		must(t, err)
		ctx, giveUp := context.WithCancel(t.Context())
		var waiters sync.WaitGroup
		for range n {
			waiters.Go(func() {
				if _, err := mutex.Acquire(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want a wait that is given up", err)
				}
			})
		}
		time.Sleep(2 * time.Second) // a heartbeat by name and one without, whose scripts the server has learnt then
		synctest.Wait()
		sent.reset()
		time.Sleep(seconds * time.Second)
		synctest.Wait()
		// A heartbeat a second, and perhaps an eighth more of them.
		if got, most := sent.singles.Load()+sent.piped.Load(), int64(2*seconds); got > most {
			t.Errorf("%d commands in %d s of %d waiters, want %d at most", got, seconds, n, most)
		}
		giveUp()
		waiters.Wait()
		must(t, first.Release(t.Context()))
	})
}
