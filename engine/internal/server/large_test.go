package server_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// A large value is received into memory of its own, and that of one that is overwritten is
// received into again. So it must be nobody else's by then.

func (p *peer) call(args ...string) {
	p.t.Helper()
	if _, err := p.conn.Write(resp.AppendCommand(nil, args...)); err != nil {
		p.t.Error(err)
	}
}

func (p *peer) expectText(want string) {
	p.t.Helper()
	p.expect(fmt.Sprintf("$%d", len(want)))
	text := make([]byte, len(want)+len("\r\n"))
	if _, err := io.ReadFull(p.in, text); err != nil || string(text[:len(want)]) != want {
		p.t.Errorf("%d bytes that begin with %.10q instead of %.10q, %v", len(want), text, want, err)
	}
}

// TestLargeValuesAreTheirOwn: no value is changed by what arrives later, wherever it has been
// copied or moved to, and however it was made.
func TestLargeValuesAreTheirOwn(t *testing.T) {
	s := open(t, server.Options{})
	p := newPeer(t, listen(t, s))
	value := func(round, i int) string {
		return strings.Repeat(string(rune('a'+(7*round+i)%26)), 100_000+1000*i)
	}
	keys := []string{"set", "copy", "moved", "swapped", "appended", "inside", "watched"}
	for round := range 20 {
		v := func(i int) string { return value(round, i) }
		for _, request := range [][]string{
			{"SET", "set", v(0)},
			{"COPY", "set", "copy", "REPLACE"},
			{"MSET", "from", v(1), "inside", v(2), "swapped", v(3)},
			{"RENAME", "from", "moved"},
			{"SET", "from", v(4)}, // into what was there, perhaps
			{"SETRANGE", "inside", "1", "-"},
			{"DEL", "appended"},
			{"APPEND", "appended", v(1)},
			{"APPEND", "appended", v(2)},
			{"GETSET", "swapped", v(5)},
			{"MULTI"},
			{"SET", "watched", v(6)},
			{"EXEC"},
			{"SET", "set", v(4), "EX", "100", "GET"},
			{"SET", "set", v(3), "XX", "KEEPTTL"},
			{"SET", "set", v(2), "NX"},
			{"LPUSH", "list", v(1)},
		} {
			p.call(request...)
		}
		p.expect("+OK", ":1", "+OK", "+OK", "+OK", ":", ":", ":", ":")
		p.expectText(v(3))
		p.expect("+OK", "+QUEUED", "*1", "+OK")
		p.expectText(v(0))
		p.expect("+OK", "$-1", ":")
		p.call("MGET", keys[0], keys[1], keys[2], keys[3], keys[4], keys[5], keys[6])
		p.expect("*7")
		for _, want := range []string{v(3), v(0), v(1), v(5), v(1) + v(2), v(2)[:1] + "-" + v(2)[2:], v(6)} {
			p.expectText(want)
		}
	}
}

// TestALargeValueIsReceivedOnce: what is allocated for it is hardly more than it is long, and what
// is allocated for one in the place of another is next to nothing.
func TestALargeValueIsReceivedOnce(t *testing.T) {
	s := open(t, server.Options{})
	p := newPeer(t, listen(t, s))
	allocated := func(request []byte) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := p.conn.Write(request); err != nil {
			t.Fatal(err)
		}
		p.expect("+OK")
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	const long, many, size = 64 << 20, 100, 100_000
	request := resp.AppendCommand(nil, "SET", "long", strings.Repeat("v", long))
	if got := allocated(request); got > long*13/10 {
		t.Errorf("%d MB were allocated for a value of %d", got>>20, long>>20)
	}
	request = resp.AppendCommand(nil, "SET", "key", strings.Repeat("v", size))
	var all uint64
	for range many {
		all += allocated(request)
	}
	if all > many*size/4 {
		t.Errorf("%d KB were allocated for %d of %d", all>>10, many, size>>10)
	}
}
