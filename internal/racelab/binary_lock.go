package racelab

import (
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

var binaryLock = &Algorithm{
	Name: "binary-lock", Summary: "a string without a timeout, and a message when it is released (EuroPython 2015)",
	Promises: []Promise{Limit, Woken, Freed}, Permits: 1, Clients: 2, FaultsMax: 1, Timeless: true,
	Faults: []Fault{Crash, LoseReply, LoseMessage},
	Patient: func(c *Client) Patient {
		l := classic.BinaryLock{Client: c.Client, Name: "x"}
		var id string
		return Patient{
			Acquire: func() (err error) { id, err = l.Acquire(background, time.Second); return err },
			Release: func() error { return l.Release(background, id) },
		}
	},
}
