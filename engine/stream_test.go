package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestStreamChunksEndWhereRedissDo adds entries of all the sizes that Redis encodes
// differently, and compares after each how many chunks there are and how many nodes the
// tree of their IDs has. Both show in XINFO, and the chunks in what trimming with ~ leaves.
func TestStreamChunksEndWhereRedissDo(t *testing.T) {
	t.Parallel()
	const entries = 8000
	redis, ours := connectTo(t, difftest.Redis(t).Dial), connectTo(t, dial(t))
	s := entrySource{Rand: rand.New(rand.NewPCG(1, 0))}
	for i := range entries {
		request := s.next(i)
		trim := []string{"XTRIM", "s", "MAXLEN", "~", "150"}
		if i%1000 == 999 {
			trim = []string{"XTRIM", "s", "MAXLEN", "40"}
		}
		for _, words := range [][]string{request, {"XINFO", "STREAM", "s"}, trim} {
			want, got := do(t, redis, words...), do(t, ours, words...)
			if want.String() != got.String() {
				t.Fatalf("entry %d, %.200q: want\n%.600s\ngot\n%.600s", i, words, want, got)
			}
		}
	}
}

// entrySource makes requests that add entries.
type entrySource struct {
	*rand.Rand
	ms, seq uint64
}

func (s *entrySource) next(i int) []string {
	if s.IntN(3) == 0 {
		s.ms += 1 << s.IntN(34)
		s.seq = s.Uint64() >> s.IntN(64)
	}
	s.seq++
	request := []string{"XADD", "s", fmt.Sprintf("%d-%d", s.ms, s.seq)}
	if i/400%2 == 0 {
		return append(request, "f", strconv.Itoa(s.IntN(10))) // chunks fill up by number
	}
	fields := 1 + s.IntN(3)
	if s.IntN(20) == 0 {
		fields = 60 + s.IntN(8) // a number of elements that takes a byte more
	}
	for j := range fields {
		name := "field" + strconv.Itoa(j)
		if s.IntN(10) == 0 {
			name = s.text()
		}
		request = append(request, name, s.text())
	}
	return request
}

func (s *entrySource) text() string {
	switch s.IntN(4) {
	case 0:
		n := int64(1) << s.IntN(63)
		return strconv.FormatInt([]int64{n, n - 1, -n, -n - 1}[s.IntN(4)], 10)
	case 1:
		return strings.Repeat("v", []int{62, 63, 64, 65, 124, 125, 126, 127, 128}[s.IntN(9)])
	default:
		return strings.Repeat("v", 1+s.IntN(30))
	}
}

func connectTo(t testing.TB, dial difftest.Dial) *difftest.Conn {
	t.Helper()
	conn, err := difftest.Connect(dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
