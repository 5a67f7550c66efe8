package racelab

import (
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

const (
	lockTimeout = 10 * time.Second
	semTimeout  = 10 * time.Second
)

var setnxLock = &Algorithm{
	Name: "setnx-lock", Summary: "SETNX, then EXPIRE (Redis in Action 6.2)",
	Promises: []Promise{Timed}, Permits: 1, Timeout: lockTimeout, Clients: 2,
	Timeless: true, Faults: []Fault{Crash}, Patient: lockPatient,
}

var lock = &Algorithm{
	Name: "lock", Summary: "SETNX, then EXPIRE; who finds a lock without a timeout repairs it (Redis in Action 6.2)",
	Promises: []Promise{Limit, Kept, Freed}, Permits: 1, Timeout: lockTimeout, Clients: 2, Attempts: 2, Timeless: true,
	Faults: []Fault{Crash, LoseReply, Pause}, Pauses: []time.Duration{lockTimeout + time.Second}, Patient: lockPatient,
}

func lockPatient(c *Client) Patient {
	l := classic.Lock{Client: c.Client, Name: "x", Timeout: lockTimeout}
	var id string
	return Patient{
		Acquire:     func() (err error) { id, err = l.Acquire(background, time.Millisecond); return err },
		Release:     func() error { return l.Release(background, id) },
		FromSending: true,
	}
}

var luaLock = &Algorithm{
	Name: "lua-lock", Summary: "EXISTS and SETEX in a script (Redis in Action 11.2)",
	Promises: []Promise{Limit, Kept, Timed, Freed}, Permits: 1, Timeout: lockTimeout, Clients: 2, Attempts: 2, Timeless: true,
	Faults: []Fault{Crash, LoseRequest, LoseReply, Pause}, Pauses: []time.Duration{lockTimeout + time.Second},
	Patient: func(c *Client) Patient {
		l := classic.LuaLock{Client: c.Client, Name: "x", Timeout: lockTimeout}
		var id string
		return Patient{
			Acquire:     func() (err error) { id, err = l.Acquire(background, time.Millisecond); return err },
			Release:     func() error { return l.Release(background, id) },
			FromSending: true,
		}
	},
}

var semaphoreFaults = []Fault{Crash, LoseReply, Pause, Skew}

var semaphore = &Algorithm{
	Name: "semaphore", Summary: "a sorted set by the clients' clocks (Redis in Action 6.3.1)",
	Promises: []Promise{Limit, Kept, Freed}, Permits: 1, Timeout: semTimeout, Clients: 2,
	Faults: semaphoreFaults, Pauses: []time.Duration{semTimeout + time.Second}, Skews: []time.Duration{semTimeout + time.Second, -semTimeout / 2},
	Patient: func(c *Client) Patient {
		s := classic.Semaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semTimeout}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Release: func() error { return s.Release(background, id) },
		}
	},
}

var fairSemaphore = &Algorithm{
	Name: "fair-semaphore", Summary: "a counter, and a sorted set by it (Redis in Action 6.3.2 to 6.3.4)",
	Promises: []Promise{Limit, Kept, Truth, Freed}, Permits: 1, Timeout: semTimeout, Clients: 2,
	Faults: semaphoreFaults, Pauses: []time.Duration{semTimeout + time.Second}, Skews: []time.Duration{semTimeout + time.Second, -semTimeout / 2},
	Patient: func(c *Client) Patient {
		s := classic.FairSemaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semTimeout}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Refresh: func() error { return s.Refresh(background, id) },
			Release: func() error { return s.Release(background, id) },
		}
	},
}

var lockedSemaphore = &Algorithm{
	Name: "locked-semaphore", Summary: "the fair one under a lock (Redis in Action 6.3.5)",
	Promises: []Promise{Limit, Kept, Truth, Freed}, Permits: 1, Timeout: semTimeout, Clients: 2, Sleeps: 6 * time.Millisecond,
	Faults: semaphoreFaults, Pauses: []time.Duration{semTimeout + time.Second}, Skews: []time.Duration{semTimeout + time.Second, -semTimeout / 2},
	Patient: func(c *Client) Patient {
		s := classic.LockedSemaphore{
			FairSemaphore: classic.FairSemaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semTimeout},
		}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Refresh: func() error { return s.Refresh(background, id) },
			Release: func() error { return s.Release(background, id) },
		}
	},
}

var luaSemaphore = &Algorithm{
	Name: "lua-semaphore", Summary: "the sorted set in a script (Redis in Action 11.2)",
	Promises: []Promise{Limit, Kept, Truth, Freed}, Permits: 1, Timeout: semTimeout, Clients: 2,
	Faults: semaphoreFaults, Pauses: []time.Duration{semTimeout + time.Second}, Skews: []time.Duration{semTimeout + time.Second, -semTimeout / 2},
	Patient: func(c *Client) Patient {
		s := classic.LuaSemaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semTimeout}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Refresh: func() error { return s.Refresh(background, id) },
			Release: func() error { return s.Release(background, id) },
		}
	},
}
