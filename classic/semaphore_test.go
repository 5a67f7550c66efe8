package classic_test

import (
	"context"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

type semaphore interface {
	Acquire(ctx context.Context) (string, error)
	Release(ctx context.Context, id string) error
}

type refresher interface {
	semaphore
	Refresh(ctx context.Context, id string) error
}

func fair(a *actor, limit int) classic.FairSemaphore {
	return classic.FairSemaphore{Client: a.Client, Name: "s", Limit: limit, Timeout: 10 * time.Second}
}

func plain(a *actor, limit int) classic.Semaphore { return classic.Semaphore(fair(a, limit)) }

func lua(a *actor, limit int) classic.LuaSemaphore { return classic.LuaSemaphore(fair(a, limit)) }

func locked(a *actor, limit int) classic.LockedSemaphore {
	return classic.LockedSemaphore{FairSemaphore: fair(a, limit)}
}

// semaphores are all that hold permits by time, as one client has them.
func semaphores(a *actor, limit int) map[string]semaphore {
	return map[string]semaphore{
		"Semaphore": plain(a, limit), "FairSemaphore": fair(a, limit),
		"LockedSemaphore": locked(a, limit), "LuaSemaphore": lua(a, limit),
	}
}

func TestSemaphoresLetInAsManyAsTheLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for name, semaphore := range semaphores(a, 3) {
			t.Run(name, func(t *testing.T) {
				must(t, s.admin.FlushAll(t.Context()).Err())
				var ids []string
				for range 3 {
					ids = append(ids, get(semaphore.Acquire(t.Context()))(t))
				}
				_, err := semaphore.Acquire(t.Context())
				wantErr(t, err, classic.ErrBusy)
				must(t, semaphore.Release(t.Context(), ids[1]))
				wantErr(t, semaphore.Release(t.Context(), ids[1]), classic.ErrLost)
				ids[1] = get(semaphore.Acquire(t.Context()))(t)
				for _, id := range ids {
					must(t, semaphore.Release(t.Context(), id))
				}
				s.wantNoKeys(t, "s:counter")
			})
		}
	})
}

func TestPermitOfACrashedHolderEndsByTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for name, semaphore := range semaphores(a, 1) {
			t.Run(name, func(t *testing.T) {
				must(t, s.admin.FlushAll(t.Context()).Err())
				get(semaphore.Acquire(t.Context()))(t)
				a.clock.advance(9 * time.Second)
				_, err := semaphore.Acquire(t.Context())
				wantErr(t, err, classic.ErrBusy)
				a.clock.advance(2 * time.Second)
				get(semaphore.Acquire(t.Context()))(t)
			})
		}
	})
}

func TestRefreshKeepsThePermit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for name, semaphore := range semaphores(a, 1) {
			semaphore, ok := semaphore.(refresher)
			if !ok {
				continue
			}
			t.Run(name, func(t *testing.T) {
				must(t, s.admin.FlushAll(t.Context()).Err())
				id := get(semaphore.Acquire(t.Context()))(t)
				for range 3 {
					a.clock.advance(9 * time.Second)
					must(t, semaphore.Refresh(t.Context(), id))
					_, err := semaphore.Acquire(t.Context())
					wantErr(t, err, classic.ErrBusy)
				}
			})
		}
	})
}

func TestRefreshAfterLossSaysSoAndLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		for name, ofA := range semaphores(a, 1) {
			ofA, ok := ofA.(refresher)
			if !ok {
				continue
			}
			t.Run(name, func(t *testing.T) {
				must(t, s.admin.FlushAll(t.Context()).Err())
				id := get(ofA.Acquire(t.Context()))(t)
				b.clock.advance(b.clock.Now().Sub(epoch) + 11*time.Second) // time passes; a is paused
				ofB := semaphores(b, 1)[name]
				idOfB := get(ofB.Acquire(t.Context()))(t) // both are at work now
				wantErr(t, ofA.Refresh(t.Context(), id), classic.ErrLost)
				must(t, ofB.Release(t.Context(), idOfB))
				s.wantNoKeys(t, "s:counter")
			})
		}
	})
}

func TestSemaphoreSlowClockStealsAPermit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		b.clock.advance(-time.Millisecond)
		ofA := get(plain(a, 1).Acquire(t.Context()))(t)
		ofB := get(plain(b, 1).Acquire(t.Context()))(t)
		must(t, plain(a, 1).Release(t.Context(), ofA))
		must(t, plain(b, 1).Release(t.Context(), ofB)) // two held one permit
		// The others do not go by the order of clocks.
		for name := range semaphores(a, 1) {
			if name == "Semaphore" {
				continue
			}
			must(t, s.admin.FlushAll(t.Context()).Err())
			get(semaphores(a, 1)[name].Acquire(t.Context()))(t)
			if _, err := semaphores(b, 1)[name].Acquire(t.Context()); err == nil {
				t.Errorf("%s: a slow clock gets in", name)
			}
		}
	})
}

func TestFastClockPutsTheSemaphoreOverItsLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		b.clock.advance(11 * time.Second) // nobody has held for 11 s
		for name, ofA := range semaphores(a, 2) {
			t.Run(name, func(t *testing.T) {
				must(t, s.admin.FlushAll(t.Context()).Err())
				var ids []string
				for range 2 {
					ids = append(ids, get(ofA.Acquire(t.Context()))(t))
				}
				for range 2 {
					get(semaphores(b, 2)[name].Acquire(t.Context()))(t)
				}
				for _, id := range ids {
					wantErr(t, ofA.Release(t.Context(), id), classic.ErrLost)
				}
			})
		}
	})
}

func TestSemaphoreRefusedClientBlocksAFreePermit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b, c := s.actor(t, "a"), s.actor(t, "b"), s.actor(t, "c")
		ofA := get(plain(a, 1).Acquire(t.Context()))(t)
		var ofB string
		refused := b.begin(t, into(&ofB, func() (string, error) { return plain(b, 1).Acquire(t.Context()) })).
			step("multi zremrangebyscore zadd zrank exec")
		must(t, plain(a, 1).Release(t.Context(), ofA))
		c.clock.advance(time.Second)
		_, err := plain(c, 1).Acquire(t.Context())
		wantErr(t, err, classic.ErrBusy) // nobody holds a permit
		refused.crash("zrem")
		_, err = plain(c, 1).Acquire(t.Context())
		wantErr(t, err, classic.ErrBusy) // and so for the whole timeout
		c.clock.advance(11 * time.Second)
		get(plain(c, 1).Acquire(t.Context()))(t)
	})
}

func TestSemaphoreHolderOutlivesItsTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		for name, ofA := range semaphores(a, 1) {
			must(t, s.admin.FlushAll(t.Context()).Err())
			id := get(ofA.Acquire(t.Context()))(t)
			b.clock.advance(a.clock.Now().Sub(b.clock.Now()) + 10*time.Second)
			get(semaphores(b, 1)[name].Acquire(t.Context()))(t)
			wantErr(t, ofA.Release(t.Context(), id), classic.ErrLost)
		}
	})
}

func TestSemaphoreClientsThatStateDifferentLimits(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		for name := range semaphores(a, 1) {
			must(t, s.admin.FlushAll(t.Context()).Err())
			get(semaphores(a, 1)[name].Acquire(t.Context()))(t)
			b.clock.advance(time.Second)
			get(semaphores(b, 2)[name].Acquire(t.Context()))(t) // a's limit of 1 is exceeded
		}
	})
}

// The race of 6.3.5, with honest clocks: A counts first, B is added and asks
// first, A is added with the smaller number and takes the permit that B has.
func TestFairSemaphoreCounterRaceStealsAPermit(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		var ofA, ofB string
		first := a.begin(t, into(&ofA, func() (string, error) { return fair(a, 1).Acquire(t.Context()) })).
			step("multi zremrangebyscore zinterstore incr exec")
		must(t, b.begin(t, into(&ofB, func() (string, error) { return fair(b, 1).Acquire(t.Context()) })).
			step("multi zremrangebyscore zinterstore incr exec", "multi zadd zadd zrank exec").finish())
		must(t, first.step("multi zadd zadd zrank exec").finish())
		must(t, fair(b, 1).Refresh(t.Context(), ofB)) // both hold the one permit, and
		must(t, fair(a, 1).Refresh(t.Context(), ofA)) // even Refresh says so
	})
}

func TestFairSemaphoreCrashWithinRefreshLeavesAnEntry(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		ofA := get(fair(a, 1).Acquire(t.Context()))(t)
		b.clock.advance(10 * time.Second)
		ofB := get(fair(b, 1).Acquire(t.Context()))(t)
		a.begin(t, func() error { return fair(a, 1).Refresh(t.Context(), ofA) }).step("zadd").crash("multi zrem zrem exec")
		must(t, fair(b, 1).Release(t.Context(), ofB))
		s.wantNoKeys(t, "s", "s:counter")
		if left := s.admin.ZRange(t.Context(), "s", 0, -1).Val(); len(left) != 1 || left[0] != ofA {
			t.Fatalf("the set by time has %q, want the lost %q", left, ofA)
		}
		get(fair(b, 1).Acquire(t.Context()))(t) // it does no harm: the owners decide
	})
}

func TestSemaphoreSlowClockShortensThePermitByRefreshing(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		a.clock.advance(-9 * time.Second)
		for _, name := range []string{"FairSemaphore", "LuaSemaphore"} {
			must(t, s.admin.FlushAll(t.Context()).Err())
			ofA := semaphores(a, 1)[name].(refresher)
			id := get(ofA.Acquire(t.Context()))(t)
			must(t, ofA.Refresh(t.Context(), id))
			b.clock.advance(time.Second) // of the ten that a counts on
			get(semaphores(b, 1)[name].Acquire(t.Context()))(t)
		}
	})
}

func TestFairSemaphoreCounterBeyondWholeNumbers(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		must(t, s.admin.Set(t.Context(), "s:counter", int64(1)<<53-1, 0).Err())
		get(fair(b, 1).Acquire(t.Context()))(t) // 2^53
		get(fair(a, 1).Acquire(t.Context()))(t) // 2^53+1, which is no float64; a-1 sorts before b-1
	})
}

func TestLockedSemaphoreExcludesTheCounterRace(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		var ofA string
		first := a.begin(t, into(&ofA, func() (string, error) { return locked(a, 1).Acquire(t.Context()) })).
			step("setnx", "multi zremrangebyscore zinterstore incr exec")
		_, err := locked(b, 1).Acquire(t.Context())
		wantErr(t, err, classic.ErrBusy)
		must(t, first.finish())
		_, err = locked(b, 1).Acquire(t.Context())
		wantErr(t, err, classic.ErrBusy)
		must(t, locked(a, 1).Release(t.Context(), ofA))
	})
}

func TestLockedSemaphoreCrashUnderTheLockClosesIt(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		var ofA string
		a.begin(t, into(&ofA, func() (string, error) { return locked(a, 5).Acquire(t.Context()) })).
			step("setnx").crash("multi zremrangebyscore zinterstore incr exec")
		b.clock.advance(time.Hour)
		_, err := locked(b, 5).Acquire(t.Context()) // five permits are free
		wantErr(t, err, classic.ErrBusy)
		if left := s.admin.TTL(t.Context(), "lock:s").Val(); left != -1 {
			t.Fatalf("the lock ends in %v, want never", left)
		}
	})
}

func TestLockedSemaphorePauseBeyondTheLockIsTheRaceAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		withTimeout := func(of *actor) classic.LockedSemaphore {
			semaphore := locked(of, 1)
			semaphore.LockTimeout = time.Second
			return semaphore
		}
		var ofA string
		pausing := a.begin(t, into(&ofA, func() (string, error) { return withTimeout(a).Acquire(t.Context()) })).
			step("setnx", "expire", "multi zremrangebyscore zinterstore incr exec")
		s.timeout(t, "lock:s")
		ofB := get(withTimeout(b).Acquire(t.Context()))(t)
		must(t, pausing.finish())
		must(t, fair(a, 1).Refresh(t.Context(), ofA))
		must(t, fair(b, 1).Refresh(t.Context(), ofB)) // two hold one permit
	})
}

func TestLockedSemaphoreRefusesWhilePermitsAreFree(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		var ofA string
		slow := a.begin(t, into(&ofA, func() (string, error) { return locked(a, 5).Acquire(t.Context()) })).step("setnx")
		_, err := locked(b, 5).Acquire(t.Context())
		wantErr(t, err, classic.ErrBusy)
		if waited := b.clock.Now().Sub(epoch); waited != 10*time.Millisecond {
			t.Errorf("tried for %v, want 10 ms", waited)
		}
		must(t, slow.finish())
	})
}

// Every way in which two acquires of two clients can meet is two single steps:
// whichever comes first has the permit.
func TestLuaSemaphoreLeavesNoPlaceForARace(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		must(t, lua(a, 1).Release(t.Context(), get(lua(a, 1).Acquire(t.Context()))(t))) // loads the script
		var ofA string
		first := a.begin(t, into(&ofA, func() (string, error) { return lua(a, 1).Acquire(t.Context()) }))
		get(lua(b, 1).Acquire(t.Context()))(t)
		wantErr(t, first.step("evalsha").finish(), classic.ErrBusy)
	})
}
