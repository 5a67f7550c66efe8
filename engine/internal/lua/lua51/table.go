package lua51

import (
	"math"
	"unsafe"
)

// Table is a table, built as that of Lua 5.1 is: a list for the keys 1 to
// len(list), and nodes for all others. A key has a main place among the nodes
// (hash.go). If that is taken by a key whose main place it is too, the new one
// goes to the highest free node; if by another, that one moves there. When no
// node is free, list and nodes are made anew, as large as what is there asks
// for (table_grow.go). So keys stand where the original has them, which shows
// in the order of pairs and in the borders of lists.
//
// A node whose value is nil keeps its key, so that a traversal can go on from
// there, until another key takes it or the nodes are made anew.
type Table struct {
	list  []Value
	nodes []node // none, or a power of two of them
	meta  *Table
	meter *meter // what long searches are charged to
	free  int32  // no node is free from here on
	// absent has a bit for each event that this table, as a metatable, is
	// known not to have.
	absent   uint16
	readOnly bool
	marked   uint32
}

// node is a place for a key. The next node of those that a search goes through
// is at next-1; 0 ends them.
type node struct {
	key, value Value
	hash       uint32
	next       int32
}

const (
	// fewNodes are searched one after another: that is faster than to make a
	// hash.
	fewNodes   = 8
	tableBytes = int64(unsafe.Sizeof(Table{})+15) &^ 15 // as Go's memory for it is rounded
	valueBytes = int64(unsafe.Sizeof(Value{}))
	nodeBytes  = int64(unsafe.Sizeof(node{}))
	// What is moved in the time of a step, and at most between two looks.
	slotsPerStep, slotsPerLook = 4, 1 << 14
	// longSearch is how many nodes a search may see without being charged.
	longSearch = 16
)

// Meta is the metatable, nil if there is none.
func (t *Table) Meta() *Table { return t.meta }

// SetMeta gives the table a metatable, or takes it away.
func (t *Table) SetMeta(meta *Table) { t.meta = meta }

// Protect makes all changes of the table by scripts fail.
func (t *Table) Protect() { t.readOnly = true }

// ReadOnly says whether the table is protected.
func (t *Table) ReadOnly() bool { return t.readOnly }

// listIndex is the place of a key in lists, from 0 on, or a number that is
// outside of all.
func listIndex(key Value) uint {
	if !key.isNumber() {
		return math.MaxUint
	}
	f := key.float()
	i := int(f)
	if float64(i) != f {
		return math.MaxUint
	}
	return uint(i - 1)
}

// Get reads a key, without metatables.
func (t *Table) Get(key Value) Value {
	if key.isNumber() {
		if i := listIndex(key); i < uint(len(t.list)) {
			return t.list[i]
		}
	}
	if i := t.find(key); i >= 0 {
		return t.nodes[i].value
	}
	return Nil
}

// GetInt reads a whole number.
func (t *Table) GetInt(n int) Value {
	if i := uint(n - 1); i < uint(len(t.list)) {
		return t.list[i]
	}
	if len(t.nodes) == 0 {
		return Nil
	}
	return t.Get(Int(n))
}

// GetString reads a text.
func (t *Table) GetString(key string) Value {
	if i := t.find(String(key)); i >= 0 {
		return t.nodes[i].value
	}
	return Nil
}

// find returns the place of a key's node, -1 if it has none.
func (t *Table) find(key Value) int {
	if len(t.nodes) > fewNodes {
		return t.search(key, hashOf(key))
	}
	for i := range t.nodes {
		if t.nodes[i].key.Equal(key) {
			return i
		}
	}
	return -1
}

func (t *Table) search(key Value, hash uint32) int {
	at := mainPlace(key, hash, len(t.nodes))
	for seen := 0; ; seen++ {
		n := &t.nodes[at]
		if n.hash == hash && n.key.Equal(key) {
			break
		}
		if at = int(n.next) - 1; at < 0 {
			break
		}
		if seen > longSearch { // keys can be chosen so that all have one main place
			t.meter.left--
		}
	}
	return at
}

// field reads a constant text. hint is where it was found last.
func (t *Table) field(key Value, hint *uint32) Value {
	if i := *hint; i < uint32(len(t.nodes)) {
		if n := &t.nodes[i]; n.key.ref == key.ref && n.key.word == key.word {
			return n.value
		}
	}
	i := t.find(key)
	if i < 0 {
		return Nil
	}
	*hint = uint32(i)
	return t.nodes[i].value
}

// Set changes a key, without metatables; it must be neither nil nor
// not-a-number. The state is charged for what the table grows by.
func (t *Table) Set(st *State, key, value Value) {
	if key.isNumber() {
		if i := listIndex(key); i < uint(len(t.list)) {
			t.list[i] = value
			return
		}
	}
	t.setNode(st, key, value)
}

// SetInt changes a whole number.
func (t *Table) SetInt(st *State, n int, value Value) {
	if i := uint(n - 1); i < uint(len(t.list)) {
		t.list[i] = value
		return
	}
	t.setNode(st, Int(n), value)
}

// SetString changes a text.
func (t *Table) SetString(st *State, key string, value Value) { t.setNode(st, String(key), value) }

// setField changes a constant text. hint is where it was found last.
func (t *Table) setField(st *State, key, value Value, hint *uint32) {
	if i := *hint; i < uint32(len(t.nodes)) {
		if n := &t.nodes[i]; n.key.ref == key.ref && n.key.word == key.word {
			n.value, t.absent = value, 0
			return
		}
	}
	*hint = uint32(t.setNode(st, key, value))
}

// setNode changes a key that is not in the list, and returns where it is. A key
// comes to stay even with nil for its value, as in the original.
func (t *Table) setNode(st *State, key, value Value) int {
	t.absent = 0
	var hash uint32
	var at int
	if len(t.nodes) > fewNodes {
		hash = hashOf(key)
		at = t.search(key, hash)
	} else if at = t.find(key); at < 0 {
		hash = hashOf(key)
	}
	if at < 0 {
		if at = t.insert(key, hash); at < 0 {
			return t.setGrown(st, key, value, hash)
		}
	}
	t.nodes[at].value = value
	return at
}

// setGrown makes room for a new key and sets it.
func (t *Table) setGrown(st *State, key, value Value, hash uint32) int {
	t.rehash(st, key)
	if i := listIndex(key); i < uint(len(t.list)) {
		t.list[i] = value
		return 0
	}
	at := t.insert(key, hash)
	t.nodes[at].value = value
	return at
}

// insert finds a node for a new key and returns its place, -1 if none is free.
// What is there with a value of nil gives way.
func (t *Table) insert(key Value, hash uint32) int {
	if len(t.nodes) == 0 {
		return -1
	}
	at := mainPlace(key, hash, len(t.nodes))
	n := &t.nodes[at]
	if !n.value.IsNil() {
		free := t.freeNode()
		if free < 0 {
			return -1
		}
		if main := mainPlace(n.key, n.hash, len(t.nodes)); main != at {
			t.before(main, at).next = int32(free + 1)
			t.nodes[free] = *n
			*n = node{}
		} else {
			t.nodes[free].next, n.next = n.next, int32(free+1)
			at, n = free, &t.nodes[free]
		}
	}
	n.key, n.hash = key, hash
	return at
}

// before is the node before that at a place, among those that a search which
// begins at main goes through.
func (t *Table) before(main, at int) *node {
	n := &t.nodes[main]
	for seen := 0; int(n.next) != at+1; seen++ {
		n = &t.nodes[n.next-1]
		if seen > longSearch {
			t.meter.left--
		}
	}
	return n
}

func (t *Table) freeNode() int {
	for t.free > 0 {
		t.free--
		if t.nodes[t.free].key.IsNil() {
			return int(t.free)
		}
	}
	return -1
}

// Len is a border: an n with t[n] not nil and t[n+1] nil, or 0.
func (t *Table) Len() int {
	n := len(t.list)
	if n > 0 && t.list[n-1].IsNil() {
		low, high := 0, n // as Lua looks for it
		for high-low > 1 {
			if middle := (low + high) / 2; t.list[middle-1].IsNil() {
				high = middle
			} else {
				low = middle
			}
		}
		return low
	}
	if len(t.nodes) == 0 {
		return n
	}
	return t.unboundLen(n)
}

// unboundLen looks for a border in the hash, from n on, where there is a value.
func (t *Table) unboundLen(n int) int {
	low, high := n, n+1
	for !t.Get(Int(high)).IsNil() {
		low = high
		if high *= 2; high > math.MaxInt32 {
			for low = 1; !t.Get(Int(low)).IsNil(); {
				low++
			}
			return low - 1
		}
	}
	for high-low > 1 {
		if middle := (low + high) / 2; t.Get(Int(middle)).IsNil() {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// Next returns the entry after the one of a key, the first after nil, and a key
// of nil at the end. It is not ok if there is no such key.
func (t *Table) Next(key Value) (next, value Value, ok bool) {
	at, ok := t.after(key)
	if !ok {
		return Nil, Nil, false
	}
	_, next, value = t.scan(at)
	return next, value, true
}

// after is the place in a traversal behind a key.
func (t *Table) after(key Value) (at int, ok bool) {
	if key.IsNil() {
		return 0, true
	}
	if i := listIndex(key); i < uint(len(t.list)) {
		return int(i) + 1, true
	}
	if i := t.find(key); i >= 0 {
		return len(t.list) + i + 1, true
	}
	return 0, false
}

// scan finds the next entry from a place on, and says where it is.
func (t *Table) scan(at int) (found int, key, value Value) {
	for ; at < len(t.list); at++ {
		if v := t.list[at]; !v.IsNil() {
			return at, Int(at + 1), v
		}
	}
	for ; at < len(t.list)+len(t.nodes); at++ {
		if n := &t.nodes[at-len(t.list)]; !n.value.IsNil() {
			return at, n.key, n.value
		}
	}
	return at, Nil, Nil
}

// All walks over a table, which must not get new keys meanwhile.
func (th *Thread) All(t *Table) func(yield func(key, value Value) bool) {
	return func(yield func(key, value Value) bool) {
		for at := 0; ; at++ {
			found, key, value := t.scan(at)
			th.Pass((found - at) / slotsPerStep)
			if at = found; key.IsNil() || !yield(key, value) {
				return
			}
		}
	}
}

// Insert moves what is from at to before end up by one and puts a value at at.
// It reports false if that is not all in the list.
func (t *Table) Insert(st *State, at, end int, value Value) bool {
	if at < 1 || at >= end || end-1 > len(t.list) {
		return false
	}
	t.SetInt(st, end, t.list[end-2]) // which may make all anew
	if end-1 > len(t.list) {
		return false
	}
	for last := end - 2; last > at-1; { // from behind
		from := max(at-1, last-slotsPerLook)
		copy(t.list[from+1:last+1], t.list[from:last])
		st.pass((last - from) / slotsPerStep)
		last = from
	}
	t.list[at-1] = value
	return true
}

// Remove moves what is behind at and up to last down by one and returns what
// was there. It is not ok, and does nothing, if that is not all in the list.
func (t *Table) Remove(st *State, at, last int) (removed Value, ok bool) {
	if at < 1 || at > last || last > len(t.list) {
		return Nil, false
	}
	removed = t.list[at-1]
	for at < last {
		to := min(at+slotsPerLook, last)
		copy(t.list[at-1:], t.list[at:to])
		st.pass((to - at) / slotsPerStep)
		at = to
	}
	t.list[last-1] = Nil
	return removed, true
}

// HasFields says whether there may be keys besides those of the list.
func (t *Table) HasFields() bool { return len(t.nodes) > 0 }
