package classic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/classic"
)

func list(a *actor) classic.ListSemaphore {
	return classic.ListSemaphore{Client: a.Client, Name: "lines", Limit: 2}
}

// shortWait is the shortest that BLPOP waits here.
const shortWait = time.Second

func TestListSemaphoreHandsOutEachPermitOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		if !get(list(a).Init(t.Context()))(t) || get(list(a).Init(t.Context()))(t) {
			t.Fatal("want the first Init to fill the list, and the second not to")
		}
		first := get(list(a).Acquire(t.Context(), shortWait))(t)
		second := get(list(a).Acquire(t.Context(), shortWait))(t)
		if first != "1" || second != "2" {
			t.Fatalf("got permits %s and %s, want 1 and 2", first, second)
		}
		_, err := list(a).Acquire(t.Context(), shortWait)
		wantErr(t, err, classic.ErrBusy)
		must(t, list(a).Release(t.Context(), first))
		if left := get(list(a).ReleaseCount(t.Context(), second))(t); left != 2 {
			t.Errorf("%d permits are left, want 2", left)
		}
	})
}

func TestListSemaphoreServesInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		got := map[string]chan string{}
		for i, name := range []string{"b", "c"} {
			waiting := s.actor(t, name)
			permit := make(chan string, 1)
			got[name] = permit
			go func() {
				id, err := list(waiting).Acquire(t.Context(), time.Minute)
				permit <- fmt.Sprint(id, err)
			}()
			blocked(t, s.admin, i+1)
		}
		must(t, list(a).Release(t.Context(), "2"))
		if first := <-got["b"]; first != "2<nil>" {
			t.Fatalf("b, who came first, got %s", first)
		}
		must(t, list(a).Release(t.Context(), "1"))
		if second := <-got["c"]; second != "1<nil>" {
			t.Fatalf("c got %s", second)
		}
	})
}

// blocked waits until so many clients wait on the server.
func blocked(t *testing.T, admin *redis.Client, n int) {
	t.Helper()
	for !containsLine(admin.Info(t.Context(), "clients").Val(), fmt.Sprintf("blocked_clients:%d", n)) {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
}

func containsLine(text, line string) bool {
	return slices.Contains(strings.Split(strings.ReplaceAll(text, "\r", ""), "\n"), line)
}

func TestListSemaphoreCrashWithinInitClosesIt(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		var filled bool
		a.begin(t, into(&filled, func() (bool, error) { return list(a).Init(t.Context()) })).step("setnx").crash("rpush")
		if get(list(b).Init(t.Context()))(t) {
			t.Fatal("b has filled the list, although it is marked as filled")
		}
		if n := s.admin.LLen(t.Context(), "permits:lines").Val(); n != 0 {
			t.Fatalf("%d permits, want none: all wait for ever", n)
		}
	})
}

func TestListSemaphoreLostReplySwallowsThePermit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		get(list(b).Init(t.Context()))(t)
		var permit string
		a.begin(t, into(&permit, func() (string, error) { return list(a).Acquire(t.Context(), shortWait) })).loseReply("blpop")
		if left := s.admin.LRange(t.Context(), "permits:lines", 0, -1).Val(); len(left) != 1 {
			t.Fatalf("the list has %q, want one permit: nobody holds the other", left)
		}
		if n := get(list(b).Restore(t.Context()))(t); n != 1 {
			t.Fatalf("restored %d permits, want 1", n)
		}
		if n := get(list(b).Restore(t.Context()))(t); n != 0 {
			t.Fatalf("one after the other, the second restored %d permits, want 0", n)
		}
	})
}

func TestListSemaphoreRestoreLeavesOutWhatIsHeld(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		if n := get(list(a).Restore(t.Context(), "1"))(t); n != 1 {
			t.Fatalf("restored %d permits, want the one that nobody holds", n)
		}
		if permit := get(list(a).Acquire(t.Context(), shortWait))(t); permit != "2" {
			t.Fatalf("got permit %s, want 2: the other is held", permit)
		}
	})
}

func TestListSemaphoreRestoredTwiceAtOnceIsOverTheLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		var byA, byB int
		first := a.begin(t, into(&byA, func() (int, error) { return list(a).Restore(t.Context()) })).step("lrange")
		must(t, b.begin(t, into(&byB, func() (int, error) { return list(b).Restore(t.Context()) })).step("lrange", "rpush").finish())
		must(t, first.step("rpush").finish())
		seen := map[string]int{}
		for range 4 { // of two permits
			seen[get(list(b).Acquire(t.Context(), shortWait))(t)]++
		}
		if byA != 2 || byB != 2 || seen["1"] != 2 || seen["2"] != 2 {
			t.Fatalf("restored %d and %d, handed out %v: want each permit twice", byA, byB, seen)
		}
	})
}

func TestListSemaphoreRestoredFromOldRecordsIsOverTheLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		get(list(a).Init(t.Context()))(t)
		held := get(list(a).Acquire(t.Context(), shortWait))(t) // not on record yet
		get(list(b).Restore(t.Context()))(t)
		get(list(b).Acquire(t.Context(), shortWait))(t)
		if second := get(list(b).Acquire(t.Context(), shortWait))(t); second != held {
			t.Fatalf("got permit %s, want %s, which a holds", second, held)
		}
	})
}

func TestListSemaphoreReleasedTwiceIsOverTheLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		get(list(a).Init(t.Context()))(t)
		permit := get(list(a).Acquire(t.Context(), shortWait))(t)
		must(t, list(a).Release(t.Context(), permit))
		if left := get(list(a).ReleaseCount(t.Context(), permit))(t); left != 3 {
			t.Fatalf("%d permits are left, want 3 of 2", left)
		}
	})
}

func TestListSemaphoreCountIsOldWhenSomebodyWaits(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		got := make(chan error, 1)
		go func() {
			_, err := list(b).Acquire(t.Context(), time.Minute)
			got <- err
		}()
		blocked(t, s.admin, 1)
		if left := get(list(a).ReleaseCount(t.Context(), "1"))(t); left != 1 {
			t.Fatalf("%d permits are left, want 1", left)
		}
		must(t, <-got)
		if n := s.admin.LLen(t.Context(), "permits:lines").Val(); n != 0 {
			t.Fatalf("the list has %d permits, want none: b waited for the one that was counted", n)
		}
	})
}
