package lua51

import (
	"fmt"
	"strings"
)

// Errors are panics with a *Thrown; PCall ends them. The texts are those of
// Lua 5.1, and so are the names in them: what a value was called where it came
// from is read off the code that put it into its register.

// Thrown is an error on its way.
type Thrown struct {
	Value Value
	// Source and Line are where it was thrown; "" and -1 in a function in Go
	// that Lua did not call.
	Source string
	Line   int
	// Stopped is an error that ends the run, whoever might catch it.
	Stopped bool
}

func (t *Thrown) Error() string {
	text, _ := t.Value.ToText()
	return text
}

// Throw raises an error with any value. It does not return.
func (th *Thread) Throw(v Value) { th.throw(v) }

func (th *Thread) throw(v Value) {
	t := th.located(v)
	if handler := th.handler; !handler.IsNil() {
		th.top = max(th.top, th.frame.topmost())
		t.Value = th.Call1(handler, v)
	}
	panic(t)
}

// located is an error that is thrown where the thread is.
func (th *Thread) located(v Value) *Thrown {
	t := &Thrown{Value: v, Line: -1}
	f := th.frame
	if f.fn != nil && f.fn.native != nil && f.tails == 0 {
		f = f.previous
	}
	if f.fn != nil && f.fn.proto != nil {
		t.Source, t.Line = f.fn.proto.source, f.line()
	}
	return t
}

func (th *Thread) throwText(text string) { th.throw(String(th.Where(0) + text)) }

// Raise raises an error that begins with the place of the function that called
// the running one, if that is of Lua.
func (th *Thread) Raise(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = text[:min(len(text), chunkBytes)] // more would hold up others
		}
	}
	th.throw(String(th.Where(1) + fmt.Sprintf(format, args...)))
}

// PCall is Call for what may fail. If it does, the stack is as before, without
// the function and its arguments.
func (th *Thread) PCall(n, results int) (thrown *Thrown) {
	return th.XPCall(n, results, Nil)
}

// XPCall is PCall with a handler that gets the value of an error where it
// happens, and returns another in its place.
func (th *Thread) XPCall(n, results int, handler Value) (thrown *Thrown) {
	st, at := th.st, th.top-n-1
	frame, depth, nested, before := th.frame, th.depth, th.nested, th.handler
	goCalls, building := st.goCalls, st.meter.building
	th.handler = handler
	thrown = th.protect(func() { th.Call(n, results) })
	th.handler = before
	if thrown == nil {
		return nil
	}
	th.frame, th.depth, th.nested = frame, depth, nested
	st.goCalls, st.meter.building, st.current = goCalls, building, th
	th.closeUpvalues(at)
	th.top = at
	return thrown
}

func (th *Thread) protect(try func()) (thrown *Thrown) {
	defer func() {
		if fault := recover(); fault != nil {
			t, ok := fault.(*Thrown)
			if !ok || t.Stopped {
				panic(fault)
			}
			thrown = t
		}
	}()
	try()
	return nil
}

// line is where a function of Lua is.
func (f *frame) line() int { return int(f.fn.proto.lines[max(f.pc-1, 0)]) }

// topmost is where the registers of a frame end.
func (f *frame) topmost() int {
	if f.fn == nil || f.fn.proto == nil {
		return 0
	}
	return f.base + f.fn.proto.registers
}

// level gives the frame at a level: 0 is the running function, 1 who called it.
// Calls that ended in another have levels without frames.
func (th *Thread) level(level int) *frame {
	for f := th.frame; f.fn != nil; f = f.previous {
		if level == 0 {
			return f
		}
		level--
		if f.fn.proto != nil {
			if level < f.tails {
				return nil
			}
			level -= f.tails
		}
	}
	return nil
}

// Where is the place of the function at a level as messages begin with it, ""
// if it is not one of Lua.
func (th *Thread) Where(level int) string {
	f := th.level(level)
	if f == nil || f.fn.proto == nil {
		return ""
	}
	return ChunkID(f.fn.proto.source, maxErrorChunk) + ":" + itoa(f.line()) + ": "
}

// ChunkID shows the name of a chunk, in less than size bytes.
func ChunkID(source string, size int) string {
	const prefix, suffix, dots = `[string "`, `"]`, "..."
	if source == "" {
		return prefix + suffix
	}
	switch source[0] {
	case '=':
		return source[1:min(len(source), size)]
	case '@':
		if room := size - len(" '...' ") - 1; len(source)-1 > room {
			return dots + source[len(source)-room:]
		}
		return source[1:]
	}
	line := source
	if end := strings.IndexAny(source, "\n\r"); end >= 0 {
		line = source[:end]
	}
	room := size - len(" [string \"...\"] ") - 1
	if len(line) > room {
		line = line[:room]
	}
	if len(line) < len(source) {
		line += dots
	}
	return prefix + line + suffix
}

// Names of values.

// nameOf says what the value in a register of the running function is called:
// "local 'x'", for example. It is "" if there is no name.
func (th *Thread) nameOf(register int) string {
	f := th.frame
	if register < 0 || register >= constantBit || f.fn.proto == nil {
		return ""
	}
	kind, name := f.fn.proto.nameAt(f.pc-1, register)
	if kind == "" {
		return ""
	}
	return kind + " '" + name + "'"
}

func (th *Thread) typeError(v Value, register int, operation string) {
	if name := th.nameOf(register); name != "" {
		th.throwText("attempt to " + operation + " " + name + " (a " + v.TypeName() + " value)")
	}
	th.throwText("attempt to " + operation + " a " + v.TypeName() + " value")
}

func (p *Proto) localName(register, pc int) string {
	for _, v := range p.variables {
		if int(v.start) > pc {
			break
		}
		if pc < int(v.end) {
			if register == 0 {
				return v.name
			}
			register--
		}
	}
	return ""
}

func (p *Proto) constantName(operand int) string {
	if isConstant(operand) {
		if text, ok := p.constants[operand&^constantBit].AsString(); ok {
			name, _, _ := strings.Cut(text, "\x00")
			return name
		}
	}
	return "?"
}

// nameAt is the name of what is in a register before an instruction.
func (p *Proto) nameAt(pc, register int) (kind, name string) {
	if name := p.localName(register, pc); name != "" {
		return "local", name
	}
	switch i := p.setter(pc, register); i.op().generic() {
	case opGetGlobal:
		text, _ := p.constants[i.long()].AsString()
		return "global", text
	case opMove:
		if i.b() < i.a() {
			return p.nameAt(pc, i.b())
		}
	case opGetTable:
		return "field", p.constantName(i.c())
	case opGetUpval:
		return "upvalue", p.upvalueNames[i.b()]
	case opSelf:
		return "method", p.constantName(i.c())
	}
	return "", ""
}

// setter is the last instruction that has changed a register, as far as that
// can be said without running the code.
func (p *Proto) setter(last, register int) instruction {
	found := len(p.code) - 1 // the final return, which has no name
	for pc := 0; pc < last; pc++ {
		i := p.code[pc]
		a := i.a()
		switch op := i.op().generic(); op {
		case opJump, opForLoop, opForPrep:
			if op != opJump && register == a {
				found = pc
			}
			if to := pc + 1 + i.signed(); pc < to && to <= last {
				pc = to - 1
			}
		case opLoadNil:
			if a <= register && register <= i.b() {
				found = pc
			}
		case opTForLoop:
			if register >= a+2 {
				found = pc
			}
		case opCall, opTailCall:
			if register >= a {
				found = pc
			}
		case opSelf:
			if register == a || register == a+1 {
				found = pc
			}
		case opVararg:
			if a <= register && (i.b() == 0 || register < a+i.b()-1) {
				found = pc
			}
		case opSetList:
			if i.c() == 0 {
				pc++
			}
		case opSetGlobal, opSetUpval, opSetTable, opReturn, opClose, opEqual, opLess, opLessEq:
		default:
			if register == a {
				found = pc
			}
		}
	}
	return p.code[found]
}

// callerName is what a frame's function is called by who called it.
func (f *frame) callerName() (kind, name string) {
	by := f.previous
	if f.fn.proto != nil && f.tails > 0 || by.fn == nil || by.fn.proto == nil || f.entry {
		return "", ""
	}
	i := by.fn.proto.code[by.pc-1]
	switch i.op() {
	case opCall, opTailCall, opTForLoop:
		return by.fn.proto.nameAt(by.pc-1, i.a())
	}
	return "", ""
}

// ArgError raises "bad argument #n to 'function' (what)".
func (th *Thread) ArgError(n int, what string) {
	kind, name := th.frame.callerName()
	if kind == "method" {
		if n--; n == 0 {
			th.Raise("calling '%s' on bad self (%s)", name, what)
		}
	}
	if name == "" {
		name = "?"
	}
	th.Raise("bad argument #%d to '%s' (%s)", n, name, what)
}

// TypeError raises an error of an argument of the wrong type.
func (th *Thread) TypeError(n int, want string) {
	got := "no value"
	if n <= th.Top() {
		got = th.Arg(n).TypeName()
	}
	th.ArgError(n, want+" expected, got "+got)
}
