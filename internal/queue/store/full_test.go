package store

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// A server whose memory is full takes nothing in. But workers keep their leases and their jobs end, and operators may stop and
// delete: all of that makes room.
func TestAFullServer(t *testing.T) {
	t.Run("engine", func(t *testing.T) {
		l := newLab(t)
		whenFull(t, l.Store, func(bytes string) { l.raw("CONFIG", "SET", "maxmemory", bytes) })
	})
	t.Run("redis", func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: difftest.Redis(t).Addr, MaxRetries: -1})
		t.Cleanup(func() { must(t, client.Close()) })
		s, err := New(goredis.New(client), "app", "producer", time.Minute)
		must(t, err)
		whenFull(t, s, func(bytes string) { must(t, client.ConfigSet(t.Context(), "maxmemory", bytes).Err()) })
	})
}

func whenFull(t *testing.T, s *Store, memory func(bytes string)) {
	t.Helper()
	items := func(ids ...string) (list []Item) {
		for _, id := range ids {
			list = append(list, Item{ID: id, Lane: Lane{Kind: "note"}, Rest: "{}"})
		}
		return list
	}
	calls := int64(0)
	work := func(change ...func(*Report)) *Answer {
		t.Helper()
		calls++
		r := &Report{
			Worker: "w", Call: calls, Lease: 15 * time.Second, State: "online", Room: "slot:1", Kinds: "note", Info: "{}", Want: 1,
			Register: calls == 1,
		}
		for _, c := range change {
			c(r)
		}
		answer, err := s.Work(t.Context(), r)
		must(t, err)
		return answer
	}
	_, err := s.Enqueue(t.Context(), 1, items("a", "b", "c"))
	must(t, err)
	work()
	first := work().Claims[0]
	memory("1")
	if _, err = s.Enqueue(t.Context(), 2, items("d")); err == nil || !strings.Contains(err.Error(), `"app"`) || !strings.Contains(err.Error(), "memory is full") {
		t.Errorf("a full server takes a job in, and says %v", err)
	}
	work() // a heartbeat
	want(t, "next", ids(work(over(first, "done")).Claims), "b")
	must(t, s.Configure(t.Context(), "pause", "1"))
	outcomes, err := s.Change(t.Context(), "delete", "", "", []string{"c", "d"})
	must(t, err)
	want(t, "deleted", strings.Join(outcomes, " "), "ok unknown")
	memory("0")
	_, err = s.Enqueue(t.Context(), 2, items("d"))
	must(t, err)
	findings, err := s.Check(t.Context(), false, time.Minute)
	must(t, err)
	want(t, "findings", len(findings), 0)
}
