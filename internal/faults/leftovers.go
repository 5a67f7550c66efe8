package faults

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

// ledgerKeys is the pattern of all keys of the library.
const ledgerKeys = "signalbox:*"

// tail is how long a key may outlive what it holds.
const tail = 10 * time.Second

// nothingLeft checks that the boxes left nothing behind: neither lease nor waiter (L7), and keys that remember them only
// for a while, since nobody is left who could prolong it (L6). What a box could not tell the servers while they were out
// of reach is over by now, so what is found here is what a box forgot. A last word may still be on its way: that much
// time it has, and no more, or it would be taken for what expires by itself.
func (l *Load) nothingLeft() {
	l.t.Helper()
	box, err := signalbox.Open(l.t.Context(), l.setup.Well)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() {
		if err := box.Close(); err != nil {
			l.t.Errorf("close a box: %v", err)
		}
	}()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	end := time.Now().Add(l.setup.claim() / 2)
	for _, name := range Names(l.t) {
		for ; ; <-again.C {
			state, err := box.Inspect(l.t.Context(), name)
			if err == nil && state.Leases == 0 && state.Waiters == 0 && state.Held == 0 {
				break
			}
			if late := time.Since(end); late > 0 && err == nil || late > starved {
				l.t.Errorf("L7: left behind: %+v, %v", state, err)
				break
			}
		}
	}
	// What is held, or ten heartbeats whose ids are named once (still.lua), and half as much more, so that it need not move
	// each time.
	longest := max(l.setup.ttl()+l.setup.claim(), 10*l.setup.claim())*3/2 + tail
	for _, server := range l.setup.Servers() {
		for _, key := range keys(l.t, server) {
			ttl, err := server.PTTL(l.t.Context(), key).Result()
			if err != nil || ttl == noExpiry || ttl > longest {
				l.t.Errorf("L6: %q expires in %v, %v", key, ttl, err)
			}
		}
	}
}

// noExpiry is what PTTL answers for a key that stays.
const noExpiry = -1

func keys(t *testing.T, server *redis.Client) (found []string) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), starved)
	defer done()
	for at := server.Scan(ctx, 0, ledgerKeys, 1000).Iterator(); ; found = append(found, at.Val()) {
		if !at.Next(ctx) {
			if err := at.Err(); err != nil {
				t.Errorf("list the keys of %v: %v", server, err)
			}
			return found
		}
	}
}
