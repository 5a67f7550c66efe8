package replication_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

const (
	first  = "1111111111111111111111111111111111111111"
	second = "2222222222222222222222222222222222222222"
	third  = "3333333333333333333333333333333333333333"
)

// TestHistoryGivesItsLastBytes holds a history against all bytes that it was ever given.
func TestHistoryGivesItsLastBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		var h replication.History
		h.Adopt(first, int64(r.IntN(3)*1000))
		begin := h.Offset
		h.Keep(int64(1 + r.IntN(50)))
		var all []byte
		for range 40 {
			piece := make([]byte, r.IntN(1+r.IntN(70)))
			for i := range piece {
				piece[i] = byte(r.Uint32())
			}
			h.Append(piece)
			if all = append(all, piece...); h.Offset != begin+int64(len(all)) {
				t.Fatalf("the offset is %d after %d bytes", h.Offset-begin, len(all))
			}
			if r.IntN(10) == 0 {
				h.Keep(int64(1 + r.IntN(50)))
			}
			for from := begin + 1; from <= h.Offset+1; from++ {
				if !h.CanContinue(first, from) {
					if from >= h.First() {
						t.Fatalf("cannot go on from %d, though %d to %d are there", from, h.First(), h.Offset)
					}
					continue
				}
				since := h.Since(from)
				if got := drain(&since); !bytes.Equal(got, all[from-begin-1:]) {
					t.Fatalf("from %d: %d bytes, and not the right ones", from, len(got))
				}
			}
			if h.Kept() > h.Size() {
				t.Fatalf("keeps %d of at most %d bytes", h.Kept(), h.Size())
			}
		}
	}
}

// drain takes pieces, a few bytes at a time.
func drain(p *replication.Pieces) (all []byte) {
	for p.Len() > 0 {
		first := p.First()
		n := min(len(first), 7)
		all = append(all, first[:n]...)
		p.Drop(n)
	}
	return all
}

// TestReadersOfTheStreamShareIt: whoever is how far behind gets every byte as it was written, though blocks are used again
// as soon as nobody needs them; and who reads along makes no garbage.
func TestReadersOfTheStreamShareIt(t *testing.T) {
	const readers = 4
	r := rand.New(rand.NewPCG(2, 0))
	var h replication.History
	var waiting [readers]replication.Pieces
	var heard [readers]int64
	reused := 0
	h.Unused = func(_, upTo int64) bool {
		for i := range waiting {
			if heard[i] < upTo {
				return false
			}
		}
		reused++
		return true
	}
	h.Rename(first)
	h.Keep(3000)
	written := int64(0)
	at := func(offset int64) byte { return byte(offset * 167 >> 3) } // no block is like the one before
	for range 5000 {
		piece := make([]byte, r.IntN(1+r.IntN(4000)))
		for i := range piece {
			piece[i] = at(written + int64(i) + 1)
		}
		written += int64(len(piece))
		for _, p := range h.Append(piece) {
			for i := range waiting {
				waiting[i].Add(p)
			}
		}
		clear(piece) // it is the caller's
		for i := range waiting {
			if r.IntN(1+i) > 0 {
				continue
			}
			for _, b := range drain(&waiting[i]) {
				heard[i]++
				if b != at(heard[i]) {
					t.Fatalf("reader %d has another byte at %d", i, heard[i])
				}
			}
		}
	}
	if h.Offset != written || reused < 100 {
		t.Errorf("offset %d of %d, %d blocks used again", h.Offset, written, reused)
	}
}

// TestWhoCanContinue: nobody from another history, whatever the offset, nor from beyond where two of them part.
func TestWhoCanContinue(t *testing.T) {
	var h replication.History
	h.Rename(first)
	h.Append(make([]byte, 100))
	if h.CanContinue(first, 101) {
		t.Error("without a backlog")
	}
	h.Keep(1000)
	h.Append(make([]byte, 100))
	h.Fork(second) // at 200
	h.Append(make([]byte, 100))
	for _, c := range []struct {
		id   string
		from int64
		want bool
	}{
		{first, 201, true},
		{first, 202, false},
		{first, 150, true},
		{first, 100, false},
		{second, 101, true},
		{second, 301, true},
		{second, 302, false},
		{second, 0, false},
		{third, 201, false},
		{replication.NoID, 201, false},
		{"", 201, false},
	} {
		if got := h.CanContinue(c.id, c.from); got != c.want {
			t.Errorf("%.1s from %d: %v", c.id, c.from, got)
		}
	}
	h.Adopt(third, 50)
	if h.CanContinue(first, 51) || h.CanContinue(second, 51) || !h.CanContinue(third, 51) {
		t.Error("goes on from what it has given up")
	}
}

func TestHandshakeSaysWhatAReplicaHasToSay(t *testing.T) {
	h, send := replication.Begin(replication.Terms{User: "u", Password: "p", Port: 7, Address: "a", ID: first, Offset: 41, Ancestors: true})
	hear := func(line, want string) replication.Answer {
		t.Helper()
		sent, answer, err := h.Hear(line)
		if err != nil || words(sent) != want {
			t.Fatalf("after %q: %q %v", line, words(sent), err)
		}
		return answer
	}
	if words(send) != "PING" {
		t.Fatalf("%q", send)
	}
	hear("", "")
	hear("-NOAUTH Authentication required.", "AUTH u p REPLCONF listening-port 7 REPLCONF ip-address a REPLCONF capa eof capa psync2 REPLCONF ancestors ? READONLY")
	for range 3 {
		hear("+OK", "")
	}
	hear("-ERR Unrecognized REPLCONF option: capa", "")
	if h.Ancestors() != nil {
		t.Error("knows whom the primary follows, and was not told")
	}
	hear("+OK "+first+" "+second, "")
	if got := h.Ancestors(); !slices.Equal(got, []string{first, second}) {
		t.Errorf("%q", got)
	}
	hear("-ERR This instance has cluster support disabled", "PSYNC "+first+" 42")
	if got := hear("+CONTINUE "+second, ""); got != (replication.Answer{Done: true, ID: second, Offset: 41}) {
		t.Errorf("%+v", got)
	}
}

// words is a text without what frames requests.
func words(requests []byte) string {
	var all []string
	for _, line := range strings.Split(string(requests), "\r\n") {
		if line != "" && line[0] != '*' && line[0] != '$' {
			all = append(all, line)
		}
	}
	return strings.Join(all, " ")
}

func TestAnswersToPSYNC(t *testing.T) {
	for line, want := range map[string]string{
		"+FULLRESYNC " + first + " 17": "",
		"+FULLRESYNC x 17":             "answers PSYNC with",
		"+FULLRESYNC " + first + " -1": "with the offset",
		"+CONTINUE":                    "answers PSYNC with", // it was not asked to
		"-NOMASTERLINK Can't SYNC":     "not ready",
		"-LOADING":                     "not ready",
		"-ERR unknown command":         "answers PSYNC with",
	} {
		h, _ := replication.Begin(replication.Terms{})
		for range 3 {
			if _, _, err := h.Hear("+OK"); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := h.Hear("-ERR This instance has cluster support disabled"); err != nil {
			t.Fatal(err)
		}
		_, answer, err := h.Hear(line)
		switch {
		case want == "" && (err != nil || answer != replication.Answer{Done: true, Full: true, ID: first, Offset: 17}):
			t.Errorf("%s: %+v %v", line, answer, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestHeadsOfSnapshots(t *testing.T) {
	if got, err := replication.ParseSnapshot(strings.TrimSpace(replication.Head(first))); err != nil || got.Mark != first || got.Bytes != -1 {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := replication.ParseSnapshot("$17"); err != nil || got.Bytes != 17 || got.Mark != "" {
		t.Errorf("%+v %v", got, err)
	}
	for _, line := range []string{"", "$", "$-1", "$x", "$EOF:short", "-ERR no", "+OK"} {
		if _, err := replication.ParseSnapshot(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}
