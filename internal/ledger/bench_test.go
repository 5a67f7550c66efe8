package ledger

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/stepped"
)

// benchIDs is how many ids make a transition before the ledger is emptied.
const benchIDs = 1000

// BenchmarkTransition is what a transition takes on the engine: one goroutine, no network, no client library. Each is made
// by a thousand ids in turn, on a resource where somebody else holds a permit: the slow lane. "alone" is the fast lane of
// an acquire and its release.
func BenchmarkTransition(b *testing.B) {
	acquire := func(id string, limit int) call {
		return newCall(acquireScript, make([]any, 4), id, 1, limit, 30000, 0, 3000, "-", "host 1 bench")
	}
	wait := func(id string) call {
		return newCall(acquireScript, make([]any, 4), id, 1, 1, 30000, 60000, 3000, "-", "host 1 bench")
	}
	release := func(id string) call { return newCall(releaseScript, make([]any, 4), id) }
	for _, c := range []struct {
		name         string
		before, then func(id string) call // before is not measured
		standing     bool
	}{
		{"acquire", nil, func(id string) call { return acquire(id, math.MaxInt32) }, true},
		{
			"acquire again", func(id string) call { return acquire(id, math.MaxInt32) },
			func(id string) call { return acquire(id, math.MaxInt32) }, true,
		},
		{"wait", nil, wait, true},
		{"release", func(id string) call { return acquire(id, math.MaxInt32) }, release, true},
		{"hand over", wait, release, false},
	} {
		b.Run(c.name, func(b *testing.B) { benchTransition(b, c.before, c.then, c.standing) })
	}
	b.Run("alone", func(b *testing.B) {
		r := newBenchRig(b)
		take, giveBack := r.encode(acquire("p:1", 1)), r.encode(release("p:1"))
		b.ReportAllocs()
		for b.Loop() {
			r.send(take)
			r.send(giveBack)
		}
	})
}

type benchRig struct {
	tb       testing.TB
	engine   *stepped.Engine
	conn     *stepped.Conn
	resource *Resource
}

func newBenchRig(tb testing.TB) *benchRig {
	tb.Helper()
	e := stepped.New(time.UnixMilli(1_700_000_000_000))
	tb.Cleanup(e.Close)
	resource, err := NewResource("bench")
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range []*script{acquireScript, releaseScript} {
		e.Do("SCRIPT", "LOAD", s.text.(string))
	}
	return &benchRig{tb, e, e.Connect(), resource}
}

func (r *benchRig) encode(c call) [][]byte {
	words := New(nil).byDigest(c).Words
	for i, key := range r.resource.keys {
		words[3+i] = key
	}
	request := make([][]byte, len(words))
	for i, word := range words {
		request[i] = fmt.Append(nil, word)
	}
	return request
}

func (r *benchRig) send(request [][]byte) {
	r.conn.Send(request)
	if reply := r.conn.Received(); bytes.HasPrefix(reply, []byte("-")) {
		r.tb.Fatalf("%q: %s", request, reply)
	}
}

func benchTransition(b *testing.B, before, then func(id string) call, standing bool) {
	r := newBenchRig(b)
	standingOne := r.encode(newCall(acquireScript, make([]any, 4), "p:0", 1, math.MaxInt32, 30000, 0, 3000, "-", "host 1 bench"))
	var first, requests [][][]byte
	for i := range benchIDs {
		id := fmt.Sprintf("p:%d", 1000+i)
		if before != nil {
			first = append(first, r.encode(before(id)))
		}
		requests = append(requests, r.encode(then(id)))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 1) % benchIDs {
		if i == 0 {
			b.StopTimer()
			r.engine.Do("FLUSHALL")
			if standing {
				r.send(standingOne)
			}
			for _, request := range first {
				r.send(request)
			}
			b.StartTimer()
		}
		r.send(requests[i])
	}
}
