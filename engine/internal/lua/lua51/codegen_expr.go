package lua51

// Expressions become code here: see codegen.go.

// setResults makes an expression with any number of results give so many.
func (g *generator) setResults(e *expression, results int) {
	switch e.kind {
	case exprCall:
		g.proto.code[e.info].setC(results + 1)
	case exprVararg:
		i := &g.proto.code[e.info]
		i.setB(results + 1)
		i.setA(g.free)
		g.reserve(1)
	}
}

func (g *generator) setOneResult(e *expression) {
	switch e.kind {
	case exprCall:
		e.kind, e.info = exprFixed, g.proto.code[e.info].a()
	case exprVararg:
		g.proto.code[e.info].setB(2)
		e.kind = exprRelocable
	}
}

// discharge makes a variable a value.
func (g *generator) discharge(e *expression) {
	switch e.kind {
	case exprLocal:
		e.kind = exprFixed
	case exprUpvalue:
		e.info = g.emitABC(opGetUpval, 0, e.info, 0)
		e.kind = exprRelocable
	case exprGlobal:
		e.info = g.emitLong(opGetGlobal, 0, e.info)
		e.kind = exprRelocable
	case exprIndexed:
		g.release(e.aux)
		g.release(e.info)
		e.info = g.emitABC(opGetTable, 0, e.info, e.aux)
		e.kind = exprRelocable
	case exprCall, exprVararg:
		g.setOneResult(e)
	}
}

func (g *generator) loadNil(from, n int) {
	if g.pc() > g.lastLabel { // no jump leads here
		if g.pc() > 0 && g.proto.code[g.pc()-1].op() == opLoadNil {
			before := &g.proto.code[g.pc()-1]
			if first, last := before.a(), before.b(); first <= from && from <= last+1 {
				before.setB(max(last, from+n-1))
				return
			}
		}
	}
	g.emitABC(opLoadNil, from, from+n-1, 0)
}

func (g *generator) dischargeTo(e *expression, register int) {
	g.discharge(e)
	switch e.kind {
	case exprNil:
		g.loadNil(register, 1)
	case exprFalse:
		g.emitABC(opLoadBool, register, 0, 0)
	case exprTrue:
		g.emitABC(opLoadBool, register, 1, 0)
	case exprConstant:
		g.emitLong(opLoadK, register, e.info)
	case exprNumber:
		g.emitLong(opLoadK, register, g.numberConstant(e.number))
	case exprRelocable:
		g.proto.code[e.info].setA(register)
	case exprFixed:
		if register != e.info {
			g.emitABC(opMove, register, e.info, 0)
		}
	default:
		return
	}
	e.kind, e.info = exprFixed, register
}

func (g *generator) dischargeAnywhere(e *expression) {
	if e.kind != exprFixed {
		g.reserve(1)
		g.dischargeTo(e, g.free-1)
	}
}

// to puts the value into a register.
func (g *generator) to(e *expression, register int) {
	g.dischargeTo(e, register)
	if e.kind == exprJump {
		g.join(&e.onTrue, e.info)
	}
	if e.hasJumps() {
		loadFalse, loadTrue := noJump, noJump
		if g.needsValue(e.onTrue) || g.needsValue(e.onFalse) {
			skip := noJump
			if e.kind != exprJump {
				skip = g.jump()
			}
			g.label()
			loadFalse = g.emitABC(opLoadBool, register, 0, 1)
			g.label()
			loadTrue = g.emitABC(opLoadBool, register, 1, 0)
			g.patchHere(skip)
		}
		end := g.label()
		g.patchLists(e.onFalse, end, register, loadFalse)
		g.patchLists(e.onTrue, end, register, loadTrue)
	}
	e.onFalse, e.onTrue = noJump, noJump
	e.kind, e.info = exprFixed, register
}

func (g *generator) toNext(e *expression) {
	g.discharge(e)
	g.releaseExpr(e)
	g.reserve(1)
	g.to(e, g.free-1)
}

func (g *generator) toAny(e *expression) int {
	g.discharge(e)
	if e.kind == exprFixed {
		if !e.hasJumps() {
			return e.info
		}
		if e.info >= g.active { // not a local
			g.to(e, e.info)
			return e.info
		}
	}
	g.toNext(e)
	return e.info
}

func (g *generator) toValue(e *expression) {
	if e.hasJumps() {
		g.toAny(e)
	} else {
		g.discharge(e)
	}
}

// toOperand makes the value a register or a constant that fits an operand.
func (g *generator) toOperand(e *expression) int {
	g.toValue(e)
	switch e.kind {
	case exprNumber, exprTrue, exprFalse, exprNil:
		if len(g.proto.constants) <= maxConstant {
			if e.kind == exprNumber {
				e.info = g.numberConstant(e.number)
			} else {
				e.info = g.otherConstant(e.kind)
			}
			e.kind = exprConstant
			return e.info | constantBit
		}
	case exprConstant:
		if e.info <= maxConstant {
			return e.info | constantBit
		}
	}
	return g.toAny(e)
}

// store assigns a value to a variable.
func (g *generator) store(variable, e *expression) {
	switch variable.kind {
	case exprLocal:
		g.releaseExpr(e)
		g.to(e, variable.info)
		return
	case exprUpvalue:
		g.emitABC(opSetUpval, g.toAny(e), variable.info, 0)
	case exprGlobal:
		g.emitLong(opSetGlobal, g.toAny(e), variable.info)
	case exprIndexed:
		g.emitABC(opSetTable, variable.info, variable.aux, g.toOperand(e))
	}
	g.releaseExpr(e)
}

func (g *generator) self(e, key *expression) {
	g.toAny(e)
	g.releaseExpr(e)
	function := g.free
	g.reserve(2)
	g.emitABC(opSelf, function, e.info, g.toOperand(key))
	g.releaseExpr(key)
	e.kind, e.info = exprFixed, function
}

func (g *generator) indexed(table, key *expression) {
	table.aux = g.toOperand(key)
	table.kind = exprIndexed
}

func (g *generator) condJump(op opcode, a, b, c int) int {
	g.emitABC(op, a, b, c)
	return g.jump()
}

func (g *generator) invert(e *expression) {
	i := g.control(e.info)
	i.setA(1 - i.a())
}

func (g *generator) jumpOn(e *expression, cond bool) int {
	if e.kind == exprRelocable {
		if i := g.proto.code[e.info]; i.op() == opNot {
			// the not is taken back: the test is the other way around
			g.proto.code = g.proto.code[:len(g.proto.code)-1]
			g.proto.lines = g.proto.lines[:len(g.proto.lines)-1]
			return g.condJump(opTest, i.b(), 0, bit(!cond))
		}
	}
	g.dischargeAnywhere(e)
	g.releaseExpr(e)
	return g.condJump(opTestSet, noRegister, e.info, bit(cond))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// goIfTrue goes on where the value is true, and jumps where it is false.
func (g *generator) goIfTrue(e *expression) {
	g.discharge(e)
	var pc int
	switch e.kind {
	case exprConstant, exprNumber, exprTrue:
		pc = noJump
	case exprJump:
		g.invert(e)
		pc = e.info
	default:
		pc = g.jumpOn(e, false)
	}
	g.join(&e.onFalse, pc)
	g.patchHere(e.onTrue)
	e.onTrue = noJump
}

func (g *generator) goIfFalse(e *expression) {
	g.discharge(e)
	var pc int
	switch e.kind {
	case exprNil, exprFalse:
		pc = noJump
	case exprJump:
		pc = e.info
	default:
		pc = g.jumpOn(e, true)
	}
	g.join(&e.onTrue, pc)
	g.patchHere(e.onFalse)
	e.onFalse = noJump
}

func (g *generator) not(e *expression) {
	g.discharge(e)
	switch e.kind {
	case exprNil, exprFalse:
		e.kind = exprTrue
	case exprConstant, exprNumber, exprTrue:
		e.kind = exprFalse
	case exprJump:
		g.invert(e)
	case exprRelocable, exprFixed:
		g.dischargeAnywhere(e)
		g.releaseExpr(e)
		e.info = g.emitABC(opNot, 0, e.info, 0)
		e.kind = exprRelocable
	}
	e.onFalse, e.onTrue = e.onTrue, e.onFalse
	g.dropValues(e.onFalse)
	g.dropValues(e.onTrue)
}

func (g *generator) arithmetic(op opcode, a, b *expression) {
	if a.isNumeral() && b.isNumeral() {
		if f, ok := foldable(op, a.number, b.number); ok {
			a.number = f
			return
		}
	}
	right := 0
	if op != opUnm && op != opLen {
		right = g.toOperand(b)
	}
	left := g.toOperand(a)
	if left > right {
		g.releaseExpr(a)
		g.releaseExpr(b)
	} else {
		g.releaseExpr(b)
		g.releaseExpr(a)
	}
	a.info = g.emitABC(op, 0, left, right)
	a.kind = exprRelocable
}

func (g *generator) compare(op opcode, cond bool, a, b *expression) {
	left, right := g.toOperand(a), g.toOperand(b)
	g.releaseExpr(b)
	g.releaseExpr(a)
	if !cond && op != opEqual { // a > b is b < a
		left, right, cond = right, left, true
	}
	a.info = g.condJump(op, bit(cond), left, right)
	a.kind = exprJump
}

func (g *generator) prefix(operator token, e *expression) {
	zero := newExpression(exprNumber, 0)
	switch operator {
	case '-':
		if !e.isNumeral() {
			g.toAny(e)
		}
		g.arithmetic(opUnm, e, &zero)
	case tokenNot:
		g.not(e)
	case '#':
		g.toAny(e)
		g.arithmetic(opLen, e, &zero)
	}
}

// infix is called between the operands of an operator.
func (g *generator) infix(operator token, e *expression) {
	switch operator {
	case tokenAnd:
		g.goIfTrue(e)
	case tokenOr:
		g.goIfFalse(e)
	case tokenConcat:
		g.toNext(e)
	case '+', '-', '*', '/', '%', '^':
		if !e.isNumeral() {
			g.toOperand(e)
		}
	default:
		g.toOperand(e)
	}
}

var arithmeticOps = map[token]opcode{'+': opAdd, '-': opSub, '*': opMul, '/': opDiv, '%': opMod, '^': opPow}

// postfix is called behind the second operand.
func (g *generator) postfix(operator token, a, b *expression) {
	switch operator {
	case tokenAnd:
		g.discharge(b)
		g.join(&b.onFalse, a.onFalse)
		*a = *b
	case tokenOr:
		g.discharge(b)
		g.join(&b.onTrue, a.onTrue)
		*a = *b
	case tokenConcat:
		g.toValue(b)
		if b.kind == exprRelocable && g.proto.code[b.info].op() == opConcat {
			g.releaseExpr(a)
			g.proto.code[b.info].setB(a.info)
			a.kind, a.info = exprRelocable, b.info
			return
		}
		g.toNext(b)
		g.arithmetic(opConcat, a, b)
	case tokenEqual:
		g.compare(opEqual, true, a, b)
	case tokenNotEqual:
		g.compare(opEqual, false, a, b)
	case '<':
		g.compare(opLess, true, a, b)
	case tokenLessEq:
		g.compare(opLessEq, true, a, b)
	case '>':
		g.compare(opLess, false, a, b)
	case tokenGreaterEq:
		g.compare(opLessEq, false, a, b)
	default:
		g.arithmetic(arithmeticOps[operator], a, b)
	}
}

// setList stores values from registers behind base into a table.
func (g *generator) setList(base, stored, values int) {
	batch := (stored-1)/fieldsPerFlush + 1
	if values == multiple {
		values = 0
	}
	if batch <= maxC {
		g.emitABC(opSetList, base, values, batch)
	} else {
		g.emitABC(opSetList, base, values, 0)
		g.emit(instruction(batch))
	}
	g.free = base + 1
}
