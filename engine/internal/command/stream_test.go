package command

import (
	"strings"
	"testing"
)

// An ID that is made never falls behind, whatever the clock does.
func TestStreamIDsFollowTheClockForward(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	for _, step := range []struct {
		advanceMs int64
		want      string
	}{
		{0, `"1700000000000-0"`},
		{0, `"1700000000000-1"`},
		{5, `"1700000000005-0"`},
		{-100, `"1700000000005-1"`},
		{99, `"1700000000005-2"`},
		{2, `"1700000000006-0"`},
	} {
		c.NowUs += step.advanceMs * 1000
		expect(t, c, step.want, "XADD", "s", "*", "f", "v")
	}
}

// pendingEntry is what XPENDING tells of the first pending entry: its owner, how long ago
// it was delivered, and how often.
func pendingEntry(t *testing.T, c *Ctx) string {
	t.Helper()
	var parts []string
	for _, part := range call(t, c, "XPENDING", "s", "g", "-", "+", "1").Elems[0].Elems[1:] {
		parts = append(parts, part.Text())
	}
	return strings.Join(parts, " ")
}

func expectPending(t *testing.T, c *Ctx, want string) {
	t.Helper()
	if got := pendingEntry(t, c); got != want {
		t.Errorf("pending is %s, want %s", got, want)
	}
}

func TestStreamDeliveriesAndTheirAges(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	run(t, c, "XADD", "s", "1-0", "f", "v")
	run(t, c, "XGROUP", "CREATE", "s", "g", "0")
	run(t, c, "XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">")
	c.NowUs += 1000_000
	expectPending(t, c, "alice 1000 1")

	run(t, c, "XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", "0")
	expectPending(t, c, "alice 0 2")

	c.NowUs += 999_000
	run(t, c, "XCLAIM", "s", "g", "bob", "1000", "1-0")
	run(t, c, "XAUTOCLAIM", "s", "g", "bob", "1000", "0")
	expectPending(t, c, "alice 999 2")

	c.NowUs += 1000
	run(t, c, "XCLAIM", "s", "g", "bob", "1000", "1-0")
	expectPending(t, c, "bob 0 3")

	c.NowUs += 1000_000
	run(t, c, "XAUTOCLAIM", "s", "g", "carol", "1000", "0", "JUSTID")
	expectPending(t, c, "carol 0 3")

	run(t, c, "XCLAIM", "s", "g", "carol", "0", "1-0", "IDLE", "5000", "JUSTID")
	expectPending(t, c, "carol 5000 3")

	c.NowUs -= 6000_000 // the clock is set back: no age is below zero
	expectPending(t, c, "carol 0 3")
}

func TestStreamConsumersAreSeenWhenTheyDoSomething(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	run(t, c, "XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
	run(t, c, "XGROUP", "CREATECONSUMER", "s", "g", "alice")
	c.NowUs += 1000_000
	idle := func() string { return call(t, c, "XINFO", "CONSUMERS", "s", "g").Elems[0].Elems[5].Text() }
	for _, args := range [][]string{
		{"XGROUP", "CREATECONSUMER", "s", "g", "alice"},
		{"XPENDING", "s", "g", "-", "+", "1", "alice"},
		{"XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">"},
		{"XCLAIM", "s", "g", "alice", "0", "1-0"},
	} {
		if run(t, c, args...); idle() != "1000" {
			t.Errorf("%q counts as something, though it gets nothing", args)
		}
	}
	if run(t, c, "XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", "0"); idle() != "0" {
		t.Error("a consumer that reads is not seen")
	}
}

// A call that waits means by $ what it meant when it was made.
func TestStreamReadThatWaitsKeepsItsPlace(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	c.CanBlock = true
	run(t, c, "XADD", "s", "5-0", "f", "v")
	call(t, c, "XREAD", "BLOCK", "1500", "STREAMS", "s", "none", "s", "$", "$", "7")
	block, ok := c.TakeBlock()
	if !ok || block.TimeoutUs != 1_500_000 || len(block.Keys) != 3 || block.Bound || c.Out.Len() > 0 {
		t.Fatalf("blocks %v: %+v, wrote %q", ok, block, c.Out.Bytes())
	}
	var again []string
	for _, arg := range block.Again {
		again = append(again, string(arg))
	}
	if got, want := strings.Join(again, " "), "XREAD BLOCK 1500 STREAMS s none s 5-0 0-0 7"; got != want {
		t.Errorf("will run %s, want %s", got, want)
	}
	if got := string(c.Args[7]); got != "$" {
		t.Errorf("the client's own request says %s now", got)
	}
	run(t, c, "XADD", "s", "6-0", "f", "w")
	c.Ready = []byte("s")
	served := call(t, c, again...).Elems[0].Elems
	if entries := served[1].Elems; served[0].Text() != "s" || len(entries) != 1 || entries[0].Elems[0].Text() != "6-0" {
		t.Errorf("is served with %v", served)
	}
}

// Reports of changes: entries that come or go, against what only concerns a group.
func TestStreamChangesCount(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	for _, step := range []struct {
		changes bool
		args    string
	}{
		{false, "XADD s NOMKSTREAM 1-0 f v"},
		{true, "XADD s 1-0 f v"},
		{false, "XADD s 1-0 f v"},
		{true, "XGROUP CREATE s g 0"},
		{false, "XGROUP CREATE s g 0"},
		{true, "XREADGROUP GROUP g c STREAMS s >"},
		{false, "XREADGROUP GROUP g c STREAMS s >"},
		{false, "XREAD STREAMS s 0"},
		{false, "XPENDING s g"},
		{false, "XCLAIM s g d 1000 1-0"},
		{true, "XCLAIM s g d 0 1-0"},
		{false, "XAUTOCLAIM s g c 1000 0"},
		{true, "XAUTOCLAIM s g c 0 0"},
		{true, "XACK s g 1-0"},
		{false, "XACK s g 1-0"},
		{true, "XGROUP SETID s g 0"},
		{true, "XGROUP DELCONSUMER s g c"},
		{false, "XGROUP DELCONSUMER s g c"},
		{true, "XGROUP DESTROY s g"},
		{false, "XGROUP DESTROY s g"},
		{false, "XDEL s 9-9"},
		{false, "XTRIM s MAXLEN 1"},
		{true, "XTRIM s MAXLEN 0"},
		{true, "XSETID s 5-0"},
		{false, "XSETID none 5-0"},
	} {
		before := c.Space.Dirty
		reply := run(t, c, strings.Fields(step.args)...)
		if changed := c.Space.Dirty != before; changed != step.changes {
			t.Errorf("%s, answered %s, counts as a change: %v", step.args, reply, changed)
		}
	}
}
