package lua51

// maxSyntaxLevels bounds what is nested in a source.
const maxSyntaxLevels = 200

// parser reads a source by recursive descent, one token ahead.
type parser struct {
	lex    lexer
	gen    *generator
	source string
	names  map[string]string
	depth  int
}

// Compile compiles a source. Messages and functions name it by chunk: "@name"
// and "=name" are shown as name, anything else as a text. A name or text of
// known is taken from there, so that look-ups of it are fast. If there is a
// function pass, it is told now and then how many steps were made. The error is
// a SyntaxError.
func Compile(source, chunk string, known map[string]string, pass func(steps int)) (proto *Proto, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			syntax, ok := fault.(SyntaxError)
			if !ok {
				panic(fault)
			}
			proto, err = nil, syntax
		}
	}()
	p := &parser{source: chunk, names: known}
	p.lex = lexer{source: source, chunk: ChunkID(chunk, maxSyntaxChunk), line: 1, lastLine: 1, pass: pass}
	g := p.open(0)
	g.proto.vararg = true
	p.lex.next()
	p.chunk()
	p.check(tokenEOF)
	p.close()
	return g.proto, nil
}

// intern gives a text as a value; all equal ones of a chunk are one.
func (p *parser) intern(s string) Value {
	if known, ok := p.names[s]; ok {
		return String(known)
	}
	return String(s)
}

// open begins a function.
func (p *parser) open(line int) *generator {
	g := &generator{
		proto: &Proto{source: p.source, line: line, registers: 2},
		outer: p.gen, lex: &p.lex, parser: p, lastLabel: -1, pending: noJump,
	}
	p.gen = g
	return g
}

// close ends it.
func (p *parser) close() {
	g := p.gen
	p.removeLocals(0)
	g.emitABC(opReturn, 0, 1, 0)
	g.proto.specialize()
	g.proto.hints = make([]uint32, len(g.proto.code))
	p.gen = g.outer
}

func (p *parser) enter() {
	p.depth++
	if p.depth > maxSyntaxLevels {
		p.lex.fail("chunk has too many syntax levels", "")
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) check(kind token) {
	if p.lex.kind != kind {
		p.failExpected(kind)
	}
}

func (p *parser) failExpected(kind token) { p.lex.failHere("'" + kind.String() + "' expected") }

func (p *parser) accept(kind token) bool {
	if p.lex.kind != kind {
		return false
	}
	p.lex.next()
	return true
}

func (p *parser) expect(kind token) {
	p.check(kind)
	p.lex.next()
}

// expectMatch expects what closes something that was opened at a line.
func (p *parser) expectMatch(kind, opening token, line int) {
	if p.accept(kind) {
		return
	}
	if line == p.lex.line {
		p.failExpected(kind)
	}
	p.lex.failHere("'" + kind.String() + "' expected (to close '" + opening.String() + "' at line " + itoa(line) + ")")
}

func (p *parser) name() string {
	p.check(tokenName)
	name := p.lex.text
	p.lex.next()
	return name
}

// Variables.

// declare makes a local variable that activate makes visible.
func (p *parser) declare(name string) {
	g := p.gen
	g.limit(g.active+g.pendingN+1, maxLocals, "local variables")
	g.locals[g.active+g.pendingN] = int32(len(g.proto.variables))
	g.proto.variables = append(g.proto.variables, variable{name: name})
	g.pendingN++
}

func (p *parser) activate(n int) {
	g := p.gen
	for range n {
		g.proto.variables[g.locals[g.active]].start = int32(g.pc())
		g.active++
		g.pendingN--
	}
}

func (p *parser) removeLocals(to int) {
	g := p.gen
	for g.active > to {
		g.active--
		g.proto.variables[g.locals[g.active]].end = int32(g.pc())
	}
}

func (g *generator) findLocal(name string) int {
	for i := g.active - 1; i >= 0; i-- {
		if g.proto.variables[g.locals[i]].name == name {
			return i
		}
	}
	return -1
}

// variable finds what a name stands for.
func (g *generator) variable(name string, here bool) expression {
	if g == nil {
		return newExpression(exprGlobal, 0)
	}
	if i := g.findLocal(name); i >= 0 {
		if !here {
			g.markCaptured(i)
		}
		if name == "arg" && g.outer != nil && g.proto.vararg && i == g.proto.parameters {
			g.proto.takesArg = true
		}
		return newExpression(exprLocal, i)
	}
	e := g.outer.variable(name, false)
	if e.kind == exprGlobal {
		return e
	}
	e.info = g.upvalue(name, &e)
	e.kind = exprUpvalue
	return e
}

func (g *generator) markCaptured(level int) {
	b := g.block
	for b != nil && b.active > level {
		b = b.outer
	}
	if b != nil {
		b.captured = true
	}
}

func (g *generator) upvalue(name string, e *expression) int {
	c := capture{fromStack: e.kind == exprLocal, place: uint8(e.info)}
	for i := range g.proto.captures {
		if g.proto.captures[i] == c {
			return i
		}
	}
	g.limit(len(g.proto.captures)+1, maxUpvalues, "upvalues")
	g.proto.captures = append(g.proto.captures, c)
	g.proto.upvalueNames = append(g.proto.upvalueNames, name)
	return len(g.proto.captures) - 1
}

func (p *parser) singleVariable() expression {
	name := p.name()
	e := p.gen.variable(name, true)
	if e.kind == exprGlobal {
		e.info = p.gen.textConstant(name)
	}
	return e
}

// Blocks.

func (p *parser) enterBlock(b *block, breakable bool) {
	*b = block{outer: p.gen.block, breaks: noJump, active: p.gen.active, breakable: breakable}
	p.gen.block = b
}

func (p *parser) leaveBlock() {
	g := p.gen
	b := g.block
	g.block = b.outer
	p.removeLocals(b.active)
	if b.captured {
		g.emitABC(opClose, b.active, 0, 0)
	}
	g.free = g.active
	g.patchHere(b.breaks)
}

func (p *parser) blockEnds() bool {
	switch p.lex.kind {
	case tokenElse, tokenElseif, tokenEnd, tokenEOF, tokenUntil:
		return true
	}
	return false
}

func (p *parser) chunk() {
	p.enter()
	for last := false; !last && !p.blockEnds(); {
		last = p.statement()
		p.accept(';')
		p.gen.free = p.gen.active
	}
	p.leave()
}

func (p *parser) blockBody() {
	var b block
	p.enterBlock(&b, false)
	p.chunk()
	p.leaveBlock()
}

// statement reads one and says whether it must be the last of its block.
func (p *parser) statement() (last bool) {
	line := p.lex.line
	switch p.lex.kind {
	case tokenIf:
		p.ifStatement(line)
	case tokenWhile:
		p.whileStatement(line)
	case tokenDo:
		p.lex.next()
		p.blockBody()
		p.expectMatch(tokenEnd, tokenDo, line)
	case tokenFor:
		p.forStatement(line)
	case tokenRepeat:
		p.repeatStatement(line)
	case tokenFunction:
		p.functionStatement(line)
	case tokenLocal:
		p.lex.next()
		if p.accept(tokenFunction) {
			p.localFunction()
		} else {
			p.localStatement()
		}
	case tokenReturn:
		p.returnStatement()
		return true
	case tokenBreak:
		p.lex.next()
		p.breakStatement()
		return true
	default:
		p.exprStatement()
	}
	return false
}

func (p *parser) condition() (exit int) {
	e := p.expr()
	if e.kind == exprNil {
		e.kind = exprFalse
	}
	p.gen.goIfTrue(&e)
	return e.onFalse
}

func (p *parser) ifStatement(line int) {
	g := p.gen
	escape := noJump
	test := p.testThenBlock()
	for p.lex.kind == tokenElseif {
		g.join(&escape, g.jump())
		g.patchHere(test)
		test = p.testThenBlock()
	}
	if p.lex.kind == tokenElse {
		g.join(&escape, g.jump())
		g.patchHere(test)
		p.lex.next()
		p.blockBody()
	} else {
		g.join(&escape, test)
	}
	g.patchHere(escape)
	p.expectMatch(tokenEnd, tokenIf, line)
}

func (p *parser) testThenBlock() (exit int) {
	p.lex.next()
	exit = p.condition()
	p.expect(tokenThen)
	p.blockBody()
	return exit
}

func (p *parser) whileStatement(line int) {
	g := p.gen
	p.lex.next()
	start := g.label()
	exit := p.condition()
	var b block
	p.enterBlock(&b, true)
	p.expect(tokenDo)
	p.blockBody()
	g.patch(g.jump(), start)
	p.expectMatch(tokenEnd, tokenWhile, line)
	p.leaveBlock()
	g.patchHere(exit)
}

func (p *parser) repeatStatement(line int) {
	g := p.gen
	start := g.label()
	var loop, scope block
	p.enterBlock(&loop, true)
	p.enterBlock(&scope, false)
	p.lex.next()
	p.chunk()
	p.expectMatch(tokenUntil, tokenRepeat, line)
	exit := p.condition()
	if !scope.captured {
		p.leaveBlock()
		g.patch(exit, start)
	} else {
		p.breakStatement() // where the condition holds
		g.patchHere(exit)
		p.leaveBlock()
		g.patch(g.jump(), start)
	}
	p.leaveBlock()
}

func (p *parser) breakStatement() {
	g := p.gen
	captured := false
	b := g.block
	for b != nil && !b.breakable {
		captured = captured || b.captured
		b = b.outer
	}
	if b == nil {
		p.lex.failHere("no loop to break")
		return
	}
	if captured {
		g.emitABC(opClose, b.active, 0, 0)
	}
	g.join(&b.breaks, g.jump())
}

func (p *parser) forStatement(line int) {
	var b block
	p.enterBlock(&b, true)
	p.lex.next()
	first := p.name()
	switch p.lex.kind {
	case '=':
		p.numericFor(first, line)
	case ',', tokenIn:
		p.genericFor(first)
	default:
		p.lex.failHere("'=' or 'in' expected")
	}
	p.expectMatch(tokenEnd, tokenFor, line)
	p.leaveBlock()
}

func (p *parser) numericFor(name string, line int) {
	g := p.gen
	base := g.free
	p.declare("(for index)")
	p.declare("(for limit)")
	p.declare("(for step)")
	p.declare(name)
	p.expect('=')
	p.exprToNext()
	p.expect(',')
	p.exprToNext()
	if p.accept(',') {
		p.exprToNext()
	} else {
		g.emitLong(opLoadK, g.free, g.numberConstant(1))
		g.reserve(1)
	}
	p.forBody(base, line, 1, true)
}

func (p *parser) exprToNext() {
	e := p.expr()
	p.gen.toNext(&e)
}

func (p *parser) genericFor(first string) {
	g := p.gen
	base := g.free
	p.declare("(for generator)")
	p.declare("(for state)")
	p.declare("(for control)")
	p.declare(first)
	n := 1
	for p.accept(',') {
		p.declare(p.name())
		n++
	}
	p.expect(tokenIn)
	line := p.lex.line
	count, e := p.exprList()
	p.adjust(3, count, &e)
	g.checkStack(3)
	p.forBody(base, line, n, false)
}

func (p *parser) forBody(base, line, n int, numeric bool) {
	g := p.gen
	p.activate(3)
	p.expect(tokenDo)
	prep := 0
	if numeric {
		prep = g.emitSigned(opForPrep, base, noJump)
	} else {
		prep = g.jump()
	}
	var b block
	p.enterBlock(&b, false)
	p.activate(n)
	g.reserve(n)
	p.chunk()
	p.leaveBlock()
	g.patchHere(prep)
	var end int
	if numeric {
		end = g.emitSigned(opForLoop, base, noJump)
	} else {
		end = g.emitABC(opTForLoop, base, 0, n)
	}
	g.fixLine(line)
	if !numeric {
		end = g.jump()
	}
	g.patch(end, prep+1)
}

func (p *parser) localFunction() {
	g := p.gen
	p.declare(p.name())
	variable := newExpression(exprLocal, g.free)
	g.reserve(1)
	p.activate(1)
	body := p.functionBody(false, p.lex.line)
	g.store(&variable, &body)
	g.proto.variables[g.locals[g.active-1]].start = int32(g.pc())
}

func (p *parser) localStatement() {
	n := 0
	for {
		p.declare(p.name())
		n++
		if !p.accept(',') {
			break
		}
	}
	e, count := newExpression(exprVoid, 0), 0
	if p.accept('=') {
		count, e = p.exprList()
	}
	p.adjust(n, count, &e)
	p.activate(n)
}

func (p *parser) functionStatement(line int) {
	p.lex.next()
	target := p.singleVariable()
	method := false
	for p.lex.kind == '.' || p.lex.kind == ':' {
		method = p.lex.kind == ':'
		p.field(&target)
		if method {
			break
		}
	}
	body := p.functionBody(method, line)
	p.gen.store(&target, &body)
	p.gen.fixLine(line)
}

func (p *parser) returnStatement() {
	g := p.gen
	p.lex.next()
	if p.blockEnds() || p.lex.kind == ';' {
		g.emitABC(opReturn, 0, 1, 0)
		return
	}
	count, e := p.exprList()
	first := g.active
	switch {
	case e.hasMultiple():
		g.setResults(&e, multiple)
		if e.kind == exprCall && count == 1 {
			i := &g.proto.code[e.info]
			*i = i.withOp(opTailCall)
		}
		count = multiple
	case count == 1:
		first = g.toAny(&e)
	default:
		g.toNext(&e)
	}
	g.emitABC(opReturn, first, count+1, 0)
}

func (p *parser) exprStatement() {
	e := p.primary()
	if e.kind == exprCall {
		p.gen.proto.code[e.info].setC(1) // no results
		return
	}
	p.assignment(&target{variable: e}, 1)
}
