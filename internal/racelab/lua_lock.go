package racelab

import (
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

var luaLock = &Algorithm{
	Name: "lua-lock", Summary: "EXISTS and SETEX in a script (Redis in Action 11.2)",
	Promises: []Promise{Limit, Kept, Timed, Freed}, Permits: 1, Timeout: lockTimeout, Clients: 2, FaultsMax: 2, Attempts: 2, Timeless: true,
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
