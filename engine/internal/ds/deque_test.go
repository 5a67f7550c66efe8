package ds

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func requireDeque(t fataler, d *Deque, model []string) {
	t.Helper()
	if d.Len() != len(model) {
		t.Fatalf("Len() = %d, want %d", d.Len(), len(model))
	}
	requireRange(t, d, model, 0, len(model)-1)
	for i, want := range model {
		if got, ok := d.At(i); !ok || got != want {
			t.Fatalf("At(%d) = %q, %v, want %q", i, got, ok, want)
		}
	}
	rooms := 0
	for i, c := range d.chunks() {
		rooms += len(c.room())
		if c.length == 0 && d.many != nil || c.from > c.to || c.to > c.roomBytes || c.find(0) != int(c.from) || c.find(int(c.length)) != int(c.to) {
			t.Fatalf("chunk %d of %d: %d elements from %d to %d of %d", i, len(d.chunks()), c.length, c.from, c.to, c.roomBytes)
		}
	}
	if d.many != nil && d.many.roomBytes != rooms {
		t.Fatalf("%d bytes are counted, %d are there", d.many.roomBytes, rooms)
	}
}

func requireRange(t fataler, d *Deque, model []string, start, stop int) {
	t.Helper()
	low, high := max(start, 0), min(stop, len(model)-1)
	next := low
	for i, s := range d.Range(start, stop) {
		if i != next || i > high || s != model[i] {
			t.Fatalf("Range(%d, %d) gives %q at %d", start, stop, s, i)
		}
		next++
	}
	if low <= high && next != high+1 {
		t.Fatalf("Range(%d, %d) ends before %d", start, stop, next)
	}
	next = high
	for i, s := range d.Backward(start, stop) {
		if i != next || i < low || s != model[i] {
			t.Fatalf("Backward(%d, %d) gives %q at %d", start, stop, s, i)
		}
		next--
	}
	if low <= high && next != low-1 {
		t.Fatalf("Backward(%d, %d) ends before %d", start, stop, next)
	}
}

// lengths of elements: those that several, few and one fit into a chunk of, and whose
// lengths have one, two and three digits.
var lengths = []string{
	"", "x", "long", strings.Repeat("a", 127), strings.Repeat("b", 128),
	strings.Repeat("c", 700), strings.Repeat("d", chunkBytes), strings.Repeat("e", 1<<14),
}

// dequeRun holds a Deque and the slice that it should be equal to.
type dequeRun struct {
	d     *Deque
	model []string
}

func (r *dequeRun) pushMany(t *rapid.T) {
	front := rapid.Bool().Draw(t, "front")
	for i := range rapid.IntRange(0, 600).Draw(t, "n") {
		s := strconv.Itoa(i % 7)
		if front {
			r.d.PushFront(s)
			r.model = slices.Insert(r.model, 0, s)
		} else {
			r.d.PushBack(s)
			r.model = append(r.model, s)
		}
	}
}

func (r *dequeRun) popMany(t *rapid.T) {
	front := rapid.Bool().Draw(t, "front")
	for range rapid.IntRange(0, 400).Draw(t, "n") {
		pop, end := r.d.PopBack, len(r.model)-1
		if front {
			pop, end = r.d.PopFront, 0
		}
		got, ok := pop()
		if ok != (len(r.model) > 0) {
			t.Fatalf("pop of %d elements: %v", len(r.model), ok)
		}
		if !ok {
			return
		}
		if got != r.model[end] {
			t.Fatalf("pop gives %q, want %q", got, r.model[end])
		}
		r.model = slices.Delete(r.model, end, end+1)
	}
}

func (r *dequeRun) insertMany(t *rapid.T) {
	at := rapid.IntRange(-1, len(r.model)+1).Draw(t, "at")
	for range rapid.IntRange(1, 200).Draw(t, "n") {
		s := rapid.SampledFrom(lengths).Draw(t, "s")
		ok := at >= 0 && at <= len(r.model)
		if r.d.InsertAt(at, s) != ok {
			t.Fatalf("InsertAt(%d) of %d is not %v", at, len(r.model), ok)
		}
		if ok {
			r.model = slices.Insert(r.model, at, s)
		}
	}
}

func (r *dequeRun) removeMany(t *rapid.T) {
	at := rapid.IntRange(-1, len(r.model)+1).Draw(t, "at")
	for range rapid.IntRange(1, 200).Draw(t, "n") {
		ok := at >= 0 && at < len(r.model)
		if r.d.RemoveAt(at) != ok {
			t.Fatalf("RemoveAt(%d) of %d is not %v", at, len(r.model), ok)
		}
		if ok {
			r.model = slices.Delete(r.model, at, at+1)
		}
	}
}

func (r *dequeRun) removeMatching(t *rapid.T) {
	which := strconv.Itoa(rapid.IntRange(0, 7).Draw(t, "which"))
	limit := rapid.SampledFrom([]int{0, 1, 3, 30, 1 << 40}).Draw(t, "limit")
	backward := rapid.Bool().Draw(t, "backward")
	removed := 0
	for step := 0; step < len(r.model) && removed < limit; {
		i := step
		if backward {
			i = len(r.model) - 1 - step
		}
		if r.model[i] == which {
			r.model = slices.Delete(r.model, i, i+1)
			removed++
		} else {
			step++
		}
	}
	got := r.d.RemoveMatching(func(s string) bool { return s == which }, limit, backward)
	if got != removed {
		t.Fatalf("RemoveMatching removes %d, want %d", got, removed)
	}
}

func (r *dequeRun) set(t *rapid.T) {
	i := rapid.IntRange(-1, len(r.model)).Draw(t, "i")
	ok := i >= 0 && i < len(r.model)
	if r.d.Set(i, "new value") != ok {
		t.Fatalf("Set(%d) of %d is not %v", i, len(r.model), ok)
	}
	if ok {
		r.model[i] = "new value"
	}
}

func (r *dequeRun) trim(t *rapid.T) {
	start := rapid.IntRange(-3, len(r.model)+3).Draw(t, "start")
	stop := rapid.IntRange(-3, len(r.model)+3).Draw(t, "stop")
	requireRange(t, r.d, r.model, start, stop)
	r.d.Trim(start, stop)
	low, high := max(start, 0), min(stop, len(r.model)-1)
	if low > high {
		r.model = nil
	} else {
		r.model = slices.Clone(r.model[low : high+1])
	}
}

func (r *dequeRun) clone(t *rapid.T) {
	old := r.d
	r.d = old.Clone()
	old.Set(0, "must not reach the copy")
	old.PushBack("nor this")
	old.Trim(1, 0)
	requireDeque(t, old, nil)
}

func TestDequeIsASlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &dequeRun{d: NewDeque()}
		t.Repeat(map[string]func(*rapid.T){
			"":               func(t *rapid.T) { requireDeque(t, r.d, r.model) },
			"push":           r.pushMany,
			"pop":            r.popMany,
			"insert":         r.insertMany,
			"remove":         r.removeMany,
			"removeMatching": r.removeMatching,
			"set":            r.set,
			"trim":           r.trim,
			"clone":          r.clone,
		})
	})
}

func TestDequeAsAQueueKeepsNoMoreThanItHolds(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]func(d *Deque){
		"back to front": func(d *Deque) { d.PushBack("job"); d.PopFront() },
		"front to back": func(d *Deque) { d.PushFront("job"); d.PopBack() },
	} {
		d := NewDeque()
		for range 300 {
			d.PushBack("job")
		}
		for range 100_000 {
			turn(d)
		}
		if bytes := d.MemoryBytes(); bytes > 4*chunkBytes {
			t.Errorf("%s: 300 elements of 3 bytes hold %d bytes", name, bytes)
		}
	}
}

func TestDequeRemovalsLeaveNoTrailOfSmallChunks(t *testing.T) {
	t.Parallel()
	d := NewDeque()
	for i := range 64 * 128 {
		d.PushBack(strconv.Itoa(i))
	}
	for i := d.Len() - 1; i >= 0; i-- {
		if i%64 != 0 {
			d.RemoveAt(i)
		}
	}
	if d.Len() != 2*64 || len(d.chunks()) > 8 {
		t.Fatalf("%d elements are in %d chunks", d.Len(), len(d.chunks()))
	}
}

func TestDequeEncoding(t *testing.T) {
	t.Parallel()
	if got := NewDeque().Encoding(); got != "quicklist" {
		t.Fatalf("Encoding() = %q", got)
	}
}
