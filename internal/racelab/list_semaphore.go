package racelab

import (
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

var listSemaphore = &Algorithm{
	Name: "list-semaphore", Summary: "a list of permits, SETNX and RPUSH to fill it, BLPOP to take one (EuroPython 2015)",
	Promises: []Promise{Limit, Freed, Order}, Permits: 1, Clients: 3, FaultsMax: 1, Timeless: true,
	Faults: []Fault{Crash, LoseRequest, LoseReply, Pause}, Pauses: []time.Duration{2 * time.Second},
	Patient: func(c *Client) Patient {
		s := classic.ListSemaphore{Client: c.Client, Name: "s", Limit: 1}
		var permit string
		return Patient{
			Prepare: func() error { _, err := s.Init(background); return err },
			Acquire: func() (err error) { permit, err = s.Acquire(background, time.Second); return err },
			Release: func() error { return s.Release(background, permit) },
		}
	},
}
