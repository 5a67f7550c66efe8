package racelab

import (
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

const semaphoreTimeout = 10 * time.Second

// What befalls the semaphores that go by the clocks of their clients: those are
// fast by more than the timeout, or slow by less.
var (
	semaphoreFaults = []Fault{Crash, LoseReply, Pause, Skew}
	semaphorePauses = []time.Duration{semaphoreTimeout + time.Second}
	semaphoreSkews  = []time.Duration{semaphoreTimeout + time.Second, -semaphoreTimeout / 2}
)

var semaphore = &Algorithm{
	Name: "semaphore", Summary: "a sorted set by the clients' clocks (Redis in Action 6.3.1)",
	Promises: []Promise{Limit, Kept, Freed}, Permits: 1, Timeout: semaphoreTimeout, Clients: 2, FaultsMax: 1,
	Faults: semaphoreFaults, Pauses: semaphorePauses, Skews: semaphoreSkews,
	Patient: func(c *Client) Patient {
		s := classic.Semaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semaphoreTimeout}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Release: func() error { return s.Release(background, id) },
		}
	},
}
