package lua51

// pool is memory for the first few things that a run makes, which serve the
// next run again: most runs are short and make nothing else. That is safe where
// nothing that a run makes outlives it. Beyond that a run makes what it likes,
// and the collector takes it.
type pool struct {
	on        bool
	tables    []*Table
	functions []*Function
	upvalues  []*Upvalue
	text      []byte
	used      struct{ tables, functions, upvalues int }
}

const (
	pooledTables    = 64
	pooledFunctions = 128
	pooledUpvalues  = 128
	pooledText      = 16 << 10
	pooledTextMost  = 1 << 10 // of one text
	pooledSlots     = 32      // that a pooled table keeps
)

func (p *pool) table() *Table {
	if !p.on || p.used.tables == pooledTables {
		return &Table{}
	}
	if p.used.tables == len(p.tables) {
		p.tables = append(p.tables, &Table{})
	}
	p.used.tables++
	return p.tables[p.used.tables-1]
}

func (p *pool) function() *Function {
	if !p.on || p.used.functions == pooledFunctions {
		return &Function{}
	}
	if p.used.functions == len(p.functions) {
		p.functions = append(p.functions, &Function{})
	}
	p.used.functions++
	return p.functions[p.used.functions-1]
}

func (p *pool) upvalue() *Upvalue {
	if !p.on || p.used.upvalues == pooledUpvalues {
		return &Upvalue{}
	}
	if p.used.upvalues == len(p.upvalues) {
		p.upvalues = append(p.upvalues, &Upvalue{})
	}
	p.used.upvalues++
	return p.upvalues[p.used.upvalues-1]
}

// bytes is an empty slice with room for n bytes.
func (p *pool) bytes(n int) []byte {
	if !p.on || n > pooledTextMost || n > pooledText-len(p.text) {
		return make([]byte, 0, n)
	}
	if p.text == nil {
		p.text = make([]byte, 0, pooledText)
	}
	start := len(p.text)
	p.text = p.text[:start+n]
	return p.text[start:start:len(p.text)]
}

func (p *pool) reset() {
	for _, t := range p.tables[:p.used.tables] {
		t.empty()
	}
	for _, f := range p.functions[:p.used.functions] {
		clear(f.upvalues)
		clear(f.held)
		*f = Function{upvalues: f.upvalues[:0], held: f.held[:0]}
	}
	for _, u := range p.upvalues[:p.used.upvalues] {
		*u = Upvalue{}
	}
	p.used.tables, p.used.functions, p.used.upvalues = 0, 0, 0
	p.text = p.text[:0]
}

// empty makes a table new again, with some of its room.
func (t *Table) empty() {
	list, nodes := t.list, t.nodes
	if cap(list) > pooledSlots {
		list = nil
	}
	if cap(nodes) > fewNodes {
		nodes = nil
	}
	clear(list[:cap(list)])
	clear(nodes)
	*t = Table{list: list[:0], nodes: nodes[:0]}
}
