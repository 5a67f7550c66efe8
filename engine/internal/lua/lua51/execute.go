package lua51

// execute runs the innermost frame, and all that it calls, until the frame that
// is marked as an entry returns, or the coroutine yields. Calls between
// functions of Lua do not take Go's stack.
//
// What every instruction needs is in local variables: they are loaded anew at
// newFrame, and after whatever may have made the stack larger. An instruction
// that may fail, or call, first writes down where it is.
//
//nolint:funlen // one switch: as functions the instructions would take twice as long
func (th *Thread) execute() {
	st := th.st
newFrame:
	f := th.frame
	fn := f.fn
	code, constants, hints := fn.proto.code, fn.proto.constants, fn.proto.hints
	base, pc := f.base, f.pc
	regs := th.registers(base)
	for {
		i := code[pc]
		pc++
		a := &regs[uint8(i>>6)]
		switch i.op() {
		case opMove:
			*a = regs[uint8(i>>23)]
		case opLoadK:
			*a = constants[i>>14]
		case opLoadBool:
			*a = Bool(i.b() != 0)
			pc += i.c()
		case opLoadNil:
			clear(regs[i.a() : i.b()+1])
		case opGetUpval:
			*a = *fn.upvalues[i.b()].at
		case opGetGlobal:
			key := constants[i>>14]
			v := st.globals.field(key, &hints[pc-1])
			if v.IsNil() && st.globals.meta != nil {
				f.pc = pc
				v = th.index(st.globals.Value(), key, -1)
				regs = th.registers(base)
			}
			regs[uint8(i>>6)] = v
		case opGetField:
			v := regs[uint8(i>>23)]
			key := constants[uint8(i>>14)]
			if t := v.AsTable(); t != nil {
				found := t.field(key, &hints[pc-1])
				if !found.IsNil() || t.meta == nil {
					*a = found
					continue
				}
			}
			f.pc = pc
			v = th.index(v, key, i.b())
			regs = th.registers(base)
			regs[uint8(i>>6)] = v
		case opGetIndex:
			v, key := regs[uint8(i>>23)], regs[uint8(i>>14)]
			if t := v.AsTable(); t != nil {
				var found Value
				if n := listIndex(key); n < uint(len(t.list)) {
					found = t.list[n]
				} else {
					if key.isString() {
						f.pc = pc
						th.passText(key)
					}
					found = t.Get(key)
				}
				if !found.IsNil() || t.meta == nil {
					*a = found
					continue
				}
			}
			f.pc = pc
			v = th.index(v, key, i.b())
			regs = th.registers(base)
			regs[uint8(i>>6)] = v
		case opGetTable:
			f.pc = pc
			v := th.index(regs[uint8(i>>23)], *operand(regs, constants, i>>14), i.b())
			regs = th.registers(base)
			regs[uint8(i>>6)] = v
		case opSetGlobal:
			f.pc = pc
			th.setIndex(st.globals.Value(), constants[i>>14], *a, -1)
			regs = th.registers(base)
		case opSetUpval:
			*fn.upvalues[i.b()].at = *a
		case opSetField:
			f.pc = pc
			key, v := constants[uint8(i>>23)], *operand(regs, constants, i>>14)
			if t := a.AsTable(); t != nil && t.meta == nil && !t.readOnly {
				t.setField(st, key, v, &hints[pc-1])
				continue
			}
			th.setIndex(*a, key, v, i.a())
			regs = th.registers(base)
		case opSetTable:
			f.pc = pc
			th.setIndex(*a, *operand(regs, constants, i>>23), *operand(regs, constants, i>>14), i.a())
			regs = th.registers(base)
		case opSetIndex:
			f.pc = pc
			key, v := regs[uint8(i>>23)], regs[uint8(i>>14)]
			if t := a.AsTable(); t != nil && t.meta == nil && !t.readOnly && key.isNumber() && key.float() == key.float() {
				t.Set(st, key, v)
				continue
			}
			th.setIndex(*a, key, v, i.a())
			regs = th.registers(base)
		case opNewTable:
			f.pc = pc
			*a = st.NewTable(sizeOfByte(i.b()), sizeOfByte(i.c())).Value()
		case opSelfK:
			v, key := regs[uint8(i>>23)], constants[uint8(i>>14)]
			regs[uint8(i>>6)+1] = v
			t := v.AsTable()
			if t == nil && v.isString() {
				t = st.stringMethods
			}
			if t != nil {
				if found := t.field(key, &hints[pc-1]); !found.IsNil() {
					*a = found
					continue
				}
			}
			f.pc = pc
			v = th.index(v, key, i.b())
			regs = th.registers(base)
			regs[uint8(i>>6)] = v
		case opSelf:
			f.pc = pc
			v := regs[uint8(i>>23)]
			regs[uint8(i>>6)+1] = v
			v = th.index(v, *operand(regs, constants, i>>14), i.b())
			regs = th.registers(base)
			regs[uint8(i>>6)] = v
		case opAddK:
			if b := regs[uint8(i>>23)]; b.isNumber() {
				*a = number(b.float() + constants[uint8(i>>14)].float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opSubK:
			if b := regs[uint8(i>>23)]; b.isNumber() {
				*a = number(b.float() - constants[uint8(i>>14)].float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opMulK:
			if b := regs[uint8(i>>23)]; b.isNumber() {
				*a = number(b.float() * constants[uint8(i>>14)].float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opAdd:
			b, c := operand(regs, constants, i>>23), operand(regs, constants, i>>14)
			if b.isNumber() && c.isNumber() {
				*a = number(b.float() + c.float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opSub:
			b, c := operand(regs, constants, i>>23), operand(regs, constants, i>>14)
			if b.isNumber() && c.isNumber() {
				*a = number(b.float() - c.float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opMul:
			b, c := operand(regs, constants, i>>23), operand(regs, constants, i>>14)
			if b.isNumber() && c.isNumber() {
				*a = number(b.float() * c.float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opDiv:
			b, c := operand(regs, constants, i>>23), operand(regs, constants, i>>14)
			if b.isNumber() && c.isNumber() {
				*a = number(b.float() / c.float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opMod, opPow:
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opUnm:
			if b := regs[uint8(i>>23)]; b.isNumber() {
				*a = number(-b.float())
				continue
			}
			f.pc = pc
			regs = th.arithmeticSlow(i, base)
		case opNot:
			*a = Bool(!regs[uint8(i>>23)].Truth())
		case opLen:
			f.pc = pc
			v := th.length(regs[uint8(i>>23)], i.b())
			regs = th.registers(base)
			regs[uint8(i>>6)] = v
		case opConcat:
			f.pc = pc
			th.concat(base+i.b(), base+i.c())
			regs = th.registers(base)
			regs[uint8(i>>6)] = regs[uint8(i>>23)]
		case opJump:
			offset := i.signed()
			pc += offset
			if offset < 0 {
				if st.meter.left += offset; st.meter.left <= 0 {
					f.pc = pc + 1
					st.look()
				}
			}
		case opEqualK:
			f.pc = pc
			b, c := &regs[uint8(i>>23)], &constants[uint8(i>>14)]
			if b.Equal(*c) == (i>>6&0xff != 0) {
				offset := code[pc].signed()
				pc += offset
				if offset < 0 {
					th.Pass(-offset)
				}
			}
			pc++
		case opEqual, opLess, opLessEq:
			f.pc = pc
			b, c := operand(regs, constants, i>>23), operand(regs, constants, i>>14)
			var result bool
			switch {
			case b.word >= numberBase && c.word >= numberBase:
				x, y := b.float(), c.float()
				switch i.op() {
				case opEqual:
					result = x == y
				case opLess:
					result = x < y
				default:
					result = x <= y
				}
			default:
				result = th.compare(i.op(), *b, *c)
				regs = th.registers(base)
			}
			if result == (i>>6&0xff != 0) {
				offset := code[pc].signed()
				pc += offset
				if offset < 0 {
					th.Pass(-offset)
				}
			}
			pc++
		case opTest:
			if a.Truth() == (i.c() != 0) {
				offset := code[pc].signed()
				pc += offset
				if offset < 0 {
					f.pc = pc + 1
					th.Pass(-offset)
				}
			}
			pc++
		case opTestSet:
			if v := regs[uint8(i>>23)]; v.Truth() == (i.c() != 0) {
				*a = v
				pc += code[pc].signed()
			}
			pc++
		case opCall:
			if b := i.b(); b != 0 {
				th.top = base + i.a() + b
			}
			f.pc = pc
			if st.meter.left--; st.meter.left <= 0 {
				st.look()
			}
			if th.precall(base+i.a(), i.c()-1) {
				goto newFrame
			}
			if th.yielding {
				return
			}
			regs = th.registers(base)
		case opTailCall:
			if b := i.b(); b != 0 {
				th.top = base + i.a() + b
			}
			f.pc = pc
			if st.meter.left--; st.meter.left <= 0 {
				st.look()
			}
			if th.openTop > base {
				th.closeUpvalues(base)
			}
			if th.tailCall(f, base+i.a()) {
				goto newFrame
			}
			if th.yielding {
				return
			}
			regs = th.registers(base)
		case opReturn:
			if th.openTop > base {
				th.closeUpvalues(base)
			}
			from, n := base+i.a(), i.b()-1
			if n < 0 {
				n = th.top - from
			}
			th.frame = f.previous
			th.depth--
			th.finish(f.place, from, n, f.results)
			if f.entry {
				return
			}
			goto newFrame
		case opForLoop:
			r := uint8(i >> 6)
			step := regs[r+2].float()
			index := regs[r].float() + step
			limit := regs[r+1].float()
			if step > 0 && index <= limit || step <= 0 && limit <= index {
				offset := i.signed()
				pc += offset
				v := number(index)
				regs[r] = v
				regs[r+3] = v
				if st.meter.left += offset; st.meter.left <= 0 {
					f.pc = pc
					st.look()
				}
			}
		case opForPrep:
			f.pc = pc
			th.forPrep(regs, uint8(i>>6))
			pc += i.signed()
		case opTForLoop:
			f.pc = pc
			th.forStep(base+i.a(), i.c())
			regs = th.registers(base)
			if r := uint8(i >> 6); !regs[r+3].IsNil() {
				regs[r+2] = regs[r+3]
				pc += code[pc].signed()
			}
			pc++
		case opSetList:
			f.pc = pc
			pc = th.setList(f, i)
		case opClose:
			th.closeUpvalues(base + i.a())
		case opClosure:
			f.pc = pc
			*a = th.closure(fn, fn.proto.protos[i>>14], base).Value()
		case opVararg:
			f.pc = pc
			th.varargs(f, i)
			regs = th.registers(base)
		}
	}
}

// operand is a register or a constant.
func operand(regs *[slack]Value, constants []Value, x instruction) *Value {
	if x&constantBit != 0 {
		return &constants[uint8(x)]
	}
	return &regs[uint8(x)]
}

func (th *Thread) arithmeticSlow(i instruction, base int) *[slack]Value {
	regs, constants, op := th.registers(base), th.frame.fn.proto.constants, i.op().generic()
	b, c := *operand(regs, constants, i>>23), *operand(regs, constants, i>>14)
	left, right := i.b(), i.c()
	if op == opUnm {
		c, right = b, left
	}
	var v Value
	if b.isNumber() && c.isNumber() {
		v = Number(arithmetic(op, b.float(), c.float()))
	} else {
		v = th.arith(op, b, c, left, right)
		regs = th.registers(base)
	}
	regs[uint8(i>>6)] = v
	return regs
}

func (th *Thread) compare(op opcode, a, b Value) bool {
	switch op {
	case opEqual:
		if a.isString() && b.isString() {
			return a == b || th.SameText(a.text(), b.text())
		}
		return th.Equal(a, b)
	case opLess:
		return th.Less(a, b)
	}
	return th.lessEq(a, b)
}

// tailCall calls in the place of the running function. It reports whether there
// is a frame to run.
func (th *Thread) tailCall(f *frame, place int) bool {
	callee := th.stack[place].AsFunction()
	if callee == nil || callee.native != nil { // it needs its caller, for its name and place
		return th.precall(place, multiple)
	}
	n := th.top - place
	copy(th.stack[f.place:], th.stack[place:th.top])
	th.top = f.place + n
	tails, entry, results := f.tails+1, f.entry, f.results
	at := f.place
	th.frame = f.previous
	th.depth--
	th.precall(at, results)
	th.frame.tails, th.frame.entry = tails, entry
	return true
}

func (th *Thread) forPrep(regs *[slack]Value, r uint8) {
	for n, what := range [...]string{"initial value", "limit", "step"} {
		f, ok := regs[r+uint8(n)].ToNumber()
		if !ok {
			th.throwText("'for' " + what + " must be a number")
		}
		regs[r+uint8(n)] = number(f)
	}
	regs[r] = number(regs[r].float() - regs[r+2].float())
}

// forStep calls the iterator of a loop, whose variables begin at a place.
func (th *Thread) forStep(place, results int) {
	at := place + 3
	th.stack[at], th.stack[at+1], th.stack[at+2] = th.stack[place], th.stack[place+1], th.stack[place+2]
	th.top = at + 3
	th.Pass(1)
	th.call(at, results)
}

func (th *Thread) setList(f *frame, i instruction) (pc int) {
	pc = f.pc
	n, batch := i.b(), i.c()
	from := f.base + i.a() + 1
	if n == 0 {
		n = th.top - from
	}
	if batch == 0 {
		batch = int(f.fn.proto.code[pc])
		pc++
	}
	t := th.stack[from-1].AsTable()
	first := (batch - 1) * fieldsPerFlush
	if t == nil {
		return pc
	}
	if first+n > len(t.list) {
		t.resize(th.st, first+n, len(t.nodes))
	}
	copy(t.list[first:], th.stack[from:from+n])
	return pc
}

func (th *Thread) closure(outer *Function, p *Proto, base int) *Function {
	th.st.charge(functionBytes + 8*int64(len(p.captures)))
	f := th.st.pool.function()
	f.proto = p
	for _, c := range p.captures {
		if c.fromStack {
			f.upvalues = append(f.upvalues, th.findUpvalue(base+int(c.place)))
		} else {
			f.upvalues = append(f.upvalues, outer.upvalues[c.place])
		}
	}
	return f
}

// varargs copies the arguments without names.
func (th *Thread) varargs(f *frame, i instruction) {
	have := f.base - f.place - 1 - f.fn.proto.parameters
	want := i.b() - 1
	to := f.base + i.a()
	if want < 0 {
		want = have
		th.ensure(to + have)
		th.top = to + have
	}
	from := f.base - have
	th.Pass(min(want, have) / slotsPerStep)
	n := copy(th.stack[to:to+min(want, have)], th.stack[from:from+have])
	if n < want {
		clear(th.stack[to+n : to+want])
	}
}
