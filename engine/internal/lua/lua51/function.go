package lua51

import "unsafe"

// Proto is the code of a function, as it was compiled. It belongs to no state,
// and any number of functions share it.
type Proto struct {
	source       string // the name of the chunk, as given
	code         []instruction
	constants    []Value
	hints        []uint32 // for each instruction, where its field was found last
	protos       []*Proto
	lines        []int32 // of the instructions
	line         int     // where the definition begins; 0 is a chunk
	variables    []variable
	upvalueNames []string
	captures     []capture // where closures find their upvalues
	parameters   int
	registers    int
	vararg       bool
	takesArg     bool // the table "arg", of Lua 5.0
}

// variable is a local variable, and where it can be seen.
type variable struct {
	name       string
	start, end int32
}

// capture is where a function finds an upvalue when it is made: a register of
// the function around it, or an upvalue of that.
type capture struct {
	fromStack bool
	place     uint8
}

// Upvalue is a variable that functions share.
type Upvalue struct {
	at     *Value // on the stack, or own
	own    Value
	marked uint32
}

// GoFunction is a function in Go. Its arguments are l.Arg(1) to l.Arg(l.Top()),
// its results the last ones pushed; it returns how many.
type GoFunction func(l *Thread) int

// Function is a function: a Proto with upvalues, or one in Go.
type Function struct {
	proto    *Proto
	upvalues []*Upvalue
	native   GoFunction
	held     []Value // by native, to be weighed
	marked   uint32
}

// NewFunction makes a function in Go. What it holds besides is named, so that
// its memory counts.
func (st *State) NewFunction(native GoFunction, held ...Value) *Function {
	st.charge(functionBytes + int64(len(held))*valueBytes)
	f := st.pool.function()
	f.native, f.held = native, append(f.held, held...)
	return f
}

// Load makes a function of a chunk.
func (st *State) Load(p *Proto) *Function {
	st.charge(functionBytes)
	return &Function{proto: p}
}

const (
	functionBytes = int64(unsafe.Sizeof(Function{}))
	upvalueBytes  = int64(unsafe.Sizeof(Upvalue{})) + 8
)
