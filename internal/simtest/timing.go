package simtest

import (
	"slices"
	"time"

	"github.com/signalbox-io/signalbox"
)

// Terms that are about time. A token is the server's clock at the grant, in us, so that what is seen of tokens is when the
// server granted, however late the answers came.

const (
	paceEvery = 150 * time.Millisecond
	paceBurst = 3
	restsFor  = 700 * time.Millisecond
)

func (r *roll) once(a *actor, limit int, options ...signalbox.AcquireOption) {
	s := a.stay(1)
	ctx, cancel := a.context()
	defer cancel()
	options = append(options, signalbox.TTL(s.ttl), signalbox.Label(s.label))
	lease, err := a.box.Semaphore(r.name, limit).Acquire(ctx, options...)
	if r.enter(ctx, s, lease, err) {
		a.work(lease.Done(), s.ttl)
		r.giveBack(s)
	}
}

// paced: in no window are there more grants than the burst and what the rate gives in that time.
func paced(w *world) workload {
	const limit = 4
	r := w.newRoll("pace", limit)
	var granted []int64 // tokens, in order
	r.also = func(s *stay) {
		granted = slices.DeleteFunc(granted, w.check.forgotten)
		at, _ := slices.BinarySearch(granted, s.token)
		granted = slices.Insert(granted, at, s.token)
		for i := range at + 1 {
			for j := at; j < len(granted); j++ {
				span := time.Duration(granted[j]-granted[i]) * time.Microsecond
				if n := j - i + 1; n > paceBurst && span < time.Duration(n-paceBurst)*paceEvery {
					w.check.violated("pace: %d grants within %v", n, span)
				}
			}
		}
	}
	turn := func(a *actor) { r.once(a, limit, signalbox.Pace(signalbox.Every(paceEvery), paceBurst)) }
	return workload{turn: turn}
}

// delayed: after a lease that its holder never gave back, nothing is granted until the delay after its end is over. The
// holder's deadline is before the server's.
func delayed(w *world) workload {
	r := w.newRoll("delay", 1)
	r.also = r.after(func(last *stay) (earliest time.Time, why string) {
		if last.gaveBack {
			return time.Time{}, ""
		}
		return last.lease.Deadline().Add(restsFor), "delay: the lease before it ended by itself"
	})
	return workload{turn: func(a *actor) { r.once(a, 1, signalbox.LockDelay(restsFor)) }}
}

// heldAtLeast: however early a lease was given back, nothing is granted until the time it was to be held for is over.
func heldAtLeast(w *world) workload {
	r := w.newRoll("hold", 1)
	r.also = r.after(func(last *stay) (earliest time.Time, why string) {
		earliest = time.UnixMicro(last.token).Truncate(time.Millisecond).Add(restsFor)
		if last.until.Before(earliest) { // it ended by itself, or would have before the release arrived
			earliest = last.until
		}
		return earliest, "hold: the one before it was given back"
	})
	return workload{turn: func(a *actor) { r.once(a, 1, signalbox.HoldAtLeast(restsFor)) }}
}

// after holds each grant against the one before it, by their tokens.
func (r *roll) after(limit func(last *stay) (earliest time.Time, why string)) func(*stay) {
	var all []*stay // by token
	return func(s *stay) {
		c := r.world.check
		all = slices.DeleteFunc(all, func(old *stay) bool { return c.forgotten(old.token) })
		at, _ := slices.BinarySearchFunc(all, s.token, func(old *stay, token int64) int { return int(old.token - token) })
		all = slices.Insert(all, at, s)
		for i := max(at, 1); i <= min(at+1, len(all)-1); i++ {
			earliest, why := limit(all[i-1])
			if granted := time.UnixMicro(all[i].token); granted.Before(earliest) {
				c.violated("%s: %s was granted %v too early after %s", why, all[i].label, earliest.Sub(granted), all[i-1].label)
			}
		}
		if len(all) > 50 {
			all = slices.Delete(all, 0, 25)
		}
	}
}
