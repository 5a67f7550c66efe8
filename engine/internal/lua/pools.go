package lua

import (
	glua "github.com/yuin/gopher-lua"
)

// Tables that replies become are made anew by a script a dozen times, and each
// costs several allocations. No script outlives its run: so the tables of one
// run serve the next, unless the script has left something in them that an
// ordinary reply does not have. Large ones are not kept, and none are after a
// run that made much: a script may have put it there.

const (
	mostPooled     = 32 // tables of a kind
	longestPooled  = 16 // elements
	maxPooledBytes = 4 << 10
	// muchBytes is what a run may make without the tables being given up.
	muchBytes = 64 << 10
)

// statusTables hands out the {ok=...} tables of status replies. Such a table
// costs a microsecond to make; no script outlives its run, so the tables of
// one run serve the next, unless the script changed them.
type statusTables struct {
	tables  []*glua.LTable
	used    int
	lasting bool // what is handed out may be kept: each table is new
}

func (p *statusTables) get(l *glua.LState, text glua.LValue) *glua.LTable {
	if p.used < len(p.tables) {
		t := p.tables[p.used]
		if t.Metatable == glua.LNil && t.MaxN() == 0 && t.RawGetString("ok") != glua.LNil {
			if extra, _ := t.Next(okField); extra == glua.LNil {
				p.used++
				if t.RawGetString("ok") != text {
					t.RawSetString("ok", text)
				}
				return t
			}
		}
	}
	t := l.CreateTable(0, 1)
	t.RawSetString("ok", text)
	switch {
	case p.used < len(p.tables):
		p.tables[p.used] = t
		p.used++
	case p.used < mostPooled && !p.lasting:
		p.tables = append(p.tables, t)
		p.used++
	}
	return t
}

var okField glua.LValue = glua.LString("ok")

// arrayTables hands out the tables of array replies.
type arrayTables struct {
	tables  []*glua.LTable
	used    int
	lasting bool // as above
}

// get gives a table for n elements of a reply of so many bytes, all of which
// the caller sets.
func (p *arrayTables) get(l *glua.LState, n, bytes int) *glua.LTable {
	if p.lasting || n == 0 || n > longestPooled || bytes > maxPooledBytes || p.used == mostPooled {
		return l.CreateTable(n, 0)
	}
	if p.used == len(p.tables) {
		p.tables = append(p.tables, l.CreateTable(longestPooled, 0))
	}
	t := p.tables[p.used]
	if isPlainList(t) {
		shorten(t, n)
	} else {
		t = l.CreateTable(longestPooled, 0)
		p.tables[p.used] = t
	}
	p.used++
	return t
}

// isPlainList says that a table has nothing but an array.
func isPlainList(t *glua.LTable) bool {
	if t.Metatable != glua.LNil {
		return false
	}
	last := glua.LNil
	if n := t.MaxN(); n > 0 {
		last = value(glua.LNumber(n))
	}
	extra, _ := t.Next(last)
	return extra == glua.LNil
}

// shorten leaves the first n elements of a list.
func shorten(t *glua.LTable, n int) {
	for length := t.MaxN(); length > n; length-- {
		t.Remove(-1)
	}
}
