package lua51

// An instruction has its operation in the lowest 6 bits, register A in the next
// 8, and then C and B of 9 bits each, or one number of 18 bits that may have a
// sign. An operand of 9 bits with its highest bit set is a constant, unless the
// operation says which it is. The code generator writes the operations up to
// opVararg; specialize then exchanges them, one for one, for those that know
// the kinds of their operands.
type instruction uint32

type opcode uint8

const (
	opMove      opcode = iota // A = B
	opLoadK                   // A = constant
	opLoadBool                // A = B ~= 0; skip the next if C ~= 0
	opLoadNil                 // A to B = nil
	opGetUpval                // A = upvalue B
	opGetGlobal               // A = global named by constant
	opGetTable                // A = B[C]
	opSetGlobal               // global named by constant = A
	opSetUpval                // upvalue B = A
	opSetTable                // A[B] = C
	opNewTable                // A = {}, with room for B in the list and C in the hash
	opSelf                    // A+1 = B; A = B[C]
	opAdd                     // A = B + C
	opSub
	opMul
	opDiv
	opMod
	opPow
	opUnm     // A = -B
	opNot     // A = not B
	opLen     // A = #B
	opConcat  // A = B .. ... .. C
	opJump    // pc += signed
	opEqual   // if (B == C) ~= A then skip the next
	opLess    // if (B < C) ~= A then skip the next
	opLessEq  // if (B <= C) ~= A then skip the next
	opTest    // if A's truth ~= C then skip the next
	opTestSet // if B's truth == C then A = B else skip the next
	opCall    // A, ... = A(A+1, ...): B-1 arguments, C-1 results; 0 is up to the top
	opTailCall
	opReturn // return A, ...: B-1 values; 0 is up to the top
	opForLoop
	opForPrep
	opTForLoop
	opSetList // A[(C-1)*50 + i] = A+i for i up to B; C = 0: in the next word
	opClose   // close all variables from A on
	opClosure // A = function number
	opVararg  // A, ... = ..., B-1 of them

	// Those of specialize.
	opGetField // opGetTable with C a constant text
	opSelfK    // opSelf with C a constant text
	opSetField // opSetTable with B a constant text
	opAddK     // with C a constant number
	opSubK
	opMulK
	opEqualK // with C a constant
	opGetIndex
	opSetIndex // opGetTable and opSetTable with registers only
)

const (
	maxA        = 1<<8 - 1
	maxB        = 1<<9 - 1
	maxC        = 1<<9 - 1
	maxLong     = 1<<18 - 1
	longBias    = maxLong >> 1
	constantBit = 1 << 8
	// maxConstant is the highest number that an operand of 9 bits can name.
	maxConstant = constantBit - 1
	// fieldsPerFlush is how many values one opSetList takes.
	fieldsPerFlush = 50
)

func makeABC(op opcode, a, b, c int) instruction {
	return instruction(op) | instruction(a)<<6 | instruction(c)<<14 | instruction(b)<<23
}

func makeLong(op opcode, a, n int) instruction {
	return instruction(op) | instruction(a)<<6 | instruction(n)<<14
}

func (i instruction) op() opcode  { return opcode(i & 0x3f) }
func (i instruction) a() int      { return int(i >> 6 & 0xff) }
func (i instruction) b() int      { return int(i >> 23) }
func (i instruction) c() int      { return int(i >> 14 & 0x1ff) }
func (i instruction) long() int   { return int(i >> 14) }
func (i instruction) signed() int { return int(i>>14) - longBias }

func (i instruction) withOp(op opcode) instruction { return i&^0x3f | instruction(op) }

func (i *instruction) setA(a int)      { *i = *i&^(0xff<<6) | instruction(a)<<6 }
func (i *instruction) setB(b int)      { *i = *i&^(0x1ff<<23) | instruction(b)<<23 }
func (i *instruction) setC(c int)      { *i = *i&^(0x1ff<<14) | instruction(c)<<14 }
func (i *instruction) setSigned(n int) { *i = *i&(1<<14-1) | instruction(n+longBias)<<14 }

func isConstant(operand int) bool { return operand&constantBit != 0 }

// specialize exchanges operations of a finished function for faster ones.
func (p *Proto) specialize() {
	isText := func(operand int) bool {
		return isConstant(operand) && p.constants[operand&^constantBit].isString()
	}
	isNumber := func(operand int) bool {
		return isConstant(operand) && p.constants[operand&^constantBit].isNumber()
	}
	for pc := 0; pc < len(p.code); pc++ {
		i := p.code[pc]
		op := i.op()
		switch {
		case op == opGetTable && isText(i.c()):
			op = opGetField
		case op == opGetTable && !isConstant(i.c()):
			op = opGetIndex
		case op == opSelf && isText(i.c()):
			op = opSelfK
		case op == opSetTable && isText(i.b()):
			op = opSetField
		case op == opSetTable && !isConstant(i.b()) && !isConstant(i.c()):
			op = opSetIndex
		case op == opAdd && !isConstant(i.b()) && isNumber(i.c()):
			op = opAddK
		case op == opSub && !isConstant(i.b()) && isNumber(i.c()):
			op = opSubK
		case op == opMul && !isConstant(i.b()) && isNumber(i.c()):
			op = opMulK
		case op == opEqual && !isConstant(i.b()) && isConstant(i.c()):
			op = opEqualK
		}
		p.code[pc] = i.withOp(op)
		if op == opSetList && i.c() == 0 {
			pc++ // a number, and no instruction
		}
	}
}

// generic is the operation that specialize has exchanged.
func (op opcode) generic() opcode {
	switch op {
	case opGetField, opGetIndex:
		return opGetTable
	case opSelfK:
		return opSelf
	case opSetField, opSetIndex:
		return opSetTable
	case opAddK:
		return opAdd
	case opSubK:
		return opSub
	case opMulK:
		return opMul
	case opEqualK:
		return opEqual
	}
	return op
}
