package lua51

import "unsafe"

// Thread is a coroutine, or the one thread that is none: a stack of values and
// the functions that run on it. Functions in Go get it as their argument.
type Thread struct {
	st       *State
	stack    []Value // always with room for slack above what is used
	top      int
	high     int // the highest place used since the last reset
	frame    *frame
	first    frame
	depth    int
	open     []*Upvalue // by place on the stack
	openTop  int        // above all of those
	nested   int        // calls from Go on this thread
	handler  Value      // of errors, for xpcall
	status   threadStatus
	body     bool                      // it has not started: its function is on the stack
	pending  struct{ at, results int } // the call that yielded
	yielding bool
	resumer  *Thread
	marked   uint32
}

type threadStatus uint8

const (
	suspended threadStatus = iota
	running
	normal
	dead
)

// frame is a function that runs.
type frame struct {
	fn       *Function
	previous *frame
	next     *frame
	base     int // its first register or argument
	place    int // where the function stands, and its results go
	results  int // how many the caller wants
	pc       int // of the next instruction
	tails    int // calls that ended in it and have no frames
	entry    bool
}

const (
	// slack is room above each frame: a register has 8 bits, so none is outside.
	slack     = 256
	maxDepth  = 16384
	extraCall = 200 // frames beyond maxDepth for the handling of that error
	// maxGoCalls bounds calls from Go, which take Go's stack.
	maxGoCalls   = 200
	frameBytes   = int64(unsafe.Sizeof(frame{}))
	threadBytes  = int64(unsafe.Sizeof(Thread{}))
	firstStack   = 64
	keptStack    = 4096
	maxStackSize = 1 << 22
)

func newThread(st *State) *Thread {
	st.charge(threadBytes + (firstStack+slack)*valueBytes)
	th := &Thread{st: st, stack: make([]Value, firstStack+slack), status: running}
	th.frame = &th.first
	return th
}

// NewThread makes a coroutine of a function.
func (st *State) NewThread(f *Function) *Thread {
	th := newThread(st)
	th.status, th.body = suspended, true
	th.stack[0], th.top = f.Value(), 1
	return th
}

// State is the state of the thread.
func (th *Thread) State() *State { return th.st }

// reset makes the thread new.
func (th *Thread) reset() {
	if len(th.stack) > keptStack {
		th.stack, th.open = make([]Value, firstStack+slack), nil
	} else {
		clear(th.stack[:th.high])
		if th.openTop > 0 {
			clear(th.open)
		}
	}
	f := &th.first
	for depth := 0; f != nil && f.fn != nil || depth == 0; depth++ {
		f.fn = nil
		if depth == 100 {
			f.next = nil
		}
		f = f.next
	}
	th.frame, th.depth, th.top, th.high, th.openTop, th.nested = &th.first, 0, 0, 0, 0, 0
	th.yielding = false
	th.handler = Nil
}

// ensure makes room for the stack up to a place.
func (th *Thread) ensure(top int) {
	if top > th.high {
		th.high = top
	}
	if top+slack > len(th.stack) {
		th.grow(top)
	}
}

func (th *Thread) grow(top int) {
	if top > maxStackSize {
		th.throwText("stack overflow")
	}
	size := max(2*len(th.stack), top+2*slack)
	th.st.charge(valueBytes * int64(size))
	stack := make([]Value, size)
	copy(stack, th.stack)
	th.stack = stack
	if th.openTop == 0 {
		th.open = nil
		return
	}
	open := make([]*Upvalue, size)
	copy(open, th.open)
	th.open = open
	for i, u := range open[:th.openTop] {
		if u != nil {
			u.at = &stack[i]
		}
	}
}

func (th *Thread) registers(base int) *[slack]Value {
	return (*[slack]Value)(th.stack[base:])
}

// push makes a frame for a function that is about to run.
func (th *Thread) push(fn *Function, place, base, results int) *frame {
	f := th.frame.next
	if f == nil {
		th.st.charge(frameBytes)
		f = &frame{previous: th.frame}
		th.frame.next = f
	}
	if th.depth++; th.depth >= maxDepth {
		th.overflow()
	}
	f.fn, f.place, f.base, f.results, f.pc, f.tails, f.entry = fn, place, base, results, 0, 0, false
	th.frame = f
	return f
}

func (th *Thread) overflow() {
	if th.depth == maxDepth {
		th.throwText("stack overflow")
	}
	if th.depth >= maxDepth+extraCall {
		panic(&Thrown{Value: String("error in error handling"), Line: -1})
	}
}

func (th *Thread) pop() {
	th.frame = th.frame.previous
	th.depth--
}

// findUpvalue gives the upvalue of a place on the stack.
func (th *Thread) findUpvalue(place int) *Upvalue {
	if len(th.open) < len(th.stack) {
		open := make([]*Upvalue, len(th.stack))
		copy(open, th.open)
		th.open = open
	}
	u := th.open[place]
	if u == nil {
		th.st.charge(upvalueBytes)
		u = th.st.pool.upvalue()
		u.at = &th.stack[place]
		th.open[place] = u
		th.openTop = max(th.openTop, place+1)
	}
	return u
}

// closeUpvalues makes the variables from a place on upwards own their values.
func (th *Thread) closeUpvalues(from int) {
	for i := th.openTop - 1; i >= from; i-- {
		if u := th.open[i]; u != nil {
			u.own = *u.at
			u.at = &u.own
			th.open[i] = nil
		}
	}
	th.openTop = min(th.openTop, from)
}

// The arguments and results of functions in Go.

// Top is the number of arguments and of what was pushed.
func (th *Thread) Top() int { return th.top - th.frame.base }

// Arg is argument n, from 1 on; nil if there are fewer.
func (th *Thread) Arg(n int) Value {
	if i := th.frame.base + n - 1; i < th.top && n > 0 {
		return th.stack[i]
	}
	return Nil
}

// SetTop drops what is above n, or adds nils.
func (th *Thread) SetTop(n int) {
	top := th.frame.base + n
	th.ensure(top)
	for i := th.top; i < top; i++ {
		th.stack[i] = Nil
	}
	th.top = top
}

// Push adds a value.
func (th *Thread) Push(v Value) {
	if th.top+slack >= len(th.stack) || th.top >= th.high {
		th.ensure(th.top + 1)
	}
	th.stack[th.top] = v
	th.top++
}

// PushNumber adds a number.
func (th *Thread) PushNumber(f float64) { th.Push(Number(f)) }

// PushInt adds a whole number.
func (th *Thread) PushInt(n int) { th.Push(Int(n)) }

// PushString adds a text, which is not copied.
func (th *Thread) PushString(s string) { th.Push(String(s)) }

// PushBool adds a boolean.
func (th *Thread) PushBool(b bool) { th.Push(Bool(b)) }

// PushTable adds a table.
func (th *Thread) PushTable(t *Table) { th.Push(t.Value()) }

// Pop takes the last value away and returns it.
func (th *Thread) Pop() Value {
	th.top--
	return th.stack[th.top]
}

// Insert puts a value before argument n.
func (th *Thread) Insert(v Value, n int) {
	th.Push(Nil)
	at := th.frame.base + n - 1
	copy(th.stack[at+1:th.top], th.stack[at:th.top-1])
	th.stack[at] = v
}

// Call calls a function that was pushed, and then n arguments. They make way
// for its results, so many or, if that is -1, all.
func (th *Thread) Call(n, results int) {
	at := th.top - n - 1
	th.call(at, results)
	if results >= 0 {
		th.top = at + results
	}
}

// call calls what stands at a place, with arguments up to the top.
func (th *Thread) call(place, results int) {
	st := th.st
	if st.goCalls++; st.goCalls >= maxGoCalls {
		th.goOverflow()
	}
	th.nested++
	if th.precall(place, results) {
		th.frame.entry = true
		th.execute()
	}
	th.nested--
	st.goCalls--
}

func (th *Thread) goOverflow() {
	if th.st.goCalls == maxGoCalls {
		th.throwText("C stack overflow")
	}
	if th.st.goCalls >= maxGoCalls+maxGoCalls/8 {
		panic(&Thrown{Value: String("error in error handling"), Line: -1})
	}
}

// Call1 calls a function with arguments and returns its first result.
func (th *Thread) Call1(f Value, args ...Value) Value {
	at := th.top
	th.Push(f)
	for _, arg := range args {
		th.Push(arg)
	}
	th.call(at, 1)
	th.top = at
	return th.stack[at]
}

// precall begins a call. A function in Go has run when it returns; for one of
// Lua it says true, and its frame is there.
func (th *Thread) precall(place, results int) bool {
	fn := th.stack[place].AsFunction()
	if fn == nil {
		fn = th.callable(place)
	}
	if fn.native != nil {
		th.callNative(fn, place, results)
		return false
	}
	p := fn.proto
	base := place + 1
	args := th.top - base
	if p.vararg {
		base = th.spread(p, place, args)
	} else {
		th.ensure(base + p.registers)
		for i := args; i < p.parameters; i++ {
			th.stack[base+i] = Nil
		}
	}
	th.push(fn, place, base, results)
	return true
}

// spread moves the named parameters of a function above all its arguments, and
// returns where they are then.
func (th *Thread) spread(p *Proto, place, args int) (base int) {
	base = place + 1 + max(args, p.parameters)
	th.ensure(base + p.registers)
	for i := args; i < p.parameters; i++ {
		th.stack[place+1+i] = Nil
	}
	for i := range p.parameters {
		th.stack[base+i] = th.stack[place+1+i]
		th.stack[place+1+i] = Nil
	}
	if p.takesArg {
		th.top = base + p.parameters
		extra := max(args-p.parameters, 0)
		t := th.st.NewTable(extra, 1)
		for i := range extra {
			t.SetInt(th.st, i+1, th.stack[place+1+p.parameters+i])
		}
		t.SetString(th.st, "n", Int(extra))
		th.stack[base+p.parameters] = t.Value()
	} else {
		th.stack[base+p.parameters] = Nil
	}
	return base
}

// yielded is what a function in Go returns to suspend the coroutine.
const yielded = -1

func (th *Thread) callNative(fn *Function, place, results int) {
	th.ensure(th.top)
	th.push(fn, place, place+1, results)
	n := fn.native(th)
	th.pop()
	if n == yielded {
		th.pending.at, th.pending.results, th.yielding = place, results, true
		return
	}
	th.finish(place, th.top-n, n, results)
}

// finish moves n results from a place to where they are wanted, and makes them
// as many as are.
func (th *Thread) finish(to, from, n, results int) {
	if results == 1 { // most calls
		if n > 0 {
			th.stack[to] = th.stack[from]
		} else {
			th.stack[to] = Nil
		}
		th.top = to + 1
		return
	}
	if results == multiple {
		results = n
	}
	copied := copy(th.stack[to:to+min(n, results)], th.stack[from:from+n])
	if copied < results {
		clear(th.stack[to+copied : to+results])
	}
	th.top = to + results
}

// Args are the arguments from n on, until the stack changes.
func (th *Thread) Args(n int) []Value {
	return th.stack[min(th.frame.base+n-1, th.top):th.top]
}

// PushAll adds values and says how many.
func (th *Thread) PushAll(values []Value) int {
	th.ensure(th.top + len(values))
	th.top += copy(th.stack[th.top:], values)
	return len(values)
}

// IsNative says whether it is a function in Go.
func (f *Function) IsNative() bool { return f.native != nil }
