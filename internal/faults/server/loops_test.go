//go:build unix

package server_test

import (
	"testing"
	"time"
)

// What an operator may do to a server at any time, done all the time.

func TestScriptsFlushed(t *testing.T) {
	s := start(t, true)
	s.Repeat(5*time.Millisecond, 20, func() {
		if err := s.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
	s.Finish()
}

func TestClientsKilled(t *testing.T) {
	s := start(t, false)
	killed := int64(0)
	s.Repeat(5*time.Millisecond, 10, func() {
		for _, kind := range []string{"normal", "pubsub"} {
			n, err := s.client.ClientKillByFilter(t.Context(), "TYPE", kind).Result()
			if err != nil {
				t.Error(err)
			}
			killed += n
		}
	})
	if killed < 100 {
		t.Errorf("only %d connections were killed", killed)
	}
	s.Finish()
}

// TestDataFlushed: every lease is lost each time, and its holder told by the next renewal. Callers that acquire notice
// nothing.
func TestDataFlushed(t *testing.T) {
	s := start(t, true)
	s.Repeat(100*time.Millisecond, 10, func() {
		s.Losing(func() {
			if err := s.client.FlushAll(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		})
	})
	s.Finish()
}
