package resp

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// oneLarge remembers one piece of memory.
type oneLarge []byte

func (o *oneLarge) TakeLarge(size int) (memory []byte) {
	if cap(*o) >= size {
		memory, *o = *o, nil
	}
	return memory
}

func (o *oneLarge) ReturnLarge(memory []byte) { *o = memory }

// A large argument is in memory of its own, of its size, which whoever runs the request
// keeps; the next one is received into what is given back for it.
func TestRequestsLargeArgumentsAreKept(t *testing.T) {
	t.Parallel()
	const size = 5 * largeBytes
	var memory oneLarge
	r := Requests{Trusted: true, Memory: &memory}
	var kept []byte
	for i := range 4 {
		value := bytes.Repeat([]byte{'a' + byte(i)}, size)
		stream := AppendCommand(nil, "MSET", "k", string(value), "l", "short", "m", string(value))
		var argv [][]byte
		var ok bool
		var err error
		for len(stream) > 0 {
			n := copy(r.Space(), stream)
			r.Advance(n)
			stream = stream[n:]
			argv, ok, err = r.Next()
		}
		if !ok || err != nil || len(argv) != 7 || !bytes.Equal(argv[2], value) || string(argv[4]) != "short" || !bytes.Equal(argv[6], value) {
			t.Fatalf("%d arguments, %v", len(argv), err)
		}
		if i > 0 && &argv[2][0] != &kept[0] {
			t.Error("what was given back is not used")
		}
		if r.Large().Keep(argv[4]) || r.Large().Keep(bytes.Clone(value)) {
			t.Error("what has no memory of its own is kept")
		}
		if !r.Large().Keep(argv[2]) || r.Large().Keep(argv[2]) {
			t.Error("what has memory of its own is to be kept, once")
		}
		if cap(argv[2]) > size+size/64 {
			t.Errorf("%d bytes for %d", cap(argv[2]), size)
		}
		kept = argv[2]
		if r.Forget(); memory == nil || argv[2] != nil {
			t.Error("what nobody has kept is gone, or what was kept is not let go")
		}
		r.Large().Trade(kept)
	}
}

// Who announces much gets room as he sends it, and what is moved is little.
func TestRequestsLargeArgumentHasRoomAsItArrives(t *testing.T) {
	t.Parallel()
	const size = 512 << 20
	allocated, room := 0, 0
	for arrived := 0; arrived < size; arrived = room {
		if room = roomFor(arrived, size); room > max(firstBytes, headStart*arrived) {
			t.Fatalf("room for %d bytes, of which %d have arrived", room, arrived)
		}
		allocated += room
	}
	if most := size + size/6; room != size || allocated > most {
		t.Errorf("%d bytes of room in the end, %d in all, want %d and at most %d", room, allocated, size, most)
	}
}

// Large arguments come back as they were sent, among others and in pipelines, wherever the
// stream is cut.
func TestRequestsWithLargeArgumentsDoNotDependOnSplits(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	var memory oneLarge
	for range 100 {
		var stream []byte
		var want [][]string
		for range 1 + rng.IntN(6) {
			request := make([]string, 1+rng.IntN(5))
			for i := range request {
				size := rng.IntN(20)
				if rng.IntN(2) == 0 {
					size = largeBytes - 3 + rng.IntN(3*largeBytes)
				}
				request[i] = strings.Repeat(string(rune('a'+rng.IntN(26))), size)
			}
			stream, want = AppendCommand(stream, request...), append(want, request)
		}
		most := []int{100, 5_000, 200_000}[rng.IntN(3)]
		r := Requests{Trusted: true, Memory: &memory}
		got, err := feed(&r, stream, func(left int) int { return 1 + rng.IntN(min(left, most)) })
		if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("pieces of at most %d: %d requests of %d, or other ones, %v", most, len(got), len(want), err)
		}
		if left := r.Buffered(); left != 0 {
			t.Fatalf("%d bytes are left over", left)
		}
	}
}
