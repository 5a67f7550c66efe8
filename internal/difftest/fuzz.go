package difftest

import (
	"fmt"
	"iter"
	"math/rand/v2"
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
	s := newSource(seed)
	stream := make([]query, 0, n+n/digestEvery+1)
	for i := range n {
		q := s.next()
		if sorts(q) {
			stream = append(stream, query{words: forgetRange})
		}
		stream = append(stream, q)
		if i%digestEvery == digestEvery-1 {
			stream = append(stream, query{words: []string{"DEBUG", "DIGEST"}})
		}
	}
	stream = append(stream, query{words: []string{"DEBUG", "DIGEST"}})
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
		lines.WriteString(">")
		for _, word := range q.words {
			lines.WriteString(" " + quote(word))
		}
		lines.WriteString("\n")
	}
	t.Fatalf("seed %d: the replies differ after\n%s-- want\n%s\n-- got\n%s", seed, lines.String(), d.a, d.b)
}

// forgetRange makes Redis forget that a number was out of range before. Its SORT
// looks at errno without having set it, and fails over any earlier request that
// left it so; an ID above the signed numbers clears it.
var forgetRange = []string{"XRANGE", "none", "18446744073709551615", "+"}

func sorts(q query) bool {
	return slices.ContainsFunc(q.words, func(word string) bool {
		return strings.EqualFold(word, "SORT") || strings.EqualFold(word, "SORT_RO")
	})
}

func newSource(seed uint64) *source {
	return &source{Rand: rand.New(rand.NewPCG(seed, 0)), templates: append(grammar(), bitGrammar()...)}
}

// difference is where two servers part.
type difference struct {
	index int // of the request
	a, b  string
}

// compare plays a stream on both servers, flushed. It returns the first
// difference, or nil.
func compare(stream []query, a, b Dial) (*difference, error) {
	connA, err := connectFlushed(a)
	if err != nil {
		return nil, err
	}
	defer connA.Close()
	connB, err := connectFlushed(b)
	if err != nil {
		return nil, err
	}
	defer connB.Close()
	var queued []mode
	for i, q := range stream {
		replyA, err := connA.Do(q.words...)
		if err != nil {
			return nil, fmt.Errorf("request %d %q, first server: %w", i, q.words, err)
		}
		replyB, err := connB.Do(q.words...)
		if err != nil {
			// A server that hangs up or does not answer where the other does
			// is a difference like any.
			return &difference{i, replyA.String(), err.Error()}, nil
		}
		textA, textB := formatQueued(replyA, q, queued), formatQueued(replyB, q, queued)
		if textA != textB {
			return &difference{i, textA, textB}, nil
		}
		switch {
		case replyA.Text == "QUEUED":
			queued = append(queued, q.mode)
		case isExec(q):
			queued = nil
		}
	}
	return nil, nil
}

// connectFlushed connects to a server and empties it.
func connectFlushed(dial Dial) (*Conn, error) {
	conn, err := Connect(dial)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Do("FLUSHALL"); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func isExec(q query) bool {
	return strings.EqualFold(q.words[0], "EXEC") || strings.EqualFold(q.words[0], "DISCARD")
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
	s := newSource(seed)
	return func(yield func([]string) bool) {
		for yield(s.next().words) {
		}
	}
}
