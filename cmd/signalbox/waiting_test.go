package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

// A log has a line when the waiting begins, and one a minute though nothing changes.
func TestWhoWaitsSaysSoEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := embedded.Open("", signalbox.Owner("web1:42"))
		if err != nil {
			t.Fatal(err)
		}
		lease, err := box.Mutex("x").Acquire(t.Context(), signalbox.Label("nightly"))
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		display := (&app{stderr: &said}).newWaitingDisplay(t.Context(), box.Box, []string{"x"}, 1)
		display.changed(signalbox.Waiting{})
		time.Sleep(150 * time.Second)
		display.close()
		want := "signalbox: waiting for x: 1st in the queue, 1 of 1 held by web1:42 nightly (0ms)\n" +
			"signalbox: waiting 1m0s for x: 1st in the queue, 1 of 1 held by web1:42 nightly (1m00s)\n" +
			"signalbox: waiting 2m0s for x: 1st in the queue, 1 of 1 held by web1:42 nightly (2m00s)\n"
		if said.String() != want {
			t.Errorf("it said\n%swant\n%s", said.String(), want)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
}
