package ledger_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// BenchmarkHeartbeat is what a second of waiting costs a server when 20 processes with 1,000 waiters each wait for one name:
// "server-us/id" is the processor time of the whole server for one waiter, "script-us/id" that of the transition, and
// "core-%" what all waiters take of a core with one heartbeat a second. "named" has all ids, "still" the process's word.
func BenchmarkHeartbeat(b *testing.B) {
	b.Run("named", func(b *testing.B) { benchHeartbeat(b, false) })
	b.Run("still", func(b *testing.B) { benchHeartbeat(b, true) })
}

func benchHeartbeat(b *testing.B, still bool) {
	const processes, each = 20, 1000
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(b).Addr})
	defer client.Close()
	l := ledger.New(goredis.New(client))
	resource, err := ledger.NewResource("crowd")
	if err != nil {
		b.Fatal(err)
	}
	var calls [][]ledger.HeartbeatRequest
	for p := range processes {
		var all []*ledger.AcquireRequest
		var requests []ledger.HeartbeatRequest
		for i := range each {
			if i%ledger.MaxBatch == 0 {
				process := fmt.Sprintf("%016x", uint64(p)*0x9e3779b97f4a7c15)
				requests = append(requests, ledger.HeartbeatRequest{Resource: resource, Claim: time.Hour, Process: process})
			}
			id := fmt.Sprintf("%016x:%d", uint64(p)*0x9e3779b97f4a7c15, i)
			last := &requests[len(requests)-1]
			last.IDs = append(last.IDs, id)
			all = append(all, &ledger.AcquireRequest{
				Resource: resource, ID: id, Weight: 1, Limit: 1, TTL: time.Hour, Wait: time.Hour, Claim: time.Hour,
			})
		}
		l.AcquireAll(ctx, all)
		calls = append(calls, requests)
	}
	words := make([][]ledger.StillRequest, processes)
	for p, requests := range calls {
		for i, result := range l.HeartbeatAll(ctx, requests) {
			words[p] = append(words[p], ledger.StillRequest{
				Resource: resource, Process: requests[i].Process, Claim: time.Hour, Version: result.Version,
			})
		}
	}
	before := spent(b, client)
	n := 0
	for b.Loop() {
		if still {
			for _, result := range l.StillAll(ctx, words[n%processes]) {
				if !result.Same || result.Err != nil {
					b.Fatal(result)
				}
			}
		} else {
			for _, result := range l.HeartbeatAll(ctx, calls[n%processes]) {
				if result.Err != nil || len(result.Gone) > 1 {
					b.Fatal(result)
				}
			}
		}
		n++
	}
	after := spent(b, client)
	script, server := (after[0]-before[0])/float64(n*each), (after[1]-before[1])/float64(n*each)
	b.ReportMetric(script, "script-us/id")
	b.ReportMetric(server, "server-us/id")
	b.ReportMetric(server*processes*each/1e4, "core-%")
}

// spent is the us that the server has spent in scripts, and at all.
func spent(b *testing.B, client *redis.Client) [2]float64 {
	b.Helper()
	var us [2]float64
	info, err := client.Info(context.Background(), "commandstats", "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "cmdstat_evalsha":
			_, rest, _ := strings.Cut(value, "usec=")
			value, _, _ = strings.Cut(rest, ",")
			us[0] = number(b, value)
		case "used_cpu_user", "used_cpu_sys":
			us[1] += number(b, value) * 1e6
		}
	}
	return us
}

func number(b testing.TB, text string) float64 {
	b.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
