package lua51

import "unsafe"

// weigh adds up the bytes of everything that the program can still reach: the
// globals, the stacks, and all that hangs on them. It ends early above the
// limit. Objects are marked with the number of the weighing, so it needs no
// memory but for what waits, a part of a large table at a time; long texts, to which many values may refer, are
// remembered.
func (st *State) weigh() int64 {
	st.marks++
	s := scale{st: st, mark: st.marks, texts: map[unsafe.Pointer]struct{}{}}
	s.table(st.globals)
	s.table(st.stringMeta)
	s.thread(st.main)
	for th := st.current; th != nil; th = th.resumer {
		s.thread(th)
	}
	if st.Roots != nil {
		st.Roots(s.value)
	}
	for len(s.waiting) > 0 && s.bytes <= st.meter.limit {
		last := len(s.waiting) - 1
		w := s.waiting[last]
		s.waiting = s.waiting[:last]
		if w.at > 0 {
			s.part(w.v, w.at)
		} else {
			s.inside(w.v)
		}
	}
	return s.bytes
}

type scale struct {
	st      *State
	mark    uint32
	bytes   int64
	waiting []unweighed
	texts   map[unsafe.Pointer]struct{}
	steps   int
}

// unweighed is an object that waits: a table from a place of a traversal on, if
// that is not 0.
type unweighed struct {
	v  Value
	at int
}

// longText is from where on a text is weighed once only.
const longText = 256

func (s *scale) value(v Value) {
	switch v.Kind() {
	case KindString:
		n := len(v.text())
		if n >= longText {
			if _, seen := s.texts[v.ref]; seen {
				return
			}
			s.texts[v.ref] = struct{}{}
		}
		s.bytes += int64(n)
	case KindTable:
		s.table(v.AsTable())
	case KindFunction:
		s.function(v.AsFunction())
	case KindThread:
		s.thread(v.AsThread())
	}
}

func (s *scale) table(t *Table) {
	if t != nil && t.marked != s.mark {
		t.marked = s.mark
		s.waiting = append(s.waiting, unweighed{v: t.Value()})
	}
}

func (s *scale) function(f *Function) {
	if f != nil && f.marked != s.mark {
		f.marked = s.mark
		s.waiting = append(s.waiting, unweighed{v: f.Value()})
	}
}

func (s *scale) thread(th *Thread) {
	if th != nil && th.marked != s.mark {
		th.marked = s.mark
		s.waiting = append(s.waiting, unweighed{v: th.Value()})
	}
}

// inside weighs an object and finds what hangs on it.
func (s *scale) inside(v Value) {
	switch v.Kind() {
	case KindTable:
		t := v.AsTable()
		s.bytes += tableBytes + valueBytes*int64(cap(t.list)) + nodeBytes*int64(cap(t.nodes))
		s.table(t.meta)
		s.part(v, 0)
	case KindFunction:
		f := v.AsFunction()
		s.bytes += functionBytes + 8*int64(len(f.upvalues))
		s.values(f.held)
		for _, u := range f.upvalues {
			s.upvalue(u)
		}
	case KindThread:
		th := v.AsThread()
		s.bytes += threadBytes + valueBytes*int64(len(th.stack)) + 8*int64(len(th.open)) + frameBytes*int64(th.depth)
		top := max(th.top, th.frame.topmost())
		clear(th.stack[top:max(top, min(th.high, len(th.stack)))]) // nobody reads that any more
		s.values(th.stack[:top])
		for f := th.frame; f != nil; f = f.previous {
			s.step()
			s.function(f.fn)
		}
	}
	s.step()
}

// part weighs some of what a table holds.
func (s *scale) part(v Value, at int) {
	const most = 1024
	t := v.AsTable()
	if at+most < len(t.list)+len(t.nodes) {
		s.waiting = append(s.waiting, unweighed{v, at + most})
	}
	if at < len(t.list) {
		s.values(t.list[at:min(at+most, len(t.list))])
	}
	from := max(at-len(t.list), 0)
	for i := from; i < min(at+most-len(t.list), len(t.nodes)); i++ {
		s.step()
		s.value(t.nodes[i].key)
		s.value(t.nodes[i].value)
	}
}

func (s *scale) upvalue(u *Upvalue) {
	if u.marked != s.mark {
		u.marked = s.mark
		s.bytes += upvalueBytes
		s.value(*u.at)
	}
}

func (s *scale) values(list []Value) {
	for _, v := range list {
		s.step()
		s.value(v)
	}
}

// step lets others in: what a program holds may be a gigabyte.
func (s *scale) step() {
	if s.steps++; s.steps&0xff == 0 {
		if s.st.meter.left -= 0x100; s.st.meter.left <= 0 {
			s.lookWhileWeighing()
		}
	}
}

func (s *scale) lookWhileWeighing() {
	s.st.meter.weighing = false // it may not come back
	s.st.look()
	s.st.meter.weighing = true
}
