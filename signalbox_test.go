package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/leak"
)

func TestOpenRefusesBadURLsWithoutTellingThePassword(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, location := range []string{
		"", "localhost:6379", "http://:s3cr3t@host", "redis://:s3cr3t@host:port", "redis://:s3cr3t@host:6379/notanumber",
		"redis://:s3cr3t@a:1,b:2/0", "redis+sentinel://:s3cr3t@a:1,b:2", "redis+cluster://:s3cr3t@a:1/3",
		"redis://:s3cr3t%zz@host:6379", "redis://:s3cr3t@host:6379?no_such_option=s3cr3t", "redis+cluster://:s3cr3t@a b:1",
		"unix://:s3cr3t@", "unix://:s3cr3t@relative/path", "unix:///s3cr3t%zz",
		// Passwords that nobody escaped, or that stand where none belongs.
		"redis://:s3cr3t?@host:6379", "redis://me:1?s3cr3t@host:6379", "redis://:s3cr3t/host:6379", "redis:s3cr3t@host://", "rediss://:s3cr3t#@host:port",
	} {
		box, err := signalbox.Open(t.Context(), location)
		if !errors.Is(err, signalbox.ErrInvalid) {
			t.Errorf("%q: got %v, %v", location, box, err)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error tells the password: %v", location, err)
		}
		if !strings.Contains(err.Error(), "redis+sentinel://") {
			t.Errorf("%q: the error does not say what is known: %v", location, err)
		}
	}
}

func TestOpenSaysThatNobodyListens(t *testing.T) {
	t.Parallel()
	_, err := signalbox.Open(t.Context(), "redis://:s3cr3t@127.0.0.1:"+difftest.FreePort(t))
	if !errors.Is(err, signalbox.ErrUnavailable) || strings.Contains(err.Error(), "s3cr3t") {
		t.Fatalf("got %v", err)
	}
}

func TestOpenUnixSocket(t *testing.T) {
	t.Parallel()
	// A temporary folder of the test's may have a path too long for a socket.
	dir, err := os.MkdirTemp("", "signalbox") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// What a URL would take for something else: user, password, query, escapes.
	socket := filepath.Join(dir, "100%41:s@x?#")
	difftest.Redis(t, "--unixsocket", socket)
	location := url.URL{Scheme: "unix", Path: socket}
	box, err := signalbox.Open(t.Context(), location.String())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	lease, err := box.Mutex("m").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestBadArgumentsAreRefusedBeforeSending(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box := openBox(t, server.Addr)
	ctx := t.Context()
	for name, test := range map[string]struct {
		resource string
		limit    int
		option   signalbox.AcquireOption
		want     error
	}{
		"empty name":     {"", 1, signalbox.Weight(1), signalbox.ErrInvalid},
		"long name":      {strings.Repeat("x", 513), 1, signalbox.Weight(1), signalbox.ErrInvalid},
		"broken name":    {"\xff", 1, signalbox.Weight(1), signalbox.ErrInvalid},
		"no limit":       {"a", 0, signalbox.Weight(1), signalbox.ErrInvalid},
		"negative limit": {"a", -1, signalbox.Weight(1), signalbox.ErrInvalid},
		"huge limit":     {"a", math.MaxInt32 + 1, signalbox.Weight(1), signalbox.ErrInvalid},
		"no weight":      {"a", 1, signalbox.Weight(0), signalbox.ErrInvalid},
		"heavy":          {"a", 2, signalbox.Weight(3), signalbox.ErrTooHeavy},
		"no ttl":         {"a", 1, signalbox.TTL(0), signalbox.ErrInvalid},
		"short ttl":      {"a", 1, signalbox.TTL(9 * time.Millisecond), signalbox.ErrInvalid},
		"long ttl":       {"a", 1, signalbox.TTL(366 * 24 * time.Hour), signalbox.ErrInvalid},
		"paced handoff":  {"a", 1, signalbox.Pace(signalbox.Every(time.Hour), 1), signalbox.ErrInvalid},
		"held handoff":   {"a", 1, signalbox.HoldAtLeast(time.Hour), signalbox.ErrInvalid},
	} {
		options := []signalbox.AcquireOption{test.option}
		if strings.HasSuffix(name, "handoff") { // what is passed on inside the process would be held to neither
			options = append(options, signalbox.LocalHandoff(2))
		}
		if _, err := box.Semaphore(test.resource, test.limit).Acquire(ctx, options...); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

// TestOneMutexValueManyGoroutines is the pitfall of libraries that keep the holder's token in the mutex.
func TestOneMutexValueManyGoroutines(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	mutex := openBox(t, server.Addr).Mutex("m")
	inside, last := 0, int64(0) // guarded by the mutex alone: the race detector watches
	var workers sync.WaitGroup
	for range 20 {
		workers.Go(func() {
			for range 20 {
				lease, err := mutex.Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				if inside++; inside != 1 || lease.Token() <= last {
					t.Errorf("%d inside, token %d after %d", inside, lease.Token(), last)
				}
				last = lease.Token()
				inside--
				if err := lease.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

func TestServerPausedLongerThanTheLease(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box := openBox(t, server.Addr)
	lease, err := box.Mutex("m").Acquire(t.Context(), signalbox.TTL(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	<-lease.Done()
	server.Resume()
	if !errors.Is(lease.Err(), signalbox.ErrLeaseLost) {
		t.Fatalf("got %v", lease.Err())
	}
}

func TestServerRestartedWithoutMemory(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box := openBox(t, server.Addr)
	ctx := t.Context()
	old, err := box.Mutex("m").Acquire(ctx, signalbox.TTL(600*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	server.Restart()
	<-old.Done() // the renewal finds nothing to renew
	next, err := box.Mutex("m").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if next.Token() <= old.Token() {
		t.Errorf("L2: token %d after %d", next.Token(), old.Token())
	}
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	defer leak.Check(t)()
	server := difftest.Redis(t)
	defer server.Kill()
	box, err := signalbox.Open(t.Context(), "redis://"+server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	var waiters sync.WaitGroup
	for i := range 100 {
		if _, err := box.Semaphore(fmt.Sprint(i), 1).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiters.Go(func() {
			if _, err := box.Semaphore(fmt.Sprint(i), 1).Acquire(context.Background()); !errors.Is(err, signalbox.ErrClosed) {
				t.Errorf("a waiter of a closed box got %v", err)
			}
		})
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	waiters.Wait()
}
