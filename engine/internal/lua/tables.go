package lua

import (
	"sort"

	glua "github.com/yuin/gopher-lua"
)

func (s *state) tableLibrary() library {
	return s.functions(map[string]glua.LGFunction{
		"concat": s.tableConcat, "foreach": s.tableForeach, "foreachi": s.tableForeachi, "getn": s.tableGetn,
		"insert": s.tableInsert, "maxn": s.tableMaxn, "remove": s.tableRemove, "setn": tableSetn, "sort": s.tableSort,
	})
}

func (s *state) tableConcat(l *glua.LState) int {
	t := s.unwrap(checkTable(l, 1, "concat"))
	separator := optString(l, 2, "concat", "")
	from := optInt(l, 3, "concat", 1)
	to := 0
	if l.Get(4) == glua.LNil {
		to = t.Len()
	} else {
		to = checkInt(l, 4, "concat")
	}
	var out []byte
	for i := from; i <= to; i++ {
		switch v := t.RawGet(glua.LNumber(i)).(type) {
		case glua.LString:
			out = s.grow(l, out, string(v))
		case glua.LNumber:
			out = appendNumber(out, float64(v))
		default:
			raise(l, "invalid value (%s) at index %d in table for 'concat'", v.Type().String(), i)
		}
		if i < to {
			out = s.grow(l, out, separator)
		}
	}
	s.meter.reserve(l, len(out))
	l.Push(glua.LString(out))
	return 1
}

func (s *state) tableForeach(l *glua.LState) int {
	t, visit := s.unwrap(checkTable(l, 1, "foreach")), checkFunction(l, 2, "foreach")
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		if visited(l, visit, k, v) {
			return 1
		}
	}
	return 0
}

func (s *state) tableForeachi(l *glua.LState) int {
	t, visit := s.unwrap(checkTable(l, 1, "foreachi")), checkFunction(l, 2, "foreachi")
	n := t.Len()
	for i := 1; i <= n; i++ {
		if visited(l, visit, glua.LNumber(i), t.RawGetInt(i)) {
			return 1
		}
	}
	return 0
}

// visited calls visit(k, v) and leaves its result pushed unless it is nil.
func visited(l *glua.LState, visit *glua.LFunction, k, v glua.LValue) bool {
	l.Push(visit)
	l.Push(k)
	l.Push(v)
	l.Call(2, 1)
	if l.Get(-1) != glua.LNil {
		return true
	}
	l.Pop(1)
	return false
}

func (s *state) tableGetn(l *glua.LState) int {
	l.Push(glua.LNumber(s.unwrap(checkTable(l, 1, "getn")).Len()))
	return 1
}

func tableSetn(l *glua.LState) int {
	checkTable(l, 1, "setn")
	raise(l, "'setn' is obsolete")
	return 0
}

func (s *state) tableMaxn(l *glua.LState) int {
	t := s.unwrap(checkTable(l, 1, "maxn"))
	largest := glua.LNumber(0)
	t.ForEach(func(k, _ glua.LValue) {
		if n, ok := k.(glua.LNumber); ok && n > largest {
			largest = n
		}
	})
	l.Push(largest)
	return 1
}

// writable refuses a library where a plain table is about to be changed.
func (s *state) writable(l *glua.LState, function string) *glua.LTable {
	t := checkTable(l, 1, function)
	if s.isFrozen(t) {
		raisePlain(l, readonlyMessage)
	}
	return t
}

func (s *state) tableInsert(l *glua.LState) int {
	t := s.writable(l, "insert")
	n := t.Len()
	switch l.GetTop() {
	case 2:
		t.RawSetInt(n+1, l.Get(2))
	case 3:
		at := checkInt(l, 2, "insert")
		if 1 <= at && at <= n {
			t.Insert(at, l.Get(3))
			return 0
		}
		s.reserveIndex(l, t, at)
		for i := n; i >= at; i-- { // an index below 1 moves everything up
			s.meter.pass(l, 1)
			t.RawSet(glua.LNumber(i+1), t.RawGet(glua.LNumber(i)))
		}
		t.RawSet(glua.LNumber(at), l.Get(3))
	default:
		raise(l, "wrong number of arguments to 'insert'")
	}
	return 0
}

func (s *state) tableRemove(l *glua.LState) int {
	t := s.writable(l, "remove")
	n := t.Len()
	at := optInt(l, 2, "remove", n)
	if at < 1 || at > n {
		return 0
	}
	l.Push(t.Remove(at))
	return 1
}

// tableSort sorts a copy and writes it back: the order a script gives may be
// inconsistent, and may look at the table.
func (s *state) tableSort(l *glua.LState) int {
	t := s.writable(l, "sort")
	var before *glua.LFunction
	if l.GetTop() >= 2 && l.Get(2) != glua.LNil {
		before = checkFunction(l, 2, "sort")
	}
	s.meter.reserve(l, slotBytes*t.Len())
	items := make([]glua.LValue, t.Len())
	for i := range items {
		items[i] = t.RawGetInt(i + 1)
	}
	sort.Slice(items, func(i, j int) bool {
		if before == nil {
			return l.LessThan(items[i], items[j])
		}
		l.Push(before)
		l.Push(items[i])
		l.Push(items[j])
		l.Call(2, 1)
		smaller := glua.LVAsBool(l.Get(-1))
		l.Pop(1)
		return smaller
	})
	for i, v := range items {
		t.RawSetInt(i+1, v)
	}
	return 0
}
