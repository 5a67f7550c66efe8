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

// nothingLeft checks that what the boxes left behind goes away by itself: neither lease nor waiter outlives its time
// (L7), and every key that remembers them expires, since nobody is left who could prolong it (L6).
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
	for _, name := range Names(l.t) {
		Await(l.t, "L7: neither lease nor waiter left of "+name, func() bool {
			state, err := box.Inspect(l.t.Context(), name)
			return err == nil && state.Leases == 0 && state.Waiters == 0 && state.Held == 0
		})
	}
	for _, server := range l.setup.Servers() {
		for _, key := range keys(l.t, server) {
			ttl, err := server.PTTL(l.t.Context(), key).Result()
			if err != nil || ttl == noExpiry || ttl > TTL+Claim+tail {
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
