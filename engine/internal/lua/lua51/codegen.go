package lua51

import (
	"fmt"
	"math"
)

// The code generator. The parser calls it while it reads, without a syntax tree
// between them: what is to become of an expression (a register, a jump, a
// constant) is decided as late as can be, and until then an expression says
// where its value could be had. Conditions are jumps whose targets are not
// known yet; those with one target form a list, in which the jump of each leads
// to the next until they are patched.

const (
	maxRegisters = 250
	maxLocals    = 200
	maxUpvalues  = 60
	noJump       = -1
	noRegister   = maxA
	multiple     = -1 // as a number of results: all there are
)

type exprKind uint8

const (
	exprVoid      exprKind = iota // none
	exprNil                       // nil
	exprTrue                      // true
	exprFalse                     // false
	exprConstant                  // info: number of the constant
	exprNumber                    // number
	exprLocal                     // info: register
	exprUpvalue                   // info: number of the upvalue
	exprGlobal                    // info: constant of the name
	exprIndexed                   // info: register of the table; aux: operand of the key
	exprJump                      // info: the jump that is taken if it is true
	exprRelocable                 // info: instruction that can have any A
	exprFixed                     // info: register
	exprCall                      // info: instruction
	exprVararg                    // info: instruction
)

// expression is the description of a value that is not yet computed.
type expression struct {
	kind      exprKind
	info, aux int
	number    float64
	onTrue    int // list of jumps taken where it is true
	onFalse   int
}

func newExpression(kind exprKind, info int) expression {
	return expression{kind: kind, info: info, onTrue: noJump, onFalse: noJump}
}

func (e *expression) hasJumps() bool { return e.onTrue != e.onFalse }

func (e *expression) isNumeral() bool { return e.kind == exprNumber && !e.hasJumps() }

func (e *expression) hasMultiple() bool { return e.kind == exprCall || e.kind == exprVararg }

// block is one level of visibility.
type block struct {
	outer     *block
	breaks    int // list of jumps out of a loop
	active    int // locals outside of it
	captured  bool
	breakable bool
}

// generator makes the code of one function.
type generator struct {
	proto     *Proto
	outer     *generator
	lex       *lexer
	parser    *parser
	block     *block
	lastLabel int // the last place that is a jump's target
	pending   int // list of jumps to the next instruction
	free      int // the first free register
	active    int // number of active locals
	locals    [maxLocals]int32
	pendingN  int // locals that are declared but not active yet
	numbers   map[uint64]int
	texts     map[string]int
	others    map[exprKind]int
	usesDots  bool // "..." is used, so there is no table "arg"
}

func (g *generator) fail(format string, args ...any) { g.lex.fail(fmt.Sprintf(format, args...), "") }

// limit fails if there are too many of something.
func (g *generator) limit(n, most int, what string) {
	if n <= most {
		return
	}
	if g.proto.line == 0 {
		g.fail("main function has more than %d %s", most, what)
	}
	g.fail("function at line %d has more than %d %s", g.proto.line, most, what)
}

func (g *generator) pc() int { return len(g.proto.code) }

func (g *generator) emit(i instruction) int { return g.emitAt(i, g.lex.lastLine) }

func (g *generator) emitAt(i instruction, line int) int {
	g.landPending()
	g.proto.code = append(g.proto.code, i)
	g.proto.lines = append(g.proto.lines, int32(line))
	return len(g.proto.code) - 1
}

func (g *generator) emitABC(op opcode, a, b, c int) int { return g.emit(makeABC(op, a, b, c)) }

func (g *generator) emitLong(op opcode, a, n int) int { return g.emit(makeLong(op, a, n)) }

func (g *generator) emitSigned(op opcode, a, n int) int { return g.emitLong(op, a, n+longBias) }

// fixLine gives the last instruction another line.
func (g *generator) fixLine(line int) { g.proto.lines[len(g.proto.lines)-1] = int32(line) }

// Constants.

func (g *generator) addConstant(v Value) int {
	if len(g.proto.constants) > maxLong {
		g.fail("constant table overflow")
	}
	g.proto.constants = append(g.proto.constants, v)
	return len(g.proto.constants) - 1
}

func (g *generator) textConstant(s string) int {
	if k, ok := g.texts[s]; ok {
		return k
	}
	k := g.addConstant(g.parser.intern(s))
	if g.texts == nil {
		g.texts = map[string]int{}
	}
	g.texts[s] = k
	return k
}

func (g *generator) numberConstant(f float64) int {
	v := Number(f)
	if f == 0 { // 0 and -0 are one constant: the first
		v = Int(0)
	}
	if k, ok := g.numbers[v.word]; ok {
		return k
	}
	k := g.addConstant(Number(f))
	if g.numbers == nil {
		g.numbers = map[uint64]int{}
	}
	g.numbers[v.word] = k
	return k
}

func (g *generator) otherConstant(kind exprKind) int {
	if k, ok := g.others[kind]; ok {
		return k
	}
	v := map[exprKind]Value{exprNil: Nil, exprTrue: True, exprFalse: False}[kind]
	if g.others == nil {
		g.others = map[exprKind]int{}
	}
	g.others[kind] = g.addConstant(v)
	return g.others[kind]
}

// Registers.

func (g *generator) checkStack(n int) {
	size := g.free + n
	if size <= g.proto.registers {
		return
	}
	if size >= maxRegisters {
		g.failHere("function or expression too complex")
	}
	g.proto.registers = size
}

func (g *generator) reserve(n int) {
	g.checkStack(n)
	g.free += n
}

func (g *generator) release(register int) {
	if !isConstant(register) && register >= g.active {
		g.free--
	}
}

func (g *generator) releaseExpr(e *expression) {
	if e.kind == exprFixed {
		g.release(e.info)
	}
}

// Jumps.

func (g *generator) jump() int {
	pending := g.pending
	g.pending = noJump
	j := g.emitSigned(opJump, 0, noJump)
	g.join(&j, pending)
	return j
}

func (g *generator) label() int {
	g.lastLabel = g.pc()
	return g.lastLabel
}

func (g *generator) destination(pc int) int {
	offset := g.proto.code[pc].signed()
	if offset == noJump {
		return noJump
	}
	return pc + 1 + offset
}

func (g *generator) fixJump(pc, to int) {
	offset := to - (pc + 1)
	if offset > longBias || offset < -longBias {
		g.failHere("control structure too long")
	}
	g.proto.code[pc].setSigned(offset)
}

func (g *generator) failHere(message string) { g.lex.failHere(message) }

// join appends a list of jumps to another.
func (g *generator) join(list *int, more int) {
	switch {
	case more == noJump:
	case *list == noJump:
		*list = more
	default:
		last := *list
		for next := g.destination(last); next != noJump; next = g.destination(last) {
			last = next
		}
		g.fixJump(last, more)
	}
}

// control is the instruction that decides about a jump.
func (g *generator) control(pc int) *instruction {
	if pc >= 1 {
		switch g.proto.code[pc-1].op() {
		case opEqual, opLess, opLessEq, opTest, opTestSet, opTForLoop:
			return &g.proto.code[pc-1]
		}
	}
	return &g.proto.code[pc]
}

// needsValue says whether a list has jumps that leave no value behind.
func (g *generator) needsValue(list int) bool {
	for ; list != noJump; list = g.destination(list) {
		if g.control(list).op() != opTestSet {
			return true
		}
	}
	return false
}

func (g *generator) patchTest(pc, register int) bool {
	i := g.control(pc)
	if i.op() != opTestSet {
		return false
	}
	if register != noRegister && register != i.b() {
		i.setA(register)
	} else {
		*i = makeABC(opTest, i.b(), 0, i.c())
	}
	return true
}

func (g *generator) dropValues(list int) {
	for ; list != noJump; list = g.destination(list) {
		g.patchTest(list, noRegister)
	}
}

func (g *generator) patchLists(list, values, register, others int) {
	for list != noJump {
		next := g.destination(list)
		if g.patchTest(list, register) {
			g.fixJump(list, values)
		} else {
			g.fixJump(list, others)
		}
		list = next
	}
}

func (g *generator) landPending() {
	g.patchLists(g.pending, g.pc(), noRegister, g.pc())
	g.pending = noJump
}

func (g *generator) patch(list, to int) {
	if to == g.pc() {
		g.patchHere(list)
		return
	}
	g.patchLists(list, to, noRegister, to)
}

func (g *generator) patchHere(list int) {
	g.label()
	g.join(&g.pending, list)
}

// foldable computes an operation on constants, unless its result is none that a
// constant can be.
func foldable(op opcode, a, b float64) (result float64, ok bool) {
	switch op {
	case opDiv, opMod:
		if b == 0 {
			return 0, false
		}
	case opLen:
		return 0, false
	}
	result = arithmetic(op, a, b)
	return result, !math.IsNaN(result)
}
