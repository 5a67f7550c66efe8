package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Chaos kills what the centre consists of, one process after the other, without a word of warning: some agents, the manager
// who leads, the server.

// incident is something that befell the centre.
type incident struct {
	At   time.Time
	Text string
}

// chronicle keeps the last incidents.
type chronicle struct {
	mu    sync.Mutex
	all   int
	last  []incident
	print func(string)
}

func (c *chronicle) tell(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all++
	c.last = append(c.last, incident{time.Now(), text})
	if len(c.last) > 8 {
		c.last = c.last[1:]
	}
	c.print(text)
}

// recent are the last incidents, the newest first, and how many there were in all.
func (c *chronicle) recent() (newest []incident, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.last) - 1; i >= 0; i-- {
		newest = append(newest, c.last[i])
	}
	return newest, c.all
}

// wreak kills a victim every so often, in turn, until ctx ends. After each it says what the account says.
func wreak(ctx context.Context, every time.Duration, victims [][]*process, c *chronicle, account func() string) {
	for turn := 0; pause(ctx, every); turn++ {
		kind := victims[turn%len(victims)]
		victim := kind[turn/len(victims)%len(kind)]
		if victim.kill() {
			c.tell(fmt.Sprintf("kill -9 of %s; %s", victim.what, account()))
		}
	}
}
