package benchmark

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedians(t *testing.T) {
	field := func(n *int64) int64 { return *n }
	for want, rows := range map[int64][]int64{5: {5}, 3: {9, 1, 3}, 4: {1, 100, 3, 5}} {
		if got := medianOf(rows, field); got != want {
			t.Errorf("of %v: %d, want %d", rows, got, want)
		}
	}
	if got := medianRate([]float64{1, 2}, func(f *float64) float64 { return *f }); got != 1.5 {
		t.Errorf("of rates: %v", got)
	}
}

func TestPercentilesAreWithinAHundredth(t *testing.T) {
	l, other := newLatencies(), newLatencies()
	for i := 1; i <= 1000; i++ {
		into := l
		if i%2 == 0 {
			into = other
		}
		if err := into.add(time.Duration(i) * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	l.merge(other)
	for p, want := range map[float64]time.Duration{50: 500 * time.Millisecond, 99: 990 * time.Millisecond, 100: time.Second} {
		if got := l.percentile(p); (got - want).Abs() > want/100 {
			t.Errorf("p%v is %v, want about %v", p, got, want)
		}
	}
	if err := errors.Join(l.add(time.Hour), l.add(0), l.add(-time.Second)); err != nil || l.max() < 59*time.Second {
		t.Errorf("out of range: %v, the longest is %v", err, l.max())
	}
	if newLatencies().percentile(50) != 0 {
		t.Error("of nothing it is not 0")
	}
}

func TestRates(t *testing.T) {
	if got := perSecond(30, 1500*time.Millisecond); got != 20 {
		t.Errorf("30 in 1.5 s are %v per second", got)
	}
	if perSecond(1, 0) != 0 {
		t.Error("in no time")
	}
}

func TestWitnessCountsWhoIsOneTooMany(t *testing.T) {
	row := SemaphoreRow{Limit: 2}
	w := &witness{row: &row}
	w.enters()
	w.enters()
	w.leaves()
	w.enters()
	if row.OverLimit != 0 {
		t.Fatalf("within the limit: %+v", row)
	}
	w.enters()
	w.refused()
	want := SemaphoreRow{Limit: 2, Grants: 4, Refusals: 1, OverLimit: 1, MostHolders: 3}
	if row != want || row.PercentOver() != 25 {
		t.Errorf("%+v, %v %%", row, row.PercentOver())
	}
	merged := mergeSemaphores([]SemaphoreRow{row, {Limit: 2, Grants: 1, MostHolders: 1}})
	if merged.Grants != 5 || merged.OverLimit != 1 || merged.MostHolders != 3 {
		t.Errorf("a violation is lost among rounds: %+v", merged)
	}
}

func TestRoundsOfALockAreMerged(t *testing.T) {
	got := mergeLocks([]LockRow{
		{Lock: "x", Clients: 2, Tries: 10, Acquires: 8, WaitMax: 3, Fewest: 3, Most: 5},
		{Lock: "x", Clients: 2, Tries: 30, Acquires: 28, WaitMax: 9, Fewest: 14, Most: 14},
		{Lock: "x", Clients: 2, Tries: 20, Acquires: 18, WaitMax: 1, Fewest: 8, Most: 10},
	})
	if want := (LockRow{Lock: "x", Clients: 2, Tries: 20, Acquires: 18, WaitMax: 9, Fewest: 3, Most: 5}); got != want {
		t.Errorf("%+v", got)
	}
}

func TestRandomPartsOfABatch(t *testing.T) {
	settings := &CommandSettings{Pipeline: 3, ValueBytes: 4}
	for _, test := range commandTests() {
		batch, randoms := test.batch("p:", settings)
		want := 3 * strings.Count(strings.Join(test.words, " "), "RAND")
		if len(randoms) != want {
			t.Errorf("%s: %d random parts, want %d", test.name, len(randoms), want)
		}
		for i, at := range randoms {
			putDigits(batch[at:at+randomDigits], 120+i)
		}
		if test.name == "SET" && !strings.Contains(string(batch), "$18\r\np:key:000000000122\r\n$4\r\nxxxx\r\n") {
			t.Errorf("%q", batch)
		}
	}
	if keys := slices.Collect(numbered("p:key:", 2)); !slices.Equal(keys, []string{"p:key:000000000000", "p:key:000000000001"}) {
		t.Errorf("removed are %q", keys)
	}
}

func TestRepliesAreReadToTheirEnd(t *testing.T) {
	replies := []struct {
		text string
		want error
	}{
		{"+OK\r\n:1\r\n$-1\r\n*-1\r\n$5\r\na\r\nb\r\r\n*2\r\n$1\r\nx\r\n*1\r\n:2\r\n+END\r\n", nil},
		{"-OOM no\r\n", errReply("OOM no")},
		{"*2\r\n:1\r\n-ERR within\r\n", errReply("ERR within")},
		{"HTTP/1.1 200\r\n", errProtocol},
		{"$-x\r\n", errProtocol},
		{"*99999999999999999999\r\n", errProtocol},
		{strings.Repeat("*1\r\n", 20), errProtocol},
	}
	for _, reply := range replies {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			_, _ = theirs.Write([]byte(reply.text)) // it is cut off when what was read is wrong
		}()
		c := newConn(ours)
		n := 1
		if reply.want == nil {
			n = 7
		}
		var err error
		for range n {
			if err == nil {
				err = c.skipReply(deepestReply)
			}
		}
		if !errors.Is(err, reply.want) {
			t.Errorf("%q: %v, want %v", reply.text, err, reply.want)
		}
		if reply.want == nil && c.in.Buffered() > 0 {
			t.Errorf("%q: %d bytes are left", reply.text, c.in.Buffered())
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}
