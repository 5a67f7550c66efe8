package lua51

import (
	"math"
	"strings"
)

// event is what a metatable can answer to.
type event uint8

const (
	eventIndex event = iota
	eventNewIndex
	eventCall
	eventAdd
	eventSub
	eventMul
	eventDiv
	eventMod
	eventPow
	eventUnm
	eventLen
	eventEq
	eventLt
	eventLe
	eventConcat
	eventCount
)

var eventNames = [eventCount]string{
	"__index", "__newindex", "__call", "__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__len",
	"__eq", "__lt", "__le", "__concat",
}

// maxMetaLoop bounds a chain of metatables.
const maxMetaLoop = 100

// ReadOnlyMessage is what changing a protected table fails with.
const ReadOnlyMessage = "Attempt to modify a readonly table"

// MetaTable is the metatable of a value, nil if it has none.
func (st *State) MetaTable(v Value) *Table {
	switch {
	case v.word == tableWord:
		return v.AsTable().meta
	case v.isString():
		return st.stringMeta
	}
	return nil
}

// metaOf looks for what a metatable has for an event.
func (st *State) metaOf(meta *Table, e event) Value {
	if meta == nil || meta.absent&(1<<e) != 0 {
		return Nil
	}
	if i := meta.find(st.metaNames[e]); i >= 0 && !meta.nodes[i].value.IsNil() {
		return meta.nodes[i].value
	}
	meta.absent |= 1 << e
	return Nil
}

func (st *State) metaMethod(v Value, e event) Value { return st.metaOf(st.MetaTable(v), e) }

// callable makes room for what is called in the place of a value that is no
// function.
func (th *Thread) callable(place int) *Function {
	v := th.stack[place]
	handler := th.st.metaMethod(v, eventCall).AsFunction()
	if handler == nil {
		register := -1
		if f := th.frame; f.fn != nil && f.fn.proto != nil {
			if register = place - f.base; register >= f.fn.proto.registers {
				register = -1
			}
		}
		th.typeError(v, register, "call")
	}
	th.ensure(th.top + 1)
	copy(th.stack[place+1:th.top+1], th.stack[place:th.top])
	th.top++
	th.stack[place] = handler.Value()
	return handler
}

// callMeta calls a metamethod for its first result.
func (th *Thread) callMeta(f, a, b Value) Value {
	if th.frame.fn != nil && th.frame.fn.proto != nil {
		th.top = th.frame.topmost()
	}
	at := th.top
	th.ensure(at + 3)
	th.stack[at], th.stack[at+1], th.stack[at+2] = f, a, b
	th.top = at + 3
	th.call(at, 1)
	th.top = at
	return th.stack[at]
}

// Index reads v[key], with metatables.
func (th *Thread) Index(v, key Value) Value { return th.index(v, key, -1) }

// index reads v[key]; register is where v is, for messages.
func (th *Thread) index(v, key Value, register int) Value {
	th.passText(key)
	for range maxMetaLoop {
		var handler Value
		if t := v.AsTable(); t != nil {
			if found := t.Get(key); !found.IsNil() {
				return found
			}
			handler = th.st.metaOf(t.meta, eventIndex)
			if handler.IsNil() {
				return Nil
			}
		} else if handler = th.st.metaMethod(v, eventIndex); handler.IsNil() {
			th.typeError(v, register, "index")
		}
		if handler.word == functionWord {
			return th.callMeta(handler, v, key)
		}
		v, register = handler, -1
	}
	th.throwText("loop in gettable")
	return Nil
}

// setIndex does v[key] = value, with metatables.
func (th *Thread) setIndex(v, key, value Value, register int) {
	th.passText(key)
	for range maxMetaLoop {
		var handler Value
		if t := v.AsTable(); t != nil {
			if t.readOnly {
				th.throwText(ReadOnlyMessage)
			}
			handler = th.st.metaOf(t.meta, eventNewIndex)
			if handler.IsNil() || !t.Get(key).IsNil() {
				th.RawSet(t, key, value)
				return
			}
			th.RawSet(t, key, Nil) // the key stays, as in the original
		} else if handler = th.st.metaMethod(v, eventNewIndex); handler.IsNil() {
			th.typeError(v, register, "index")
		}
		if handler.word == functionWord {
			th.callSetter(handler, v, key, value)
			return
		}
		v, register = handler, -1
	}
	th.throwText("loop in settable")
}

func (th *Thread) callSetter(f, v, key, value Value) {
	if th.frame.fn != nil && th.frame.fn.proto != nil {
		th.top = th.frame.topmost()
	}
	at := th.top
	th.ensure(at + 4)
	th.stack[at], th.stack[at+1], th.stack[at+2], th.stack[at+3] = f, v, key, value
	th.top = at + 4
	th.call(at, 0)
	th.top = at
}

// RawSet changes a table, without metatables.
func (th *Thread) RawSet(t *Table, key, value Value) {
	switch {
	case t.readOnly:
		th.throwText(ReadOnlyMessage)
	case key.IsNil():
		th.throwText("table index is nil")
	case key.isNumber() && math.IsNaN(key.float()):
		th.throwText("table index is NaN")
	}
	t.Set(th.st, key, value)
}

// arithmetic computes with numbers.
func arithmetic(op opcode, a, b float64) float64 {
	switch op {
	case opAdd, opAddK:
		return a + b
	case opSub, opSubK:
		return a - b
	case opMul, opMulK:
		return a * b
	case opDiv:
		return a / b
	case opMod:
		return modulo(a, b)
	case opPow:
		return power(a, b)
	}
	return -a
}

// modulo is what Lua 5.1 computes, with its errors of rounding.
func modulo(a, b float64) float64 {
	return a - math.Floor(a/b)*b
}

func power(a, b float64) float64 {
	if b == 2 {
		return a * a
	}
	return math.Pow(a, b)
}

// arith does an operation whose operands are not both numbers.
func (th *Thread) arith(op opcode, a, b Value, left, right int) Value {
	th.passText(a)
	th.passText(b)
	if x, ok := a.ToNumber(); ok {
		if y, ok := b.ToNumber(); ok {
			return Number(arithmetic(op, x, y))
		}
	}
	e := eventAdd + event(op-opAdd)
	handler := th.st.metaMethod(a, e)
	if handler.IsNil() {
		handler = th.st.metaMethod(b, e)
	}
	if !handler.IsNil() {
		return th.callMeta(handler, a, b)
	}
	if _, ok := a.ToNumber(); ok {
		a, left = b, right
	}
	th.typeError(a, left, "perform arithmetic on")
	return Nil
}

// passText counts what it takes to look up, or to read as a number, a text.
func (th *Thread) passText(v Value) {
	if v.isString() && len(v.text()) > bytesPerStep {
		th.Pass(min(len(v.text()), hashedBytes) / 8)
	}
}

// length is #v.
func (th *Thread) length(v Value, register int) Value {
	if t := v.AsTable(); t != nil {
		return Int(t.Len())
	}
	if v.isString() {
		return Int(len(v.text()))
	}
	handler := th.st.metaMethod(v, eventLen)
	if handler.IsNil() {
		th.typeError(v, register, "get length of")
	}
	return th.callMeta(handler, v, Nil)
}

// Equal is a == b, with metatables.
func (th *Thread) Equal(a, b Value) bool {
	if a.Equal(b) {
		return true
	}
	if a.word != tableWord || b.word != tableWord {
		return false
	}
	handler := th.sharedMeta(a, b, eventEq)
	return !handler.IsNil() && th.callMeta(handler, a, b).Truth()
}

// sharedMeta is a handler that both values have.
func (th *Thread) sharedMeta(a, b Value, e event) Value {
	x, y := th.st.MetaTable(a), th.st.MetaTable(b)
	first := th.st.metaOf(x, e)
	if first.IsNil() || x == y {
		return first
	}
	if second := th.st.metaOf(y, e); second.Equal(first) {
		return first
	}
	return Nil
}

// Less is a < b.
func (th *Thread) Less(a, b Value) bool {
	switch {
	case a.isNumber() && b.isNumber():
		return a.float() < b.float()
	case a.isString() && b.isString():
		return th.compareTexts(a.text(), b.text()) < 0
	case a.Kind() == b.Kind():
		handler := th.st.metaMethod(a, eventLt)
		if !handler.IsNil() && handler.Equal(th.st.metaMethod(b, eventLt)) {
			return th.callMeta(handler, a, b).Truth()
		}
	}
	th.compareError(a, b)
	return false
}

func (th *Thread) lessEq(a, b Value) bool {
	switch {
	case a.isNumber() && b.isNumber():
		return a.float() <= b.float()
	case a.isString() && b.isString():
		return th.compareTexts(a.text(), b.text()) <= 0
	case a.Kind() == b.Kind():
		handler := th.st.metaMethod(a, eventLe)
		if !handler.IsNil() && handler.Equal(th.st.metaMethod(b, eventLe)) {
			return th.callMeta(handler, a, b).Truth()
		}
		handler = th.st.metaMethod(a, eventLt)
		if !handler.IsNil() && handler.Equal(th.st.metaMethod(b, eventLt)) {
			return !th.callMeta(handler, b, a).Truth()
		}
	}
	th.compareError(a, b)
	return false
}

func (th *Thread) compareError(a, b Value) {
	if x, y := a.TypeName(), b.TypeName(); x != y {
		th.throwText("attempt to compare " + x + " with " + y)
	} else {
		th.throwText("attempt to compare two " + x + " values")
	}
}

// chunkBytes is how much of a long text is copied or compared between two looks
// at the meter.
const chunkBytes = 1 << 20

func (th *Thread) compareTexts(a, b string) int {
	for min(len(a), len(b)) > chunkBytes {
		if c := strings.Compare(a[:chunkBytes], b[:chunkBytes]); c != 0 {
			return c
		}
		a, b = a[chunkBytes:], b[chunkBytes:]
		th.PassBytes(chunkBytes)
	}
	th.PassBytes(min(len(a), len(b)))
	return strings.Compare(a, b)
}

// SameText compares two texts.
func (th *Thread) SameText(a, b string) bool {
	return len(a) == len(b) && th.compareTexts(a, b) == 0
}
