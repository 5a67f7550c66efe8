package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// BenchmarkCycle is what locking costs a server: "script-us" is the time that the transitions of a cycle take, "commands" how
// many there are in them. "alone": a cycle is an acquire and its release. "contended": ten wait, the holder releases, which
// hands on, and asks again.
func BenchmarkCycle(b *testing.B) {
	for _, c := range []struct {
		name    string
		waiters int
		limit   int
	}{{"alone", 0, 1}, {"contended", 10, 1}, {"contended semaphore of 5", 50, 5}} {
		b.Run(c.name, func(b *testing.B) { benchCycle(b, c.waiters, c.limit) })
	}
}

func benchCycle(b *testing.B, waiters, limit int) {
	const batch = 200
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(b).Addr})
	defer client.Close()
	l := ledger.New(goredis.New(client))
	resource, err := ledger.NewResource("cycle")
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	request := func() *ledger.AcquireRequest {
		n++
		return &ledger.AcquireRequest{
			Resource: resource, ID: id(n), Weight: 1, Limit: limit, TTL: 30 * time.Second, Wait: time.Minute, Claim: 3 * time.Second,
			Owner: "host 12345 bench",
		}
	}
	var first []*ledger.AcquireRequest
	if waiters > 0 {
		for range waiters + limit {
			first = append(first, request())
		}
		l.AcquireAll(ctx, first)
	}
	released := 0
	calls, us := inside(b, client)
	for b.Loop() {
		for range batch {
			asked := l.AcquireAll(ctx, []*ledger.AcquireRequest{request()})[0]
			released++
			result := l.ReleaseAll(ctx, []ledger.ReleaseRequest{{Resource: resource, ID: id(released)}})[0]
			if asked.Err != nil || result.Err != nil || result.Hold != ledger.Held {
				b.Fatal(asked, result)
			}
		}
	}
	callsAfter, usAfter := inside(b, client)
	cycles := float64(b.N * batch)
	b.ReportMetric((callsAfter-calls)/cycles, "commands")
	b.ReportMetric((usAfter-us)/cycles, "script-us")
}

func id(n int) string { return fmt.Sprintf("0123456789abcdef:%d", n) }

// inside is how many commands scripts have run, and for how many us.
func inside(b testing.TB, client *redis.Client) (calls, us float64) {
	b.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		count, rest, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		switch spent, _, _ := strings.Cut(strings.TrimPrefix(rest, "usec="), ","); {
		case name == "cmdstat_evalsha":
			us = number(b, spent)
		case strings.HasPrefix(name, "cmdstat_") && name != "cmdstat_info":
			calls += number(b, count)
		}
	}
	return calls, us
}

// While an id is barred, because its acquisition was cancelled, everybody else's takes the fast lane still: one command more.
func TestACancelledAcquisitionCostsOthersOneCommand(t *testing.T) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(t).Addr})
	defer client.Close()
	l := ledger.New(goredis.New(client))
	resource, err := ledger.NewResource("turns")
	if err != nil {
		t.Fatal(err)
	}
	asked, released := 0, 0
	ask := func() {
		asked++
		result := l.AcquireAll(ctx, []*ledger.AcquireRequest{{
			Resource: resource, ID: id(asked), Weight: 1, Limit: 1, TTL: time.Hour, Wait: time.Hour, Claim: time.Hour, Owner: "host 1 turns",
		}})[0]
		if result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	const turns = 100
	commands := func() float64 {
		before, _ := inside(t, client)
		for range turns {
			ask()
			released++
			result := l.ReleaseAll(ctx, []ledger.ReleaseRequest{{Resource: resource, ID: id(released)}})[0]
			if result.Err != nil || result.Hold != ledger.Held {
				t.Fatalf("release %d: %+v", released, result)
			}
		}
		after, _ := inside(t, client)
		return (after - before) / turns
	}
	for range 10 {
		ask()
	}
	plain := commands()
	if _, err := l.Cancel(ctx, resource, "0123456789abcdef:gone", time.Hour); err != nil {
		t.Fatal(err)
	}
	if barred := commands(); barred > plain+1.5 {
		t.Errorf("a contended turn runs %.2f commands while an id is barred, and %.2f otherwise", barred, plain)
	}
}
