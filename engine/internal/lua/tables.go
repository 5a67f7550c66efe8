package lua

import (
	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

func (s *state) tableLibrary() library {
	return s.functions(map[string]lua51.GoFunction{
		"concat": s.tableConcat, "foreach": tableForeach, "foreachi": tableForeachi, "getn": tableGetn,
		"insert": s.tableInsert, "maxn": tableMaxn, "remove": s.tableRemove, "setn": tableSetn, "sort": s.tableSort,
	})
}

func (s *state) tableConcat(l *lua51.Thread) int {
	separator := optString(l, 2, "")
	t := checkTable(l, 1)
	from := optInt32(l, 3, 1)
	to := 0
	if l.Arg(4).IsNil() {
		to = t.Len()
	} else {
		to = checkInt32(l, 4)
	}
	out := s.output(l)
	for i := from; i <= to; i++ {
		l.Pass(1)
		v := t.GetInt(i)
		if f, ok := v.AsNumber(); ok {
			out.text = lua51.AppendNumber(out.text, f)
		} else if text, ok := v.AsString(); ok {
			out.add(text)
		} else {
			l.Raise("invalid value (%s) at index %d in table for 'concat'", v.TypeName(), i)
		}
		if i < to {
			out.add(separator)
		}
	}
	l.Push(out.value())
	return 1
}

func tableForeach(l *lua51.Thread) int {
	t, visit := checkTable(l, 1), checkFunction(l, 2)
	for key, value, ok := l.Next(t, lua51.Nil); ok && !key.IsNil(); key, value, ok = l.Next(t, key) {
		if result := l.Call1(visit.Value(), key, value); !result.IsNil() {
			l.Push(result)
			return 1
		}
	}
	return 0
}

func tableForeachi(l *lua51.Thread) int {
	t, visit := checkTable(l, 1), checkFunction(l, 2)
	n := t.Len()
	for i := 1; i <= n; i++ {
		if result := l.Call1(visit.Value(), lua51.Int(i), t.GetInt(i)); !result.IsNil() {
			l.Push(result)
			return 1
		}
	}
	return 0
}

func tableGetn(l *lua51.Thread) int {
	l.PushInt(checkTable(l, 1).Len())
	return 1
}

func tableSetn(l *lua51.Thread) int {
	checkTable(l, 1)
	l.Raise("'setn' is obsolete")
	return 0
}

func tableMaxn(l *lua51.Thread) int {
	largest := 0.0
	for key := range l.All(checkTable(l, 1)) {
		l.Pass(1)
		if n, ok := key.AsNumber(); ok && n > largest {
			largest = n
		}
	}
	l.PushNumber(largest)
	return 1
}

// movedPerStep is how many values move in the time of a step.
const movedPerStep = 8

func (s *state) tableInsert(l *lua51.Thread) int {
	t := checkTable(l, 1)
	n := t.Len() + 1
	switch l.Top() {
	case 2:
		l.RawSet(t, lua51.Int(n), l.Arg(2))
	case 3:
		at := checkInt32(l, 2)
		if !t.ReadOnly() && t.Insert(s.vm, at, n, l.Arg(3)) {
			return 0
		}
		for i := max(n, at); i > at; i-- { // an index below 1 moves everything up
			l.Pass(1)
			l.RawSet(t, lua51.Int(i), t.GetInt(i-1))
		}
		l.RawSet(t, lua51.Int(at), l.Arg(3))
	default:
		l.Raise("wrong number of arguments to 'insert'")
	}
	return 0
}

func (s *state) tableRemove(l *lua51.Thread) int {
	t := checkTable(l, 1)
	n := t.Len()
	at := optInt32(l, 2, n)
	if at < 1 || at > n {
		return 0
	}
	if !t.ReadOnly() {
		if removed, ok := t.Remove(s.vm, at, n); ok {
			l.Push(removed)
			return 1
		}
	}
	l.Push(t.GetInt(at))
	for ; at < n; at++ {
		l.Pass(1)
		l.RawSet(t, lua51.Int(at), t.GetInt(at+1))
	}
	l.RawSet(t, lua51.Int(n), lua51.Nil)
	return 1
}

func (s *state) tableSort(l *lua51.Thread) int {
	t := checkTable(l, 1)
	n := t.Len()
	before := lua51.Nil
	if !l.Arg(2).IsNil() {
		before = checkFunction(l, 2).Value()
	}
	sorter{l, t, before}.sort(1, n)
	return 0
}

// sorter sorts as Lua does: with the same comparisons and exchanges, since the
// order that a script gives may be inconsistent, may look at the table, and may
// fail.
type sorter struct {
	l      *lua51.Thread
	t      *lua51.Table
	before lua51.Value
}

func (s sorter) less(a, b lua51.Value) bool {
	s.l.Pass(1)
	if s.before.IsNil() {
		return s.l.Less(a, b)
	}
	return s.l.Call1(s.before, a, b).Truth()
}

func (s sorter) set(i int, v lua51.Value) { s.l.RawSet(s.t, lua51.Int(i), v) }

// order exchanges what is at i and j, which is behind, if it is in the wrong
// order.
func (s sorter) order(i, j int) (exchanged bool) {
	a, b := s.t.GetInt(i), s.t.GetInt(j)
	if !s.less(b, a) {
		return false
	}
	s.set(i, b)
	s.set(j, a)
	return true
}

func (s sorter) sort(low, high int) {
	for low < high {
		s.order(low, high)
		if high-low == 1 {
			return
		}
		middle := (low + high) / 2
		if !s.order(low, middle) {
			s.order(middle, high)
		}
		if high-low == 2 {
			return
		}
		pivot := s.t.GetInt(middle)
		s.exchange(middle, high-1)
		i := s.partition(low, high, pivot)
		if i-low < high-i { // the shorter part first: the depth is logarithmic
			s.sort(low, i-1)
			low = i + 1
		} else {
			s.sort(i+1, high)
			high = i - 1
		}
	}
}

func (s sorter) exchange(i, j int) {
	a, b := s.t.GetInt(i), s.t.GetInt(j)
	s.set(i, b)
	s.set(j, a)
}

func (s sorter) partition(low, high int, pivot lua51.Value) int {
	i, j := low, high-1
	for {
		for i++; s.less(s.t.GetInt(i), pivot); i++ {
			if i > high {
				s.l.Raise("invalid order function for sorting")
			}
		}
		for j--; s.less(pivot, s.t.GetInt(j)); j-- {
			if j < low {
				s.l.Raise("invalid order function for sorting")
			}
		}
		if j < i {
			break
		}
		s.exchange(i, j)
	}
	s.exchange(high-1, i)
	return i
}
