package lua

import (
	"reflect"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// weigh adds up, about, the bytes of everything that a script can still
// reach: the globals, the stacks of its coroutines, and all that hangs on
// them. It ends early above the limit.
func (s *state) weigh(limit int64) int64 {
	w := scale{
		tables: map[*glua.LTable]struct{}{}, functions: map[*glua.LFunction]struct{}{},
		threads: map[*glua.LState]struct{}{}, texts: map[*byte]struct{}{},
	}
	w.add(s.globals)
	for fn := range s.kept {
		w.add(fn)
	}
	if s.main != nil { // a tail call has its frame, but its variables stay (see hoist.go)
		w.add(s.main)
	}
	w.add(s.l)
	for thread := s.l.G.CurrentThread; thread != nil; thread = thread.Parent {
		w.add(thread)
	}
	for len(w.queue) > 0 && w.bytes <= limit {
		last := len(w.queue) - 1
		v := w.queue[last]
		w.queue = w.queue[:last]
		switch v := v.(type) {
		case *glua.LTable:
			w.table(v)
		case *glua.LFunction:
			w.function(v)
		case *glua.LState:
			w.thread(v)
		}
	}
	return w.bytes
}

// A scale remembers what it has weighed, and what is still to be: deep
// structures must not fill Go's stack.
type scale struct {
	bytes     int64
	queue     []glua.LValue
	tables    map[*glua.LTable]struct{}
	functions map[*glua.LFunction]struct{}
	threads   map[*glua.LState]struct{}
	texts     map[*byte]struct{}
}

func (w *scale) add(v glua.LValue) {
	switch v := v.(type) {
	case glua.LString:
		w.text(string(v))
	case *glua.LTable:
		if once(w.tables, v) {
			w.queue = append(w.queue, v)
		}
	case *glua.LFunction:
		if once(w.functions, v) {
			w.queue = append(w.queue, v)
		}
	case *glua.LState:
		if once(w.threads, v) {
			w.queue = append(w.queue, v)
		}
	}
}

func once[K comparable](seen map[K]struct{}, key K) bool {
	before := len(seen)
	seen[key] = struct{}{}
	return len(seen) > before
}

// text weighs a long string once, however often it is referred to.
func (w *scale) text(text string) {
	const long = 256
	w.bytes += slotBytes
	if len(text) < long || once(w.texts, unsafe.StringData(text)) {
		w.bytes += int64(len(text))
	}
}

// The parts of a table that its methods do not show. It never gives back the
// room of what was removed, and keeps the removed keys.
var (
	tableArray = tablePart("array")
	tableKeys  = tablePart("keys")
)

// tablePart is -1 if this version of gopher-lua has no such part.
func tablePart(name string) int {
	field, ok := reflect.TypeFor[glua.LTable]().FieldByName(name)
	if !ok || field.Type != reflect.TypeFor[[]glua.LValue]() {
		return -1
	}
	return field.Index[0]
}

func (w *scale) table(t *glua.LTable) {
	const keyBytes = 120 // of two maps and a list
	w.bytes += tableBytes
	shape := reflect.ValueOf(t).Elem()
	if tableArray >= 0 {
		w.bytes += slotBytes * int64(shape.Field(tableArray).Cap())
	}
	if tableKeys >= 0 {
		keys := shape.Field(tableKeys)
		w.bytes += keyBytes * int64(keys.Cap())
		w.removedKeys(t, keys)
	}
	w.add(t.Metatable)
	longest := t.MaxN()
	for i := 1; i <= longest; i++ {
		w.add(t.RawGetInt(i))
	}
	last := glua.LNil
	if longest > 0 {
		last = glua.LNumber(longest)
	}
	for k, v := t.Next(last); k != glua.LNil; k, v = t.Next(k) {
		w.add(k)
		w.add(v)
	}
}

// removedKeys weighs the texts of keys that a table has lost, but holds on to.
func (w *scale) removedKeys(t *glua.LTable, keys reflect.Value) {
	for i := range keys.Len() {
		key := keys.Index(i).Elem()
		if key.Kind() == reflect.String && t.RawGetString(key.String()) == glua.LNil {
			w.text(key.String())
		}
	}
}

func (w *scale) function(f *glua.LFunction) {
	const functionBytes = 120
	w.bytes += functionBytes
	for _, u := range f.Upvalues {
		w.add(u.Value())
	}
}

// thread weighs the whole stack of a coroutine: the functions that run, their
// variables, arguments and intermediate results.
func (w *scale) thread(l *glua.LState) {
	w.bytes += threadBytes
	frame, ok := l.GetStack(0)
	if ok {
		w.stack(l, frame)
	} else if frame, ok = l.GetStack(-1); !ok { // the one frame of a thread that has not started
		return
	}
	w.running(frame)
}

// running weighs the functions of all frames. A function that was reached by
// a tail call is nowhere else. (Levels of GetStack count each tail call, of
// which there may be millions.)
func (w *scale) running(frame *glua.Debug) {
	f := reflect.ValueOf(frame).Elem().FieldByName("frame")
	for f.Kind() == reflect.Pointer && !f.IsNil() {
		if fn := f.Elem().FieldByName("Fn"); fn.IsValid() && fn.Type() == reflect.TypeFor[*glua.LFunction]() && !fn.IsNil() {
			w.add((*glua.LFunction)(fn.UnsafePointer()))
		}
		f = f.Elem().FieldByName("Parent")
	}
}

// stack reads the value stack from the top of the innermost frame down to its
// first slot. What is below the frame's own variables has numbers from 0
// downwards; gopher-lua panics at the first that does not exist.
func (w *scale) stack(l *glua.LState, frame *glua.Debug) {
	defer func() { _ = recover() }()
	for n := l.GetTop(); n > -maxStackValues; n-- {
		_, v := l.GetLocal(frame, n)
		if v == nil {
			continue // never set
		}
		w.add(v)
	}
}
