package lua51

import (
	"math/bits"
	"unsafe"
)

// State is what all coroutines of one program share: the globals, the meter and
// the memory that is used again. It is not safe for concurrent use.
type State struct {
	// Interrupt is asked, after so many further steps, whether the program may
	// go on. A text ends it, and no pcall helps.
	Interrupt func(steps int) (stop string)
	// Heavy is called once in a run, when it has made much. May be nil.
	Heavy func()
	// Beside does work beside the program, where the memory of large tables is made: ended waits
	// for a moment and says whether it is done. May be nil.
	Beside func(work func()) (ended func() bool)
	// Roots is asked for what Go holds for the program: all of it counts.
	Roots func(add func(Value))

	globals    *Table
	stringMeta *Table
	// stringMethods is what the metatable of texts, which nobody can change,
	// has as its index.
	stringMethods *Table
	main          *Thread
	current       *Thread
	goCalls       int // calls from Go that are running
	meter         meter
	pool          pool
	marks         uint32 // of weighings so far
	metaNames     [eventCount]Value
}

// NewState makes a state whose programs may hold so many bytes.
func NewState(limitBytes int64) *State {
	st := &State{}
	st.meter.limit = limitBytes
	for e, name := range eventNames {
		st.metaNames[e] = String(name)
	}
	st.meter.allowance = min(st.meter.limit, heavyBytes)
	st.globals = st.NewTable(0, 64)
	st.main = newThread(st)
	st.current = st.main
	return st
}

// Recycle says that nothing that runs make from here on outlives them: what one
// has made serves the next after Reset.
func (st *State) Recycle() { st.pool.on = true }

// Globals is the table of globals.
func (st *State) Globals() *Table { return st.globals }

// SetGlobals makes another table that of the globals, for functions that there
// are as well.
func (st *State) SetGlobals(globals *Table) { st.globals = globals }

// SetStringMeta sets the metatable of all texts.
func (st *State) SetStringMeta(meta *Table) {
	st.stringMeta, st.stringMethods = meta, nil
	if meta != nil {
		st.stringMethods = st.metaOf(meta, eventIndex).AsTable()
	}
}

// Main is the thread that is no coroutine.
func (st *State) Main() *Thread { return st.main }

// Current is the thread that runs.
func (st *State) Current() *Thread { return st.current }

// NewTable makes a table with a list so long, and nodes for so many keys. Where
// the original begins with less, others would make another table of the same
// keys.
func (st *State) NewTable(list, hash int) *Table {
	st.charge(tableBytes)
	t := st.pool.table()
	t.meter = &st.meter
	if list > 0 || hash > 0 {
		t.resize(st, list, hash)
	}
	return t
}

// NewList makes a table with a list as long as it is after so many values were
// appended, none of them nil.
func (st *State) NewList(values int) *Table {
	if values > 1 {
		values = 1 << bits.Len(uint(values-1))
	}
	return st.NewTable(values, 0)
}

// Text is a text that is copied.
func (st *State) Text(b []byte) Value {
	if len(b) == 0 {
		return String("")
	}
	return String(unsafe.String(unsafe.SliceData(st.copyText(b)), len(b)))
}

func (st *State) copyText(b []byte) []byte {
	st.charge(int64(len(b)))
	return append(st.pool.bytes(len(b)), b...)
}

// Reset ends a run: all that it has made is gone.
func (st *State) Reset() {
	st.main.reset()
	st.current = st.main
	st.goCalls = 0
	st.pool.reset()
}
