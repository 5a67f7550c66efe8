package command

import (
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

var blockingListCalls = [][]string{
	{"BLPOP", "l", "other", "0"},
	{"BRPOP", "other", "l", "1.5"},
	{"BLMPOP", "0", "2", "other", "l", "LEFT", "COUNT", "3"},
	{"BLMOVE", "l", "moved", "LEFT", "RIGHT", "0"},
	{"BRPOPLPUSH", "l", "moved", "0"},
}

// A call that finds nothing waits, having changed and written nothing; run
// again for the key that was touched, it does its work.
func TestBlockingListCallsAreRunAgain(t *testing.T) {
	t.Parallel()
	for _, args := range blockingListCalls {
		c := newTestCtx()
		c.CanBlock = true
		call(t, c, args...)
		block, blocked := c.TakeBlock()
		if !blocked || c.Out.Len() > 0 || c.Space.Dirty > 0 || c.DB.Len() > 0 {
			t.Fatalf("%q: blocked %v, wrote %q, %d changes", args, blocked, c.Out.Bytes(), c.Space.Dirty)
		}
		block.OnTimeout(c.Out)
		if got := string(c.Out.Bytes()); got != "*-1\r\n" {
			t.Errorf("%q: answered %q when its time was up", args, got)
		}

		run(t, c, "RPUSH", "l", "a")
		c.Ready = []byte("l")
		if got := run(t, c, args...); got == "(nil)" {
			t.Errorf("%q: found nothing when run again", args)
		}
		if _, blocked := c.TakeBlock(); blocked {
			t.Errorf("%q: blocked although there was something", args)
		}
		c.Ready = nil
		expect(t, c, "(integer) 0", "EXISTS", "l")
	}
}

func TestBlockingListTimeouts(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	c.CanBlock = true
	call(t, c, "BRPOP", "l", "other", "1.5")
	block, _ := c.TakeBlock()
	if block.TimeoutUs != 1_500_000 || len(block.Keys) != 2 {
		t.Errorf("waits %d µs for %q", block.TimeoutUs, block.Keys)
	}
	call(t, c, "BLMOVE", "l", "other", "LEFT", "LEFT", "0")
	block, _ = c.TakeBlock()
	if block.TimeoutUs != 0 || len(block.Keys) != 1 {
		t.Errorf("waits %d µs for %q", block.TimeoutUs, block.Keys)
	}
}

// Where nothing can block, the answers are those of Redis inside MULTI, which
// are not those of a timeout.
func TestBlockingListCallsWithoutBlocking(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"BLPOP": "*-1\r\n", "BRPOP": "*-1\r\n", "BLMPOP": "*-1\r\n", "BLMOVE": "$-1\r\n", "BRPOPLPUSH": "$-1\r\n",
	}
	for _, args := range blockingListCalls {
		c := newTestCtx()
		call(t, c, args...)
		if got := string(c.Out.Bytes()); got != want[args[0]] {
			t.Errorf("%q: got %q, want %q", args, got, want[args[0]])
		}
	}
}

// The key that was touched is the one that serves, even if an earlier one has
// something by now; and a value of another type wakes nobody.
func TestBlockingListReadyKeyDecides(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	c.CanBlock = true
	run(t, c, "RPUSH", "second", "b")
	run(t, c, "RPUSH", "first", "a")
	c.Ready = []byte("second")
	got := call(t, c, "BLPOP", "first", "second", "0")
	if got.Kind != resp.Array || got.Elems[0].Text() != "second" {
		t.Errorf("served %v", got)
	}

	c.Ready = nil
	run(t, c, "SET", "third", "x")
	c.Ready = []byte("third")
	call(t, c, "BLPOP", "third", "fourth", "0")
	if _, blocked := c.TakeBlock(); !blocked {
		t.Errorf("a string ended the wait: %q", c.Out.Bytes())
	}
	c.Ready = nil
	expect(t, c, "(error) "+string(ErrWrongType), "BLPOP", "third", "fourth", "0")
}
