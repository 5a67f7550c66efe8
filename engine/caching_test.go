package engine_test

import (
	"fmt"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestTheTrackingTableIsBounded reads more keys than may be remembered: the
// others are called back, though nobody has changed them.
func TestTheTrackingTableIsBounded(t *testing.T) {
	t.Parallel()
	conn, err := difftest.Connect(dial(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const most, read = 10, 50
	do(t, conn, "HELLO", "3")
	do(t, conn, "CONFIG", "SET", "tracking-table-max-keys", fmt.Sprint(most))
	do(t, conn, "CLIENT", "TRACKING", "ON")
	calledBack := map[string]bool{}
	receive := func() difftest.Value {
		for {
			reply, err := conn.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if reply.Kind != difftest.Push {
				return reply
			}
			calledBack[reply.Elems[1].Elems[0].Text] = true
		}
	}
	for i := range read {
		if err := conn.Send("GET", fmt.Sprint("key:", i)); err != nil {
			t.Fatal(err)
		}
		receive()
	}
	if err := conn.Send("PING"); err != nil {
		t.Fatal(err)
	}
	receive()
	if len(calledBack) != read-most {
		t.Errorf("%d keys have been called back, not %d", len(calledBack), read-most)
	}
}
