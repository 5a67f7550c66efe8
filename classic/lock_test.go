package classic_test

import (
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

// brief is an acquire timeout of a few turns.
const brief = 5 * time.Millisecond

type locker interface {
	Acquire(t *testing.T, patience time.Duration) (string, error)
	Release(t *testing.T, id string) error
}

type plainLock struct{ classic.Lock }

func (l plainLock) Acquire(t *testing.T, patience time.Duration) (string, error) {
	return l.Lock.Acquire(t.Context(), patience)
}
func (l plainLock) Release(t *testing.T, id string) error { return l.Lock.Release(t.Context(), id) }

type luaLock struct{ classic.LuaLock }

func (l luaLock) Acquire(t *testing.T, patience time.Duration) (string, error) {
	return l.LuaLock.Acquire(t.Context(), patience)
}

func (l luaLock) Release(t *testing.T, id string) error { return l.LuaLock.Release(t.Context(), id) }

type binaryLock struct{ classic.BinaryLock }

func (l binaryLock) Acquire(t *testing.T, patience time.Duration) (string, error) {
	return l.BinaryLock.Acquire(t.Context(), patience)
}

func (l binaryLock) Release(t *testing.T, id string) error {
	return l.BinaryLock.Release(t.Context(), id)
}

// lockers are all locks, as one client has them.
func lockers(c classic.Client) map[string]locker {
	return map[string]locker{
		"first listing": plainLock{classic.Lock{Client: c, Name: "l"}},
		"Lock":          plainLock{classic.Lock{Client: c, Name: "l", Timeout: 1500 * time.Millisecond}},
		"LuaLock":       luaLock{classic.LuaLock{Client: c, Name: "l", Timeout: 1500 * time.Millisecond}},
		"BinaryLock":    binaryLock{classic.BinaryLock{Client: c, Name: "l"}},
	}
}

func TestLocksExcludeAndAreReleasedByTheirHolderOnly(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		for name, first := range lockers(a.Client) {
			second := lockers(b.Client)[name]
			t.Run(name, func(t *testing.T) {
				id := get(first.Acquire(t, brief))(t)
				_, err := second.Acquire(t, brief)
				wantErr(t, err, classic.ErrBusy)
				wantErr(t, second.Release(t, "b-1"), classic.ErrLost)
				wantErr(t, second.Release(t, ""), classic.ErrLost)
				must(t, first.Release(t, id))
				wantErr(t, first.Release(t, id), classic.ErrLost)
				must(t, second.Release(t, get(second.Acquire(t, brief))(t)))
				s.wantNoKeys(t)
			})
		}
	})
}

func TestTimeoutsAreRoundedUpToSeconds(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for _, name := range []string{"Lock", "LuaLock"} {
			lock := lockers(a.Client)[name]
			id := get(lock.Acquire(t, brief))(t)
			if left := s.admin.PTTL(t.Context(), "lock:l").Val(); left <= 1500*time.Millisecond || left > 2*time.Second {
				t.Errorf("%s has %v left, want nearly 2 s", name, left)
			}
			must(t, lock.Release(t, id))
		}
	})
}

func TestLockSendsWhatTheBookSays(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		lock := classic.Lock{Client: a.Client, Name: "l", Timeout: time.Second}
		other := classic.Lock{Client: b.Client, Name: "l", Timeout: time.Second}
		id := get(lock.Acquire(t.Context(), brief))(t)
		_, err := other.Acquire(t.Context(), time.Millisecond)
		wantErr(t, err, classic.ErrBusy)
		must(t, lock.Release(t.Context(), id))
		wantErr(t, other.Release(t.Context(), "b-1"), classic.ErrLost)
		wantRequests(t, a, "setnx", "expire", "watch", "get", "multi del exec")
		wantRequests(t, b, "setnx", "ttl", "watch", "get", "unwatch")
	})
}

func wantRequests(t *testing.T, a *actor, want ...string) {
	t.Helper()
	got := a.requests()
	if len(got) != len(want) {
		t.Fatalf("%s sent %q, want %q", a.name, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s sent %q, want %q", a.name, got, want)
		}
	}
}

func TestLockCrashBetweenSETNXAndEXPIRELeavesNoTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		lock := classic.Lock{Client: a.Client, Name: "l", Timeout: time.Second}
		var id string
		a.begin(t, into(&id, func() (string, error) { return lock.Acquire(t.Context(), brief) })).
			step("setnx").crash("expire")
		if left := s.admin.TTL(t.Context(), "lock:l").Val(); left != -1 {
			t.Fatalf("TTL is %d, want -1: nobody holds the lock, and it has no timeout", left)
		}
		// The first who wants it repairs it, and has it when that has passed.
		lock.Client = b.Client
		_, err := lock.Acquire(t.Context(), brief)
		wantErr(t, err, classic.ErrBusy)
		s.timeout(t, "lock:l")
		must(t, lock.Release(t.Context(), get(lock.Acquire(t.Context(), brief))(t)))
	})
}

func TestLockPauseBetweenSETNXAndEXPIREGivesTwoHolders(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b, c := s.actor(t, "a"), s.actor(t, "b"), s.actor(t, "c")
		lock := func(of *actor) classic.Lock {
			return classic.Lock{Client: of.Client, Name: "l", Timeout: time.Second}
		}
		var ofA string
		pausing := a.begin(t, into(&ofA, func() (string, error) { return lock(a).Acquire(t.Context(), brief) })).step("setnx")
		_, err := lock(b).Acquire(t.Context(), brief)
		wantErr(t, err, classic.ErrBusy) // and has repaired the timeout
		s.timeout(t, "lock:l")
		ofC := get(lock(c).Acquire(t.Context(), brief))(t)
		must(t, pausing.finish())
		if ofA == "" {
			t.Fatal("a was not told that it holds the lock")
		}
		if holder := s.admin.Get(t.Context(), "lock:l").Val(); holder != ofC {
			t.Fatalf("%s holds the lock, want c: a and c both believe that they do", holder)
		}
		wantErr(t, lock(a).Release(t.Context(), ofA), classic.ErrLost)
	})
}

func TestLockRepairCutsAnotherLockShort(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		long := classic.Lock{Client: a.Client, Name: "l", Timeout: time.Minute}
		short := classic.Lock{Client: b.Client, Name: "l", Timeout: time.Second}
		first := get(long.Acquire(t.Context(), brief))(t)
		var id string
		waiting := b.begin(t, into(&id, func() (string, error) { return short.Acquire(t.Context(), time.Millisecond) })).
			step("setnx")
		must(t, long.Release(t.Context(), first))
		waiting.step("ttl") // of no key at all: negative
		get(long.Acquire(t.Context(), brief))(t)
		wantErr(t, waiting.finish(), classic.ErrBusy)
		if left := s.admin.TTL(t.Context(), "lock:l").Val(); left > time.Second {
			t.Fatalf("the lock of a has %v left, want the second that b has set", left)
		}
	})
}

func TestHolderThatOutlivesTheTimeoutIsToldOnlyAtRelease(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		for _, name := range []string{"Lock", "LuaLock"} {
			first, second := lockers(a.Client)[name], lockers(b.Client)[name]
			ofA := get(first.Acquire(t, brief))(t)
			s.timeout(t, "lock:l")
			ofB := get(second.Acquire(t, brief))(t) // both are at work now
			wantErr(t, first.Release(t, ofA), classic.ErrLost)
			must(t, second.Release(t, ofB)) // which a has not deleted
		}
	})
}

func TestLockLostReplyLeavesALockThatNobodyHolds(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		lock := classic.Lock{Client: a.Client, Name: "l", Timeout: time.Second}
		var id string
		a.begin(t, into(&id, func() (string, error) { return lock.Acquire(t.Context(), brief) })).loseReply("setnx")
		lock.Client = b.Client
		_, err := lock.Acquire(t.Context(), brief)
		wantErr(t, err, classic.ErrBusy)
	})
}

func TestLuaLockNeverRepairsALockWithoutTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		get(classic.Lock{Client: a.Client, Name: "l"}.Acquire(t.Context(), brief))(t)
		_, err := classic.LuaLock{Client: b.Client, Name: "l", Timeout: time.Second}.Acquire(t.Context(), time.Second)
		wantErr(t, err, classic.ErrBusy)
		if left := s.admin.TTL(t.Context(), "lock:l").Val(); left != -1 {
			t.Fatalf("TTL is %d, want -1: nobody has repaired it", left)
		}
	})
}

// The same steps as those that break Lock: one script leaves no place for them.
func TestLuaLockHasATimeoutAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		lock := classic.LuaLock{Client: a.Client, Name: "l", Timeout: time.Second}
		must(t, lock.Release(t.Context(), get(lock.Acquire(t.Context(), brief))(t))) // loads the scripts
		var id string
		a.begin(t, into(&id, func() (string, error) { return lock.Acquire(t.Context(), brief) })).loseReply("evalsha")
		s.timeout(t, "lock:l")
	})
}

func TestLocksDoNotQueue(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b, c := s.actor(t, "a"), s.actor(t, "b"), s.actor(t, "c")
		lock := func(of *actor) classic.Lock {
			return classic.Lock{Client: of.Client, Name: "l", Timeout: time.Second}
		}
		ofA := get(lock(a).Acquire(t.Context(), brief))(t)
		var ofB string
		waiting := b.begin(t, into(&ofB, func() (string, error) { return lock(b).Acquire(t.Context(), 2*time.Millisecond) })).
			step("setnx", "ttl")
		must(t, lock(a).Release(t.Context(), ofA))
		get(lock(c).Acquire(t.Context(), brief))(t) // has never waited
		wantErr(t, waiting.finish(), classic.ErrBusy)
	})
}
