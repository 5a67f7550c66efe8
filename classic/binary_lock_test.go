package classic_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

// patient is a clock whose alarms never ring by themselves.
type patient struct{}

func (patient) Now() time.Time { return epoch }

func (patient) Sleep(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// subscribing tells when a connection subscribes, and waits for leave to do so.
type subscribing struct {
	net.Conn
	asks  chan<- struct{}
	leave <-chan struct{}
}

func (c subscribing) Write(p []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(p), []byte("subscribe")) {
		c.asks <- struct{}{}
		<-c.leave
	}
	return c.Conn.Write(p)
}

// waiter is a client that waits for a lock that is held, up to where it is
// about to subscribe.
func waiter(t *testing.T, s *server, clock classic.Clock) (asks <-chan struct{}, leave chan<- struct{}, acquired <-chan error) {
	t.Helper()
	asking, let := make(chan struct{}), make(chan struct{})
	client := s.connect(t, func(conn net.Conn) net.Conn { return subscribing{conn, asking, let} })
	lock := classic.BinaryLock{Client: classic.Client{Redis: client, Clock: clock}, Name: "l"}
	done := make(chan error, 1)
	go func() {
		_, err := lock.Acquire(t.Context(), time.Second)
		done <- err
	}()
	<-asking
	return asking, let, done
}

// subscribers waits until so many clients listen.
func subscribers(t *testing.T, s *server, n int64) {
	t.Helper()
	for s.admin.PubSubNumSub(t.Context(), "binary:l:released").Val()["binary:l:released"] != n {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
}

func TestBinaryLockWakesAWaiterByItsRelease(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		lock := classic.BinaryLock{Client: s.actor(t, "a").Client, Name: "l"}
		id := get(lock.Acquire(t.Context(), time.Second))(t)
		_, leave, acquired := waiter(t, s, patient{})
		leave <- struct{}{}
		subscribers(t, s, 1)
		must(t, lock.Release(t.Context(), id))
		must(t, <-acquired)
	})
}

func TestBinaryLockLosesTheNoticeBeforeItSubscribes(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		lock := classic.BinaryLock{Client: s.actor(t, "a").Client, Name: "l"}
		id := get(lock.Acquire(t.Context(), time.Second))(t)
		ringing := &clock{now: epoch, sleeps: -1} // its acquire timeout passes at once
		_, leave, acquired := waiter(t, s, ringing)
		must(t, lock.Release(t.Context(), id)) // nobody listens yet
		leave <- struct{}{}
		wantErr(t, <-acquired, classic.ErrBusy)
		s.wantNoKeys(t) // the lock was free all the time
	})
}

// alarm is a clock whose sleep ends when the test says so.
type alarm struct {
	patient
	rings <-chan struct{}
}

func (a alarm) Sleep(ctx context.Context, _ time.Duration) error {
	select {
	case <-a.rings:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestBinaryLockLosesTheNoticeWhileItsConnectionIsBroken(t *testing.T) {
	s := onRedis(t) // the engine is asked the same; that go-redis connects again is not its matter
	lock := classic.BinaryLock{Client: s.actor(t, "a").Client, Name: "l"}
	id := get(lock.Acquire(t.Context(), time.Second))(t)
	rings := make(chan struct{})
	asks, leave, acquired := waiter(t, s, alarm{rings: rings})
	leave <- struct{}{}
	subscribers(t, s, 1)
	must(t, s.admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	<-asks // it is about to subscribe anew
	must(t, lock.Release(t.Context(), id))
	leave <- struct{}{}
	subscribers(t, s, 1)
	close(rings)
	wantErr(t, <-acquired, classic.ErrBusy)
	s.wantNoKeys(t)
}

func TestBinaryLockOfACrashedHolderStaysForEver(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		lock := classic.BinaryLock{Client: a.Client, Name: "l"}
		var id string
		a.begin(t, into(&id, func() (string, error) { return lock.Acquire(t.Context(), time.Second) })).
			step("watch", "get").loseReply("multi set exec")
		if left := s.admin.TTL(t.Context(), "binary:l").Val(); left != -1 {
			t.Fatalf("TTL is %d, want -1: it has no timeout", left)
		}
		lock.Client = b.Client
		_, err := lock.Acquire(t.Context(), time.Hour) // passes at once
		wantErr(t, err, classic.ErrBusy)
	})
}

func TestBinaryLockBeginsAgainWhenDisturbed(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		lock := func(of *actor) classic.BinaryLock { return classic.BinaryLock{Client: of.Client, Name: "l"} }
		var ofA string
		racing := a.begin(t, into(&ofA, func() (string, error) { return lock(a).Acquire(t.Context(), brief) })).
			step("watch", "get")
		ofB := get(lock(b).Acquire(t.Context(), brief))(t)
		must(t, lock(b).Release(t.Context(), ofB))
		racing.step("multi set exec", "watch", "get", "multi set exec")
		must(t, racing.finish())
		must(t, lock(a).Release(t.Context(), ofA))
	})
}

func TestBinaryLockWakesAllForOne(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		lock := classic.BinaryLock{Client: s.actor(t, "a").Client, Name: "l"}
		id := get(lock.Acquire(t.Context(), time.Second))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		type result struct {
			of  *actor
			err error
		}
		results := make(chan result, 2)
		for _, name := range []string{"b", "c"} {
			of := s.actor(t, name)
			client := of.Client
			client.Clock = patient{}
			go func() {
				_, err := classic.BinaryLock{Client: client, Name: "l"}.Acquire(ctx, time.Second)
				results <- result{of, err}
			}()
		}
		subscribers(t, s, 2)
		must(t, lock.Release(t.Context(), id))
		won := <-results
		must(t, won.err)
		cancel()
		lost := <-results
		wantErr(t, lost.err, context.Canceled)
		if !strings.HasPrefix(s.admin.Get(t.Context(), "binary:l").Val(), won.of.name) {
			t.Fatal("the winner does not hold the lock")
		}
	})
}
