package racelab

import (
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

var lockedSemaphore = &Algorithm{
	Name: "locked-semaphore", Summary: "the fair one under a lock (Redis in Action 6.3.5)",
	Promises: []Promise{Limit, Kept, Truth, Freed}, Permits: 1, Timeout: semaphoreTimeout, Clients: 2, FaultsMax: 1, Sleeps: 6 * time.Millisecond,
	Faults: semaphoreFaults, Pauses: semaphorePauses, Skews: semaphoreSkews,
	Patient: func(c *Client) Patient {
		s := classic.LockedSemaphore{
			FairSemaphore: classic.FairSemaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semaphoreTimeout},
		}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Refresh: func() error { return s.Refresh(background, id) },
			Release: func() error { return s.Release(background, id) },
		}
	},
}
