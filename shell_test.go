package signalbox

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/leaseclock"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// What the shell around the machine adds of its own.

// A lease whose end is near may not wait long for the answer to its renewal. The others in need of one may, and go in as few
// pipelines as there can be.
func TestUrgentRenewalHurriesNobody(t *testing.T) {
	t.Parallel()
	lefts := []time.Duration{-time.Second, 20 * time.Millisecond}
	for range 2*batchMax + 1 {
		lefts = append(lefts, 20*time.Second)
	}
	patience := make(map[*life]time.Duration)
	var batch []sending
	for i := range lefts {
		s := sending{life: &life{}, call: acquisition.CallRenew}
		patience[s.life] = patienceFor(lefts[len(lefts)-1-i], DefaultClaim)
		batch = append(batch, s)
	}
	want := []struct {
		size     int
		patience time.Duration
	}{
		{1, time.Millisecond},
		{1, 10 * time.Millisecond},
		{batchMax, DefaultClaim},
		{batchMax, DefaultClaim},
		{1, DefaultClaim},
	}
	parts := alike(batch, patience)
	if len(parts) != len(want) {
		t.Fatalf("%d batches, want %d", len(parts), len(want))
	}
	for i, part := range parts {
		if got := patience[part[0].life]; len(part) != want[i].size || got != want[i].patience {
			t.Errorf("batch %d: %d leases and %v, want %d and %v", i, len(part), got, want[i].size, want[i].patience)
		}
	}
}

// On a busy machine a timer may come long after its time. What Err says is true all the same, and stays so.
func TestALeaseIsNotHeldBeyondItsDeadlineThoughItsTimerIsLate(t *testing.T) {
	t.Parallel()
	lease, sleep := heldForAnHour(t)
	if err := lease.Err(); err != nil {
		t.Fatal(err)
	}
	sleep(time.Hour)
	if err := lease.Err(); !errors.Is(err, ErrLeaseLost) {
		t.Fatalf("a lease whose deadline has passed says %v", err)
	}
	var out outbox
	lease.box.mu.Lock()
	lease.box.answered(&sending{life: lease.life, call: acquisition.CallRenew}, lease.box.clock.Now(),
		&reply{answer: acquisition.Answer{Outcome: acquisition.Kept}}, &out)
	lease.box.mu.Unlock()
	lease.box.perform(&out)
	if err := lease.Err(); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a lease that was lost says %v when a renewal is answered late", err)
	}
	<-lease.Done()
}

// So it is with a lease of a majority.
func TestAQuorumIsNotHeldBeyondTheDeadlinesOfItsLeasesThoughTheirTimersAreLate(t *testing.T) {
	t.Parallel()
	var boxes []*Box
	var held []answer
	sleeps := make([]func(time.Duration), 3)
	for server := range sleeps {
		var lease *Lease
		lease, sleeps[server] = heldForAnHour(t)
		boxes, held = append(boxes, lease.box), append(held, answer{server: server, lease: lease})
	}
	l := newQuorumLease(t.Context(), NewQuorum(boxes...).Mutex("m"), 1, held, nil, &terms{ttl: time.Hour})
	for i, want := range []error{nil, nil, ErrLeaseLost} {
		if err := l.Err(); !errors.Is(err, want) {
			t.Fatalf("with %d of 3 lost: %v", i, err)
		}
		sleeps[i](time.Hour)
	}
	<-l.Done()
}

// A message of a grant, and the inbox that opens, reach the life that they are for, and only that.
func TestMessagesReachTheLifeTheyAreFor(t *testing.T) {
	t.Parallel()
	lease, _ := heldForAnHour(t)
	b := lease.box
	for _, payload := range []string{"force", "force stranger:1", "force " + lease.ID() + " 1", "nonsense " + lease.ID()} {
		b.receive(transport.Event{Payload: payload})
		if err := lease.Err(); err != nil {
			t.Fatalf("%q: %v", payload, err)
		}
	}
	b.receive(transport.Event{Payload: "wanted " + lease.ID()})
	<-lease.Wanted()
	b.receive(transport.Event{Subscribed: true})
	b.receive(transport.Event{Payload: "force " + lease.ID()})
	if err := lease.Err(); !errors.Is(err, ErrForced) {
		t.Errorf("got %v", err)
	}
}

// heldForAnHour returns a lease of a server that nobody can reach, and what has the computer sleep, as far as its box can
// tell.
func heldForAnHour(t *testing.T) (*Lease, func(time.Duration)) {
	t.Helper()
	var asleep atomic.Int64
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}) // nobody listens
	box := New(client, Claim(50*time.Millisecond))
	box.clock = leaseclock.NewWith(func() time.Duration { return time.Duration(asleep.Load()) })
	t.Cleanup(func() {
		// That the server could not be told is as it must be.
		if err := box.Close(); err != nil && !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		client.Close()
	})
	terms := newTerms([]AcquireOption{TTL(time.Hour)})
	p := box.Semaphore("s", 1).permit(t.Context(), &terms)
	l := box.newLife(t.Context(), p, acquisition.Terms{TTL: terms.ttl, Weight: 1, Wait: true}, p.id)
	granted := acquired(ledger.AcquireAnswer{Outcome: ledger.Granted, Token: 1}, nil)
	var out, ignored outbox
	box.mu.Lock()
	box.register(l)
	now := box.clock.Now()
	box.step(l, now, acquisition.Event{What: acquisition.Begin}, &ignored)
	box.answered(&sending{life: l, call: acquisition.CallAcquire}, now, &granted, &out)
	box.mu.Unlock()
	box.perform(&out)
	return l.outcome.lease, func(d time.Duration) { asleep.Add(int64(d)) }
}

// A computer that sleeps stops the clock of its timers. On waking the lease ends all the same, within a second.
func TestALeaseEndsWhenTheComputerHasSleptBeyondItsDeadline(t *testing.T) {
	t.Parallel()
	lease, sleep := heldForAnHour(t)
	sleep(2 * time.Hour)
	<-lease.Done()
	if err := lease.Err(); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// Who sleeps for less than is left of the lease still holds it, and has that much less.
func TestALeaseBearsASleepThatIsShorter(t *testing.T) {
	t.Parallel()
	lease, sleep := heldForAnHour(t)
	before := lease.Deadline()
	sleep(30 * time.Minute)
	if err := lease.Err(); err != nil {
		t.Fatal(err)
	}
	if took := before.Sub(lease.Deadline()); took != 30*time.Minute {
		t.Errorf("half an hour of sleep took %v off the lease", took)
	}
}

// What a transport says after Close, of lives that are over or that nobody knows, changes nothing and brings nobody down.
func TestWhatComesAfterCloseChangesNothing(t *testing.T) {
	t.Parallel()
	lease, _ := heldForAnHour(t)
	b := lease.box
	if err := b.Close(); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("the server cannot be reached, and Close says %v", err)
	}
	for _, payload := range []string{
		"grant " + lease.ID() + " 1 2 3", "force " + lease.ID(), "heavy " + lease.ID() + " 1", "ask " + lease.ID() + " -5",
		"wanted " + lease.ID(), "open nobody:1 7", "grant nobody:1 9223372036854775807 -9223372036854775808 0", "", "grant",
	} {
		b.receive(transport.Event{Payload: payload})
	}
	b.receive(transport.Event{Subscribed: true})
	for _, call := range []acquisition.Call{
		acquisition.CallAcquire, acquisition.CallHeartbeat, acquisition.CallRenew, acquisition.CallRelease,
		acquisition.CallCancel, acquisition.CallReweigh,
	} {
		var out outbox
		b.mu.Lock()
		b.answered(&sending{life: lease.life, call: call}, b.clock.Now(), &reply{}, &out)
		b.answered(&sending{life: lease.life, call: call}, b.clock.Now(), &reply{err: ErrUnavailable}, &out)
		b.mu.Unlock()
		b.perform(&out)
	}
	if err := lease.Err(); !errors.Is(err, ErrClosed) {
		t.Errorf("the lease says %v", err)
	}
	if lives, relays, alarms := b.Remembered(); lives+relays+alarms != 0 {
		t.Errorf("%d lives, %d relays, %d alarms are left", lives, relays, alarms)
	}
}

// Callers who find that nobody knows the server yet share one question and its answer.
func TestCallersShareTheQuestionForTheVersion(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var conns atomic.Int64 // which nobody answers
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			defer conn.Close()
		}
	}()
	client := redis.NewClient(&redis.Options{
		Addr: listener.Addr().String(), MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: 300 * time.Millisecond,
	})
	defer client.Close()
	box := New(client, Claim(300*time.Millisecond))
	defer box.Close()
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if _, err := box.Mutex("m").TryAcquire(t.Context()); !errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	callers.Wait()
	if n := conns.Load(); n > 5 {
		t.Errorf("%d connections for one question of 20 callers", n)
	}
}

// What one server of a quorum says for good decides nothing as long as the others can make a majority.
func TestAQuorumIsNotRefusedByAMinority(t *testing.T) {
	t.Parallel()
	m := &QuorumMutex{&Quorum{boxes: make([]*Box, 3), majority: 2}, "m"}
	busy, closed := error(&BusyError{Resource: "m"}), fmt.Errorf("acquire %q: %w", "m", ErrClosed)
	for _, c := range []struct {
		errs []error
		want error
	}{
		{[]error{closed, busy}, ErrBusy},
		{[]error{closed, ErrUnavailable}, ErrUnavailable},
		{[]error{closed, closed}, ErrClosed},
		{[]error{busy, fmt.Errorf("acquire %q: %w", "m", ErrForced)}, ErrForced},
	} {
		if err := m.failure(1, c.errs); !errors.Is(err, c.want) {
			t.Errorf("%v: got %v", c.errs, err)
		}
	}
}
