package lua

import (
	"hash/maphash"

	glua "github.com/yuin/gopher-lua"
)

// textCache keeps short strings that came in lately, as Lua values. A Go
// string in an interface costs two allocations, and keys, arguments and
// replies repeat: Lua itself keeps each string once for the same reason.
type textCache struct {
	seed  maphash.Seed
	slots *[512]glua.LValue
}

const maxCachedBytes = 40

func (c *textCache) get(b []byte) glua.LValue {
	if len(b) > maxCachedBytes {
		return glua.LString(b)
	}
	if c.slots == nil {
		c.slots, c.seed = new([512]glua.LValue), maphash.MakeSeed()
	}
	slot := &c.slots[maphash.Bytes(c.seed, b)%uint64(len(c.slots))]
	if known, ok := (*slot).(glua.LString); ok && string(known) == string(b) {
		return *slot
	}
	v := glua.LValue(glua.LString(b))
	*slot = v
	return v
}

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
	case p.used < 32 && !p.lasting:
		p.tables = append(p.tables, t)
		p.used++
	}
	return t
}

var okField glua.LValue = glua.LString("ok")
