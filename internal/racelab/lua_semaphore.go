package racelab

import "github.com/signalbox-io/signalbox/classic"

var luaSemaphore = &Algorithm{
	Name: "lua-semaphore", Summary: "the sorted set in a script (Redis in Action 11.2)",
	Promises: []Promise{Limit, Kept, Truth, Freed}, Permits: 1, Timeout: semaphoreTimeout, Clients: 2, FaultsMax: 1,
	Faults: semaphoreFaults, Pauses: semaphorePauses, Skews: semaphoreSkews,
	Patient: func(c *Client) Patient {
		s := classic.LuaSemaphore{Client: c.Client, Name: "s", Limit: 1, Timeout: semaphoreTimeout}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = s.Acquire(background); return err },
			Refresh: func() error { return s.Refresh(background, id) },
			Release: func() error { return s.Release(background, id) },
		}
	},
}
