package difftest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	// digestEvery is after how many requests the data are compared as a whole.
	digestEvery = 50
	// shrinkBudget bounds how many requests are sent to make a failing stream
	// shorter.
	shrinkBudget = 100_000
)

// Fuzz sends the same n random requests, which follow from the seed, to two
// servers and fails the test at the first reply or digest that differs. It
// reports the seed and a shortest stream of requests that it could find to
// still make a difference, as lines of a transcript. By convention a is the
// server that is right. Both are flushed.
func Fuzz(t testing.TB, seed uint64, n int, a, b Dial) {
	t.Helper()
	stream := randomStream(seed, n)
	d, err := compare(stream, a, b)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if d == nil {
		return
	}
	stream, d = shrink(stream[:d.index+1], d, a, b)
	var lines strings.Builder
	for _, q := range stream {
		lines.WriteString(q.String())
	}
	t.Fatalf("seed %d: the replies differ after\n%s-- want\n%s\n-- got\n%s", seed, lines.String(), d.a, d.b)
}

func newSource(seed uint64, grammars ...[]template) *source {
	return &source{Rand: rand.New(rand.NewPCG(seed, 0)), templates: slices.Concat(grammars...)}
}

// difference is where two servers part.
type difference struct {
	index int // of the request
	a, b  string
}

// randomStream makes n requests, and what has to be asked now and then.
func randomStream(seed uint64, n int) []query {
	s := newSource(seed, grammar(), bitGrammar(), largeGrammar(), scriptGrammar(), placesGrammar())
	if only := strings.Fields(os.Getenv("FUZZ_ONLY")); len(only) > 0 {
		s.templates = slices.DeleteFunc(s.templates, func(t template) bool { return !slices.Contains(only, t.group) })
	}
	stream := s.prelude()
	for i := range n {
		stream = append(stream, s.next())
		if i%digestEvery == digestEvery-1 {
			stream = append(stream, digest...)
		}
	}
	return append(stream, digest...)
}

// digest releases all clients, so that none waits for ever, and compares the data.
var digest = []query{{release: true}, {words: []string{"DEBUG", "DIGEST"}}}

// compare plays a stream on both servers, flushed. It returns the first
// difference, or nil.
func compare(stream []query, a, b Dial) (*difference, error) {
	sideA, err := newSide(a)
	if err != nil {
		return nil, err
	}
	defer sideA.close()
	sideB, err := newSide(b)
	if err != nil {
		return nil, err
	}
	defer sideB.close()
	both := pair{a: sideA, b: sideB, queued: map[int][]mode{}, swap: map[int]bool{}}
	for i, q := range stream {
		d, err := both.send(q)
		if err != nil {
			return nil, fmt.Errorf("request %d %q, first server: %w", i, q.words, err)
		}
		if d != nil {
			d.index = i
			return d, nil
		}
	}
	return nil, nil
}

// pair is the two servers while a stream is played.
type pair struct {
	a, b   *side
	queued map[int][]mode // of each client: how the replies to what is queued compare
	swap   map[int]bool   // of each client: whether a SWAPDB is queued
}

// send has both servers carry out a query, and returns how they differ over it.
//
// When SWAPDB brings several keys that clients are blocked on, Redis serves these in the
// order of a hash table, which is another one after each start. So what is blocked is
// released before it, unless all wait for the same key.
func (p *pair) send(q query) (*difference, error) {
	if (q.swaps() || isExec(q) && p.swap[q.client]) && p.a.waitedFor() > 1 {
		if d, err := p.do(query{release: true}); d != nil || err != nil {
			return d, err
		}
	}
	return p.do(q)
}

func (p *pair) do(q query) (*difference, error) {
	replyA, err := p.a.do(q)
	if err != nil {
		return nil, err
	}
	replyB, err := p.b.do(q)
	if err != nil {
		// A server that hangs up or does not answer where the other does
		// is a difference like any.
		return &difference{a: replyA.String(), b: err.Error()}, nil
	}
	queued := p.queued[q.client]
	if !replyA.equal(replyB) { // most are, and to write them takes longer than to ask for them
		textA, textB := formatQueued(replyA, q, queued), formatQueued(replyB, q, queued)
		if textA != textB {
			return &difference{a: textA, b: textB}, nil
		}
	}
	switch {
	case replyA.Text == "QUEUED":
		p.queued[q.client] = append(queued, q.mode)
		p.swap[q.client] = p.swap[q.client] || q.swaps()
	case isExec(q):
		p.queued[q.client], p.swap[q.client] = nil, false
	}
	return nil, nil
}

func isExec(q query) bool {
	return len(q.words) > 0 && (strings.EqualFold(q.words[0], "EXEC") || strings.EqualFold(q.words[0], "DISCARD"))
}

// formatQueued writes a reply for comparison. In the reply to EXEC each
// element counts as its request's reply would.
func formatQueued(v Value, q query, queued []mode) string {
	if !isExec(q) || len(v.Elems) != len(queued) {
		return v.format(q.mode)
	}
	text := v.format(mode{loose: true})
	for i, elem := range v.Elems {
		text += "\n" + elem.format(queued[i])
	}
	return text
}

// shrink drops requests, in ever smaller runs, as long as the servers still
// differ somewhere.
func shrink(stream []query, d *difference, a, b Dial) ([]query, *difference) {
	sent := 0
	for run := len(stream) / 2; run > 0 && sent < shrinkBudget; {
		dropped := false
		for at := 0; at+run <= len(stream) && sent < shrinkBudget; {
			shorter := slices.Concat(stream[:at], stream[at+run:])
			sent += len(shorter)
			found, err := compare(shorter, a, b)
			if err != nil || found == nil {
				at += run
				continue
			}
			stream, d, dropped = shorter[:found.index+1], found, true
		}
		if !dropped || run > 1 {
			run /= 2
		}
	}
	return stream, d
}

// Requests is an endless stream of random requests of all families, which follow from
// the seed: for tests that need busy clients.
func Requests(seed uint64) iter.Seq[[]string] {
	s := newSource(seed, grammar(), bitGrammar())
	return func(yield func([]string) bool) {
		for {
			if words := s.next().words; len(words) > 0 && !yield(words) {
				return
			}
		}
	}
}
