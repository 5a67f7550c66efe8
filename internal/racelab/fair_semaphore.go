package racelab

import "github.com/signalbox-io/signalbox/classic"

var fairSemaphore = &Algorithm{
	Name: "fair-semaphore", Summary: "a counter, and a sorted set by it (Redis in Action 6.3.2 to 6.3.4)",
	Promises: []Promise{Limit, Kept, Truth, Freed}, Permits: 1, Timeout: semaphoreTimeout, Clients: 2, FaultsMax: 1,
	Faults: semaphoreFaults, Pauses: semaphorePauses, Skews: semaphoreSkews,
	Patient: func(c *Client) Patient {
		s := classic.FairSemaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semaphoreTimeout}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Refresh: func() error { return s.Refresh(background, id) },
			Release: func() error { return s.Release(background, id) },
		}
	},
}
