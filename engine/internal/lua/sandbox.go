package lua

import (
	"maps"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The globals and libraries are read-only, as Redis makes them, and an unknown
// global is an error.

type library map[string]lua51.Value

// libraries names them all. A new library is one more line.
func (s *state) libraries() map[string]library {
	return map[string]library{
		"redis": s.redisLibrary(), "string": s.stringLibrary(), "table": s.tableLibrary(),
		"math": s.mathLibrary(), "coroutine": s.coroutineLibrary(), "bit": s.bitLibrary(),
		"struct": s.structLibrary(), "cjson": s.jsonLibrary(), "cmsgpack": s.msgpackLibrary(),
	}
}

func (s *state) openLibraries() {
	s.known = map[string]string{}
	globals := s.vm.Globals()
	if s.chunk == scriptChunk {
		s.define(globals, "KEYS", lua51.False) // run sets them
		s.define(globals, "ARGV", lua51.False)
	}
	for name, value := range s.baseFunctions() {
		s.define(globals, name, value)
	}
	for name, members := range s.libraries() {
		s.define(globals, name, s.table(members, nil).Value())
	}
	s.define(globals, "_VERSION", lua51.String("Lua 5.1"))
	s.define(globals, "_G", globals.Value())
	globals.SetMeta(s.guard())
	globals.Protect()
	methods := library{"__index": globals.GetString("string")}
	s.vm.SetStringMeta(s.table(methods, nil))
	if s.chunk == functionChunk {
		s.openLoading()
	}
}

// define sets a field whose name is the compiler's to know.
func (s *state) define(t *lua51.Table, name string, value lua51.Value) {
	if known, ok := s.known[name]; ok {
		name = known
	}
	s.known[name] = name
	t.SetString(s.vm, name, value)
}

// tableOf makes a table of the members of a library, which is the same each
// time.
func (s *state) tableOf(members library) *lua51.Table {
	t := s.vm.NewTable(0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		s.define(t, name, members[name])
	}
	return t
}

// table makes a read-only table.
func (s *state) table(members library, meta *lua51.Table) *lua51.Table {
	t := s.tableOf(members)
	t.SetMeta(meta)
	t.Protect()
	return t
}

func (s *state) function(f lua51.GoFunction) lua51.Value { return s.vm.NewFunction(f).Value() }

// functions makes a library of functions.
func (s *state) functions(table map[string]lua51.GoFunction) library {
	members := make(library, len(table))
	for name, f := range table {
		members[name] = s.function(f)
	}
	return members
}

// guard is a metatable that refuses a field that does not exist.
func (s *state) guard() *lua51.Table {
	return s.table(library{"__index": s.function(func(l *lua51.Thread) int {
		name, _ := l.Arg(2).ToText()
		l.Raise("Script attempted to access nonexistent global variable '%s'", cText(name))
		return 0
	})}, nil)
}
