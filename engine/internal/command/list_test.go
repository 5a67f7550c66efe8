package command

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// texts is a reply's elements as strings.
func texts(v resp.Value) []string {
	list := make([]string, len(v.Elems))
	for i, element := range v.Elems {
		list[i] = element.Text()
	}
	return list
}

// listModel is a list as a slice, next to the one that commands work on.
type listModel struct {
	c        *Ctx
	t        rapid.TB
	elements []string
}

func (m *listModel) push(command, element string) {
	if command == "LPUSH" {
		m.elements = slices.Insert(m.elements, 0, element)
	} else {
		m.elements = append(m.elements, element)
	}
	expect(m.t, m.c, fmt.Sprintf("(integer) %d", len(m.elements)), command, "l", element)
}

func (m *listModel) pop(command string, count int) {
	taken := min(count, len(m.elements))
	var want []string
	for range taken {
		at := 0
		if command == "RPOP" {
			at = len(m.elements) - 1
		}
		want = append(want, m.elements[at])
		m.elements = slices.Delete(m.elements, at, at+1)
	}
	got := texts(call(m.t, m.c, command, "l", strconv.Itoa(count)))
	if !slices.Equal(got, want) {
		m.t.Fatalf("%s %d: got %q, want %q", command, count, got, want)
	}
}

func (m *listModel) trim(start, stop int) {
	from, to, ok := Span(int64(start), int64(stop), len(m.elements))
	if ok {
		m.elements = slices.Clone(m.elements[from : to+1])
	} else {
		m.elements = nil
	}
	expect(m.t, m.c, "OK", "LTRIM", "l", strconv.Itoa(start), strconv.Itoa(stop))
}

func (m *listModel) remove(count int, value string) {
	limit, removed := count, 0
	if count == 0 {
		limit = len(m.elements)
	}
	if count < 0 {
		limit = -count
		slices.Reverse(m.elements)
	}
	m.elements = slices.DeleteFunc(m.elements, func(element string) bool {
		matches := element == value && removed < limit
		if matches {
			removed++
		}
		return matches
	})
	if count < 0 {
		slices.Reverse(m.elements)
	}
	expect(m.t, m.c, fmt.Sprintf("(integer) %d", removed), "LREM", "l", strconv.Itoa(count), value)
}

func (m *listModel) insert(where, pivot, element string) {
	want := 0
	if len(m.elements) > 0 {
		want = -1
		if at := slices.Index(m.elements, pivot); at >= 0 {
			if where == "AFTER" {
				at++
			}
			m.elements = slices.Insert(m.elements, at, element)
			want = len(m.elements)
		}
	}
	expect(m.t, m.c, fmt.Sprintf("(integer) %d", want), "LINSERT", "l", where, pivot, element)
}

// positions is LPOS with COUNT 0: where value is, from the tail if the rank is
// negative, less the first matches that the rank leaves out.
func (m *listModel) positions(value string, rank int) {
	var want []string
	for i, element := range m.elements {
		if element == value {
			want = append(want, strconv.Itoa(i))
		}
	}
	leaveOut := rank - 1
	if rank < 0 {
		slices.Reverse(want)
		leaveOut = -rank - 1
	}
	want = want[min(leaveOut, len(want)):]
	got := texts(call(m.t, m.c, "LPOS", "l", value, "RANK", strconv.Itoa(rank), "COUNT", "0"))
	if !slices.Equal(got, want) {
		m.t.Fatalf("LPOS %s RANK %d in %q: got %q, want %q", value, rank, m.elements, got, want)
	}
}

func (m *listModel) check() {
	m.t.Helper()
	if diff := cmp.Diff(append([]string{}, m.elements...), texts(call(m.t, m.c, "LRANGE", "l", "0", "-1"))); diff != "" {
		m.t.Fatal(diff)
	}
	exists := "(integer) 0"
	if len(m.elements) > 0 {
		exists = "(integer) 1"
	}
	expect(m.t, m.c, exists, "EXISTS", "l")
}

func TestListMatchesModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := &listModel{c: newTestCtx(), t: r}
		value := rapid.SampledFrom([]string{"a", "b", "c", ""})
		index := rapid.IntRange(-12, 12)
		rank := rapid.OneOf(rapid.IntRange(-4, -1), rapid.IntRange(1, 4))
		r.Repeat(map[string]func(*rapid.T){
			"push": func(r *rapid.T) {
				m.push(rapid.SampledFrom([]string{"LPUSH", "RPUSH"}).Draw(r, "command"), value.Draw(r, "element"))
			},
			"pop": func(r *rapid.T) {
				m.pop(rapid.SampledFrom([]string{"LPOP", "RPOP"}).Draw(r, "command"), rapid.IntRange(0, 3).Draw(r, "count"))
			},
			"trim":   func(r *rapid.T) { m.trim(index.Draw(r, "start"), index.Draw(r, "stop")) },
			"remove": func(r *rapid.T) { m.remove(rapid.IntRange(-2, 2).Draw(r, "count"), value.Draw(r, "value")) },
			"insert": func(r *rapid.T) {
				m.insert(rapid.SampledFrom([]string{"BEFORE", "AFTER"}).Draw(r, "where"), value.Draw(r, "pivot"), value.Draw(r, "element"))
			},
			"position": func(r *rapid.T) { m.positions(value.Draw(r, "value"), rank.Draw(r, "rank")) },
			"":         func(*rapid.T) { m.check() },
		})
	})
}

// A list goes around through LMOVE and, with its last element too, stays the
// same key with the same expiry.
func TestListMoveOntoItself(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	run(t, c, "RPUSH", "l", "a", "b", "c")
	run(t, c, "PEXPIREAT", "l", strconv.FormatInt(c.NowMs()+1000, 10))
	expect(t, c, `"c"`, "RPOPLPUSH", "l", "l")
	expect(t, c, "OK", "LTRIM", "l", "0", "0")
	expect(t, c, `"c"`, "LMOVE", "l", "l", "LEFT", "RIGHT")
	expect(t, c, "(integer) 1000", "PTTL", "l")
	expect(t, c, `"c"`, "LMOVE", "l", "other", "LEFT", "RIGHT")
	expect(t, c, "(integer) 0", "EXISTS", "l")
	expect(t, c, "(integer) -1", "PTTL", "other")
}

func TestListMoveToAnotherTypeTakesNothing(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	run(t, c, "RPUSH", "l", "a")
	run(t, c, "SET", "s", "x")
	dirty := c.Space.Dirty
	expect(t, c, "(error) "+string(ErrWrongType), "LMOVE", "l", "s", "LEFT", "LEFT")
	expect(t, c, "(integer) 1", "LLEN", "l")
	if c.Space.Dirty != dirty {
		t.Error("a move that failed counts as a change")
	}
}

func TestListThousandsInTheMiddle(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	const n = 20000
	for i := range n {
		run(t, c, "RPUSH", "l", strconv.Itoa(i%100))
	}
	expect(t, c, "(integer) 200", "LREM", "l", "0", "50")
	expect(t, c, "(integer) 10", "LREM", "l", "-10", "51")
	expect(t, c, fmt.Sprintf("(integer) %d", n-210), "LLEN", "l")
	expect(t, c, `"52"`, "LINDEX", "l", "-48")
	expect(t, c, fmt.Sprintf("(integer) %d", n-209), "LINSERT", "l", "BEFORE", "99", "new")
	expect(t, c, "(integer) 98", "LPOS", "l", "new")
}
