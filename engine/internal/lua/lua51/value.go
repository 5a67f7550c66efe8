package lua51

import (
	"math"
	"unsafe"
)

// Value is any value of Lua, in two words and without a pointer to look through
// for numbers. The zero Value is nil.
//
// word tells what it is. A number is its bits of IEEE 754, moved up by
// numberBase; all not-a-numbers are one of two, so the sum does not overflow.
// What is below numberBase has its kind in the bits from 48 upwards: nil,
// booleans (in the lowest bit), texts (their length below). So one comparison
// tells a number, and another one each other kind. ref points to the bytes of a
// text or to an object, and is nil otherwise.
type Value struct {
	ref  unsafe.Pointer
	word uint64
}

const (
	kindShift  = 48
	numberBase = 7 << kindShift

	nilWord      = 0
	falseWord    = 1 << kindShift
	trueWord     = falseWord | 1
	stringWord   = 2 << kindShift
	tableWord    = 3 << kindShift
	functionWord = 4 << kindShift
	threadWord   = 5 << kindShift
	userWord     = 6 << kindShift
)

// Kind is the type of a value, as scripts name it.
type Kind uint8

// The kinds of values.
const (
	KindNil Kind = iota
	KindBool
	KindString
	KindTable
	KindFunction
	KindThread
	KindUser
	KindNumber
)

var kindNames = [...]string{"nil", "boolean", "string", "table", "function", "thread", "userdata", "number"}

func (k Kind) String() string { return kindNames[k] }

// The constants among the values.
var (
	Nil   = Value{}
	False = Value{word: falseWord}
	True  = Value{word: trueWord}
	// Null is a value of type userdata that is nothing else.
	Null = Value{word: userWord}
)

// emptyText is what the reference of an empty text points to.
var emptyText = [1]byte{}

// Bool is a boolean.
func Bool(b bool) Value {
	if b {
		return True
	}
	return False
}

// Int is a whole number.
func Int(n int) Value { return number(float64(n)) }

// Number is a number. It keeps of a not-a-number its sign only.
func Number(f float64) Value {
	if f != f {
		return Value{word: math.Float64bits(f)&(1<<63) + 0x7ff8<<48 + numberBase}
	}
	return number(f)
}

// number is Number for what a computer has computed of numbers: its
// not-a-numbers are those two.
func number(f float64) Value { return Value{word: math.Float64bits(f) + numberBase} }

// String is a text. It is not copied.
func String(s string) Value {
	if s == "" {
		return Value{ref: unsafe.Pointer(&emptyText), word: stringWord}
	}
	return Value{ref: unsafe.Pointer(unsafe.StringData(s)), word: stringWord + uint64(len(s))}
}

// Value is the table as a value; nil if there is none.
func (t *Table) Value() Value {
	if t == nil {
		return Nil
	}
	return Value{ref: unsafe.Pointer(t), word: tableWord}
}

// Value is the function as a value; nil if there is none.
func (f *Function) Value() Value {
	if f == nil {
		return Nil
	}
	return Value{ref: unsafe.Pointer(f), word: functionWord}
}

// Value is the coroutine as a value.
func (th *Thread) Value() Value { return Value{ref: unsafe.Pointer(th), word: threadWord} }

// Kind is the type of the value.
func (v Value) Kind() Kind {
	if v.word >= numberBase {
		return KindNumber
	}
	return Kind(v.word >> kindShift)
}

// TypeName is the name that scripts know the type by.
func (v Value) TypeName() string { return v.Kind().String() }

// IsNil says whether it is nil.
func (v Value) IsNil() bool { return v.word == nilWord }

// Truth is false for nil and false.
func (v Value) Truth() bool { return v.word > falseWord }

func (v Value) isNumber() bool { return v.word >= numberBase }

func (v Value) isString() bool { return v.word>>kindShift == stringWord>>kindShift }

func (v Value) float() float64 { return math.Float64frombits(v.word - numberBase) }

func (v Value) text() string {
	return unsafe.String((*byte)(v.ref), int(v.word&(1<<kindShift-1)))
}

// AsNumber returns a number. Texts are none.
func (v Value) AsNumber() (f float64, ok bool) {
	if !v.isNumber() {
		return 0, false
	}
	return v.float(), true
}

// AsString returns a text. Numbers are none.
func (v Value) AsString() (s string, ok bool) {
	if !v.isString() {
		return "", false
	}
	return v.text(), true
}

// AsTable returns a table, nil for anything else.
func (v Value) AsTable() *Table {
	if v.word != tableWord {
		return nil
	}
	return (*Table)(v.ref)
}

// AsFunction returns a function, nil for anything else.
func (v Value) AsFunction() *Function {
	if v.word != functionWord {
		return nil
	}
	return (*Function)(v.ref)
}

// AsThread returns a coroutine, nil for anything else.
func (v Value) AsThread() *Thread {
	if v.word != threadWord {
		return nil
	}
	return (*Thread)(v.ref)
}

// Address is where an object is, 0 for a value that is none.
func (v Value) Address() uintptr { return uintptr(v.ref) }

// ToNumber returns numbers, and texts that are some.
func (v Value) ToNumber() (f float64, ok bool) {
	if v.isNumber() {
		return v.float(), true
	}
	if v.isString() {
		return ParseNumber(v.text())
	}
	return 0, false
}

// ToText returns texts, and numbers as they are written.
func (v Value) ToText() (s string, ok bool) {
	if v.isString() {
		return v.text(), true
	}
	if v.isNumber() {
		return FormatNumber(v.float()), true
	}
	return "", false
}

// Equal compares as rawequal does.
func (v Value) Equal(w Value) bool {
	if v.word != w.word {
		return v.word >= numberBase && w.word >= numberBase && v.float() == w.float()
	}
	switch {
	case v.ref == w.ref:
		return v.word < numberBase || v.float() == w.float() // not-a-number equals nothing
	case v.isString():
		return v.text() == w.text()
	}
	return false
}
