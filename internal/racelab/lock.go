package racelab

import (
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

const lockTimeout = 10 * time.Second

var setnxLock = &Algorithm{
	Name: "setnx-lock", Summary: "SETNX, then EXPIRE (Redis in Action 6.2)",
	Promises: []Promise{Timed}, Permits: 1, Timeout: lockTimeout, Clients: 2, FaultsMax: 1,
	Timeless: true, Faults: []Fault{Crash}, Patient: lockPatient,
}

var lock = &Algorithm{
	Name: "lock", Summary: "SETNX, then EXPIRE; who finds a lock without a timeout repairs it (Redis in Action 6.2)",
	Promises: []Promise{Limit, Kept, Freed}, Permits: 1, Timeout: lockTimeout, Clients: 2, FaultsMax: 1, Attempts: 2, Timeless: true,
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
