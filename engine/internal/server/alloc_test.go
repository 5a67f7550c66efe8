package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// TestServingARequestDoesNotAllocate counts every allocation of the process
// while requests go over TCP and back: reading, running and writing them. Long
// replies are built in memory that is used again.
func TestServingARequestDoesNotAllocate(t *testing.T) {
	for name, c := range map[string]struct {
		pipeline int
		request  []string
	}{
		"one":            {1, []string{"GET", "key"}},
		"a pipeline":     {16, []string{"SET", "key", strings.Repeat("v", 64)}},
		"a long reply":   {1, []string{"LRANGE", "list", "0", "-1"}},
		"many long ones": {16, []string{"LRANGE", "list", "0", "99"}},
	} {
		t.Run(name, func(t *testing.T) {
			trip := newRoundTrip(t, c.pipeline, c.request...)
			for range 10 {
				trip.run(t) // until the buffers are large enough
			}
			if n := testing.AllocsPerRun(200, func() { trip.run(t) }); n > 0 {
				t.Errorf("%d times %q allocates %v times", c.pipeline, c.request[0], n)
			}
		})
	}
}

// TestACallInProcessAllocatesItsResultOnly: what the caller gets is its own.
func TestACallInProcessAllocatesItsResultOnly(t *testing.T) {
	s := open(t, server.Options{})
	setUp(t, s)
	for _, c := range []struct {
		request []string
		most    float64
	}{
		{[]string{"PING"}, 1},
		{[]string{"SET", "key", "value"}, 0},
		{[]string{"GET", "key"}, 1},
		{[]string{"INCR", "n"}, 0},
		{[]string{"HSET", "h", "f", "v"}, 0},
		{[]string{"EXISTS", "key"}, 0},
	} {
		words, ctx := args(c.request...), context.Background()
		call := func() {
			if _, err := s.Do(ctx, words); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(200, call); n > c.most {
			t.Errorf("%q allocates %v times, want %v", c.request, n, c.most)
		}
	}
}
