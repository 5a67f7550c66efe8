package lua51

import "strconv"

// Expressions, assignments and functions: see parser.go.

func itoa(n int) string { return strconv.Itoa(n) }

// adjust makes the values of a list as many as the variables they are for.
func (p *parser) adjust(variables, values int, e *expression) {
	g := p.gen
	extra := variables - values
	if e.hasMultiple() {
		extra = max(extra+1, 0)
		g.setResults(e, extra)
		if extra > 1 {
			g.reserve(extra - 1)
		}
		return
	}
	if e.kind != exprVoid {
		g.toNext(e)
	}
	if extra > 0 {
		register := g.free
		g.reserve(extra)
		g.loadNil(register, extra)
	}
}

// target is what is assigned to, and those to the left of it.
type target struct {
	before   *target
	variable expression
}

func (p *parser) assignment(t *target, variables int) {
	g := p.gen
	if k := t.variable.kind; k != exprLocal && k != exprUpvalue && k != exprGlobal && k != exprIndexed {
		p.lex.failHere("syntax error")
	}
	if p.accept(',') {
		next := target{before: t, variable: p.primary()}
		if next.variable.kind == exprLocal {
			p.keepForTargets(t, &next.variable)
		}
		g.limit(variables, maxSyntaxLevels-p.depth, "variables in assignment")
		p.assignment(&next, variables+1)
	} else {
		p.expect('=')
		values, e := p.exprList()
		if values == variables {
			g.setOneResult(&e)
			g.store(&t.variable, &e)
			return
		}
		p.adjust(variables, values, &e)
		if values > variables {
			g.free -= values - variables
		}
	}
	e := newExpression(exprFixed, g.free-1)
	g.store(&t.variable, &e)
}

// keepForTargets copies a local variable that is assigned to, if it is also the
// table or the key of another target.
func (p *parser) keepForTargets(t *target, local *expression) {
	g := p.gen
	copied, conflict := g.free, false
	for ; t != nil; t = t.before {
		if t.variable.kind != exprIndexed {
			continue
		}
		if t.variable.info == local.info {
			conflict, t.variable.info = true, copied
		}
		if t.variable.aux == local.info {
			conflict, t.variable.aux = true, copied
		}
	}
	if conflict {
		g.emitABC(opMove, copied, local.info, 0)
		g.reserve(1)
	}
}

func (p *parser) exprList() (n int, last expression) {
	last = p.expr()
	for n = 1; p.accept(','); n++ {
		p.gen.toNext(&last)
		last = p.expr()
	}
	return n, last
}

func (p *parser) expr() expression {
	e, _ := p.subexpr(0)
	return e
}

// priorities of the operators, to the left and to the right.
var priorities = map[token][2]int{
	'+': {6, 6}, '-': {6, 6}, '*': {7, 7}, '/': {7, 7}, '%': {7, 7}, '^': {10, 9}, tokenConcat: {5, 4},
	tokenNotEqual: {3, 3}, tokenEqual: {3, 3}, '<': {3, 3}, tokenLessEq: {3, 3}, '>': {3, 3}, tokenGreaterEq: {3, 3},
	tokenAnd: {2, 2}, tokenOr: {1, 1},
}

const prefixPriority = 8

// subexpr reads operands as long as operators bind more than limit, and returns
// the first operator that does not.
func (p *parser) subexpr(limit int) (e expression, operator token) {
	p.enter()
	switch operator := p.lex.kind; operator {
	case tokenNot, '-', '#':
		p.lex.next()
		e, _ = p.subexpr(prefixPriority)
		p.gen.prefix(operator, &e)
	default:
		e = p.simple()
	}
	operator = p.lex.kind
	for {
		priority, binary := priorities[operator]
		if !binary || priority[0] <= limit {
			break
		}
		p.lex.next()
		p.gen.infix(operator, &e)
		right, next := p.subexpr(priority[1])
		p.gen.postfix(operator, &e, &right)
		operator = next
	}
	p.leave()
	return e, operator
}

func (p *parser) simple() (e expression) {
	g := p.gen
	switch p.lex.kind {
	case tokenNumber:
		e = newExpression(exprNumber, 0)
		e.number = p.lex.number
	case tokenString:
		e = newExpression(exprConstant, g.textConstant(p.lex.text))
	case tokenNil:
		e = newExpression(exprNil, 0)
	case tokenTrue:
		e = newExpression(exprTrue, 0)
	case tokenFalse:
		e = newExpression(exprFalse, 0)
	case tokenDots:
		if !g.proto.vararg {
			p.lex.failHere("cannot use '...' outside a vararg function")
		}
		g.usesDots = true
		e = newExpression(exprVararg, g.emitABC(opVararg, 0, 1, 0))
	case '{':
		return p.constructor()
	case tokenFunction:
		p.lex.next()
		return p.functionBody(false, p.lex.line)
	default:
		return p.primary()
	}
	p.lex.next()
	return e
}

// primary reads a variable with what is indexed and called of it.
func (p *parser) primary() (e expression) {
	g := p.gen
	switch p.lex.kind {
	case tokenName:
		e = p.singleVariable()
	case '(':
		line := p.lex.line
		p.lex.next()
		e = p.expr()
		p.expectMatch(')', '(', line)
		g.discharge(&e)
	default:
		p.lex.failHere("unexpected symbol")
	}
	for {
		switch p.lex.kind {
		case '.':
			p.field(&e)
		case '[':
			g.toAny(&e)
			key := p.bracketed()
			g.indexed(&e, &key)
		case ':':
			p.lex.next()
			key := p.fieldName()
			g.self(&e, &key)
			p.arguments(&e)
		case '(', tokenString, '{':
			g.toNext(&e)
			p.arguments(&e)
		default:
			return e
		}
	}
}

func (p *parser) fieldName() expression {
	return newExpression(exprConstant, p.gen.textConstant(p.name()))
}

func (p *parser) field(e *expression) {
	p.gen.toAny(e)
	p.lex.next()
	key := p.fieldName()
	p.gen.indexed(e, &key)
}

func (p *parser) bracketed() expression {
	p.lex.next()
	e := p.expr()
	p.gen.toValue(&e)
	p.expect(']')
	return e
}

func (p *parser) arguments(f *expression) {
	g := p.gen
	line := p.lex.line
	args := newExpression(exprVoid, 0)
	switch p.lex.kind {
	case '(':
		if line != p.lex.lastLine {
			p.lex.failHere("ambiguous syntax (function call x new statement)")
		}
		p.lex.next()
		if p.lex.kind != ')' {
			_, args = p.exprList()
			if args.hasMultiple() {
				g.setResults(&args, multiple)
			}
		}
		p.expectMatch(')', '(', line)
	case '{':
		args = p.constructor()
	case tokenString:
		args = newExpression(exprConstant, g.textConstant(p.lex.text))
		p.lex.next()
	default:
		p.lex.failHere("function arguments expected")
	}
	base, n := f.info, multiple
	if !args.hasMultiple() {
		if args.kind != exprVoid {
			g.toNext(&args)
		}
		n = g.free - (base + 1)
	}
	*f = newExpression(exprCall, g.emitABC(opCall, base, n+1, 2))
	g.fixLine(line)
	g.free = base + 1
}

// constructorState is a table that is being built.
type constructorState struct {
	table         expression
	item          expression // the last list item that was read
	fields, items int
	waiting       int // items in registers
}

func (p *parser) constructor() expression {
	g := p.gen
	line := p.lex.line
	pc := g.emitABC(opNewTable, 0, 0, 0)
	c := constructorState{table: newExpression(exprRelocable, pc), item: newExpression(exprVoid, 0)}
	g.toNext(&c.table)
	p.expect('{')
	for p.lex.kind != '}' {
		p.flushItem(&c)
		switch {
		case p.lex.kind == '[', p.lex.kind == tokenName && p.lex.peek() == '=':
			p.recordField(&c)
		default:
			c.item = p.expr()
			c.items++
			c.waiting++
		}
		if !p.accept(',') && !p.accept(';') {
			break
		}
	}
	p.expectMatch('}', '{', line)
	p.lastItems(&c)
	g.proto.code[pc].setB(floatingByte(c.items))
	g.proto.code[pc].setC(floatingByte(c.fields))
	return c.table
}

func (p *parser) recordField(c *constructorState) {
	g := p.gen
	register := g.free
	var key expression
	if p.lex.kind == tokenName {
		key = p.fieldName()
	} else {
		key = p.bracketed()
	}
	c.fields++
	p.expect('=')
	k := g.toOperand(&key)
	value := p.expr()
	g.emitABC(opSetTable, c.table.info, k, g.toOperand(&value))
	g.free = register
}

// flushItem puts the item before into a register, and all that wait there into
// the table when they are enough.
func (p *parser) flushItem(c *constructorState) {
	if c.item.kind == exprVoid {
		return
	}
	p.gen.toNext(&c.item)
	c.item.kind = exprVoid
	if c.waiting == fieldsPerFlush {
		p.gen.setList(c.table.info, c.items, c.waiting)
		c.waiting = 0
	}
}

func (p *parser) lastItems(c *constructorState) {
	g := p.gen
	if c.waiting == 0 {
		return
	}
	if c.item.hasMultiple() {
		g.setResults(&c.item, multiple)
		g.setList(c.table.info, c.items, multiple)
		c.items--
		return
	}
	if c.item.kind != exprVoid {
		g.toNext(&c.item)
	}
	g.setList(c.table.info, c.items, c.waiting)
}

// floatingByte writes a size in 8 bits, of which 5 are an exponent.
func floatingByte(n int) int {
	exponent := 0
	for n >= 16 {
		n = (n + 1) >> 1
		exponent++
	}
	if n < 8 {
		return n
	}
	return (exponent+1)<<3 | (n - 8)
}

func sizeOfByte(b int) int {
	if exponent := b >> 3; exponent > 0 {
		return (b&7 + 8) << (exponent - 1)
	}
	return b
}

func (p *parser) functionBody(method bool, line int) expression {
	g := p.open(line)
	p.expect('(')
	if method {
		p.declare("self")
		p.activate(1)
	}
	p.parameters()
	p.expect(')')
	p.chunk()
	p.expectMatch(tokenEnd, tokenFunction, line)
	if g.usesDots {
		g.proto.takesArg = false
	}
	p.close()
	outer := p.gen
	outer.proto.protos = append(outer.proto.protos, g.proto)
	if len(outer.proto.protos) > maxLong {
		p.lex.fail("constant table overflow", "")
	}
	return newExpression(exprRelocable, outer.emitLong(opClosure, 0, len(outer.proto.protos)-1))
}

func (p *parser) parameters() {
	g := p.gen
	n := 0
	if p.lex.kind != ')' {
		for {
			if p.lex.kind == tokenDots {
				p.lex.next()
				p.declare("arg")
				n++
				g.proto.vararg = true
				break
			}
			if p.lex.kind != tokenName {
				p.lex.failHere("<name> or '...' expected")
			}
			p.declare(p.name())
			n++
			if !p.accept(',') {
				break
			}
		}
	}
	p.activate(n)
	g.proto.parameters = g.active
	if g.proto.vararg {
		g.proto.parameters--
	}
	g.reserve(g.active)
}
