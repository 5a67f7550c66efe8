package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/topology"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// The owner of a slot that moves stops a script in its middle when that comes to a key which does not exist (any more).
// Here every key exists when the script begins, and the report empties one of them.
func TestNoTransitionIsStoppedInItsMiddleWhileASlotMoves(t *testing.T) {
	c := topology.StartCluster(t, topology.ClusterOptions{Replicas: -1})
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{c.Nodes()[0].Addr}, MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { must(t, client.Close()) })
	s, err := New(goredis.New(client), "app", "p", 5*time.Second)
	must(t, err)
	claim := everyKey(t, s)
	for _, name := range append(keyNames, "producer:p") {
		if n := client.Exists(t.Context(), Prefix("app")+name).Val(); n == 0 && name != neverName {
			t.Fatalf("the test wants a key %s", name)
		}
	}
	done := &Report{
		Worker: "p/1", Call: 3, Lease: time.Minute, State: "online", Room: "slot:1", Kinds: "note", Info: "{}", Want: 5,
		Done: []Done{{ID: claim.ID, Token: claim.Token, Verb: "done"}},
	}
	c.MigrateSlot("app", func(stage topology.Stage) {
		if _, err := s.Work(t.Context(), done); err == nil || !ledger.Retryable(err) || !ledger.Undone(err) {
			t.Errorf("stage %d: a report is answered with %v", stage, err)
		}
	})
	answer, err := s.Work(t.Context(), done)
	must(t, err)
	want(t, "claims", ids(answer.Claims), "unique")
	found, err := s.Check(t.Context(), false, time.Minute)
	must(t, err)
	want(t, "findings", fmt.Sprint(found), "[]")
}

// everyKey makes a queue that has all its keys, and returns the one job that runs.
func everyKey(t *testing.T, s *Store) Claim {
	t.Helper()
	ctx := t.Context()
	must(t, s.Configure(ctx, "limit\ty\tk", "1", "rate\tk\tnote", "1000 100"))
	must(t, s.SetSchedule(ctx, Tick{Name: "later", Ms: time.Now().Add(time.Hour).UnixMilli(), Text: "{}"}))
	parked, unique, late := keyed("parked", "k"), keyed("unique", "k"), item("late")
	unique.UniqueField, unique.UniqueIn, late.Delay = "u", "wlhc", time.Hour
	for i, job := range []Item{item("ended"), keyed("runs", "k"), unique, parked, late, item("next")} {
		job.Lane.Kind = "note"
		_, err := s.Enqueue(ctx, int64(i+1), []Item{job})
		must(t, err)
	}
	_, err := s.Change(ctx, "cancel", "", "", []string{"ended"})
	must(t, err)
	r := &Report{Worker: "p/1", Lease: time.Minute, State: "online", Room: "slot:1", Kinds: "note", Info: "{}", Want: 1, Register: true}
	var claims []Claim
	for r.Call = 1; r.Call < 3; r.Call++ {
		r.Inventory = []string{}
		answer, err := s.Work(ctx, r)
		must(t, err)
		claims, r.Register = append(claims, append(answer.Claims, answer.Missing...)...), false
	}
	want(t, "claims", ids(claims), "runs")
	_, err = s.BeginHistory(ctx, 1000)
	must(t, err)
	return claims[0]
}
