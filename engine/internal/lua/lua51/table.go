package lua51

import (
	"hash/maphash"
	"math"
	"math/bits"
	"unsafe"
)

// Table is a table: a list for the keys 1 to len(list), and a hash for all
// others. The entries of the hash stand in the order in which their keys came,
// so pairs goes through a table in that order. An entry whose value is nil
// keeps its key, so that a traversal can go on from there, until the hash is
// full: then it is made anew, without those, and as many of the whole numbers
// as fill a list to more than half move there. Above fewEntries an index finds
// an entry by its key.
type Table struct {
	list    []Value
	entries []entry
	index   []uint32 // hash -> 1 + place in entries; a power of two long
	meta    *Table
	// absent has a bit for each event that this table, as a metatable, is
	// known not to have.
	absent   uint16
	readOnly bool
	marked   uint32
}

type entry struct{ key, value Value }

const (
	fewEntries = 8
	tableBytes = int64(unsafe.Sizeof(Table{})+15) &^ 15 // as Go's memory for it is rounded
	valueBytes = int64(unsafe.Sizeof(Value{}))
	entryBytes = int64(unsafe.Sizeof(entry{}))
	// maxListBits bounds a list to 2 to the power of it.
	maxListBits = 27
	// hashedBytes is how much of a text makes its hash.
	hashedBytes = 1 << 20
	// What is moved in the time of a step, and at most between two looks.
	slotsPerStep, slotsPerLook = 4, 1 << 14
)

var hashSeed = maphash.MakeSeed()

func hashOf(key Value) uint32 {
	if key.isString() {
		text := key.text()
		if len(text) > hashedBytes { // not all of it: that would hold up others
			return hashOf(String(text[:hashedBytes/2])) ^ hashOf(String(text[len(text)-hashedBytes/2:])) + uint32(len(text))
		}
		return uint32(maphash.String(hashSeed, text))
	}
	h := key.word
	if key.word >= numberBase && key.float() == 0 {
		h = numberBase // 0 and -0 are one key
	}
	h ^= uint64(uintptr(key.ref))
	return uint32((h * 0x9e3779b97f4a7c15) >> 32)
}

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
		return t.entries[i].value
	}
	return Nil
}

// GetInt reads a whole number.
func (t *Table) GetInt(n int) Value {
	if i := uint(n - 1); i < uint(len(t.list)) {
		return t.list[i]
	}
	if len(t.entries) == 0 {
		return Nil
	}
	return t.Get(Int(n))
}

// GetString reads a text.
func (t *Table) GetString(key string) Value {
	if i := t.find(String(key)); i >= 0 {
		return t.entries[i].value
	}
	return Nil
}

// find returns the place of a key's entry, -1 if it has none.
func (t *Table) find(key Value) int {
	if t.index == nil {
		for i := range t.entries {
			if t.entries[i].key.Equal(key) {
				return i
			}
		}
		return -1
	}
	mask := uint32(len(t.index) - 1)
	for h := hashOf(key) & mask; ; h = (h + 1) & mask {
		at := t.index[h]
		if at == 0 {
			return -1
		}
		if t.entries[at-1].key.Equal(key) {
			return int(at - 1)
		}
	}
}

// field reads a constant text. hint is where it was found last.
func (t *Table) field(key Value, hint *uint32) Value {
	if i := *hint; i < uint32(len(t.entries)) {
		if e := &t.entries[i]; e.key.ref == key.ref && e.key.word == key.word {
			return e.value
		}
	}
	i := t.find(key)
	if i < 0 {
		return Nil
	}
	*hint = uint32(i)
	return t.entries[i].value
}

// Set changes a key, without metatables; it must be neither nil nor
// not-a-number. The state is charged for what the table grows by.
func (t *Table) Set(st *State, key, value Value) {
	if key.isNumber() {
		i := listIndex(key)
		if i < uint(len(t.list)) {
			t.list[i] = value
			return
		}
		if i == uint(len(t.list)) && t.append(st, value) {
			return
		}
	}
	t.setEntry(st, key, value)
}

// SetInt changes a whole number.
func (t *Table) SetInt(st *State, n int, value Value) {
	if i := uint(n - 1); i < uint(len(t.list)) {
		t.list[i] = value
		return
	}
	t.Set(st, Int(n), value)
}

// SetString changes a text.
func (t *Table) SetString(st *State, key string, value Value) { t.setEntry(st, String(key), value) }

// setField changes a constant text. hint is where it was found last.
func (t *Table) setField(st *State, key, value Value, hint *uint32) {
	if i := *hint; i < uint32(len(t.entries)) {
		if e := &t.entries[i]; e.key.ref == key.ref && e.key.word == key.word {
			e.value, t.absent = value, 0
			return
		}
	}
	t.setEntry(st, key, value)
	if n := len(t.entries); n > 0 {
		*hint = uint32(n - 1) // where it is if it was new
	}
}

func (t *Table) setEntry(st *State, key, value Value) {
	t.absent = 0
	if i := t.find(key); i >= 0 {
		t.entries[i].value = value
		return
	}
	if value.IsNil() {
		return
	}
	if len(t.entries) == cap(t.entries) && t.rehash(st, key, value) {
		return
	}
	t.entries = append(t.entries, entry{key, value})
	t.enter(len(t.entries)-1, key)
}

// enter puts an entry into the index, if there is one.
func (t *Table) enter(at int, key Value) {
	if t.index == nil {
		return
	}
	mask := uint32(len(t.index) - 1)
	h := hashOf(key) & mask
	for t.index[h] != 0 {
		h = (h + 1) & mask
	}
	t.index[h] = uint32(at + 1)
}

// append makes the list longer by a value and by what has to follow from the
// hash. It reports false for what does not belong there.
func (t *Table) append(st *State, value Value) bool {
	if value.IsNil() || len(t.list) == 0 && len(t.entries) > 0 && t.find(Int(1)) >= 0 {
		return false
	}
	n := len(t.list)
	if len(t.entries) > 0 {
		if at := t.find(Int(n + 1)); at >= 0 {
			t.entries[at].value = Nil
		}
	}
	t.reserve(st, n+1)
	t.list = append(t.list, value)
	if len(t.entries) > 0 {
		t.follow(st)
	}
	return true
}

// follow moves what comes after the list from the hash into it.
func (t *Table) follow(st *State) {
	for {
		at := t.find(Int(len(t.list) + 1))
		if at < 0 || t.entries[at].value.IsNil() {
			return
		}
		value := t.entries[at].value
		t.entries[at].value = Nil
		t.reserve(st, len(t.list)+1)
		t.list = append(t.list, value)
	}
}

// reserve makes room for n values in the list.
func (t *Table) reserve(st *State, n int) {
	if n <= cap(t.list) {
		return
	}
	room := max(4, n, 2*cap(t.list))
	if cap(t.list) > 1<<16 {
		room = max(n, cap(t.list)+cap(t.list)/2)
	}
	st.charge(valueBytes * int64(room))
	list := makeRoom[Value](st, room)
	for old := t.list; len(old) > 0; {
		n := min(len(old), slotsPerLook)
		list = append(list, old[:n]...)
		old = old[n:]
		st.pass(n / slotsPerStep)
	}
	t.list = list
}

// rehash makes the hash anew, with room for one more key. It reports true if
// the key has found its place in the list.
func (t *Table) rehash(st *State, key, value Value) bool {
	var counts [maxListBits + 1]int // of the keys from 2^(i-1)+1 to 2^i
	live, numbers := 1, countKey(&counts, key)
	for i := range t.entries {
		if i&0xff == 0xff {
			st.pass(0x100)
		}
		if !t.entries[i].value.IsNil() {
			live++
			numbers += countKey(&counts, t.entries[i].key)
		}
	}
	length := len(t.list)
	if numbers > 0 {
		for i, v := range t.list {
			if i&0xfff == 0xfff {
				st.pass(0x1000 / slotsPerStep)
			}
			if !v.IsNil() {
				numbers++
				counts[bits.Len(uint(i))]++
			}
		}
		length = max(length, listLength(&counts, numbers))
	}
	old := t.entries
	if length > len(t.list) {
		t.reserve(st, length)
		t.list = t.list[:length]
		for i := range old { // those that move are not live any more
			if i&0xff == 0 {
				st.pass(0x100)
			}
			if at := listIndex(old[i].key); at < uint(length) && !old[i].value.IsNil() {
				t.list[at] = old[i].value
				old[i].value = Nil
				live--
			}
		}
		if at := listIndex(key); at < uint(length) {
			t.list[at] = value
			live--
			t.resize(st, live)
			return true
		}
	}
	t.resize(st, live)
	return false
}

func countKey(counts *[maxListBits + 1]int, key Value) int {
	if i := listIndex(key); i < 1<<maxListBits {
		counts[bits.Len(i)]++
		return 1
	}
	return 0
}

// listLength is the largest power of two such that more than half of the keys
// up to it are there.
func listLength(counts *[maxListBits + 1]int, numbers int) int {
	sum, length := 0, 0
	for i, power := 0, 1; i <= maxListBits && power/2 < numbers; i, power = i+1, 2*power {
		sum += counts[i]
		if sum > power/2 {
			length = power
		}
	}
	return length
}

// resize makes the hash anew, with room for n entries. Those there are come
// along.
func (t *Table) resize(st *State, n int) {
	old := t.entries
	room := 0
	if n > 0 {
		room = 1 << bits.Len(uint(n-1))
		if n <= len(old) && room-n < n/4 { // keys come and go: not to be full again at once
			room *= 2
		}
	}
	if room == cap(old) && room <= fewEntries { // most were removed: it can stay where it is
		t.compact()
		return
	}
	bytes := entryBytes * int64(room)
	if room > fewEntries {
		bytes += 8 * int64(room)
	}
	st.charge(bytes)
	anew := Table{entries: makeRoom[entry](st, room)}
	if room > fewEntries {
		anew.index = makeRoom[uint32](st, 2*room)[:2*room]
	}
	for i := range old {
		if i&0xff == 0 {
			st.pass(0x100)
		}
		if e := &old[i]; !e.value.IsNil() {
			anew.entries = append(anew.entries, *e)
			anew.enter(len(anew.entries)-1, e.key)
		}
	}
	t.entries, t.index = anew.entries, anew.index
}

// compact drops the entries without values.
func (t *Table) compact() {
	old := t.entries
	t.entries = old[:0]
	for _, e := range old {
		if !e.value.IsNil() {
			t.entries = append(t.entries, e)
		}
	}
	clear(old[len(t.entries):])
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
	if len(t.entries) == 0 {
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
	for ; at < len(t.list)+len(t.entries); at++ {
		if e := &t.entries[at-len(t.list)]; !e.value.IsNil() {
			return at, e.key, e.value
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

// Insert moves what is at n and behind up by one and puts a value there. It
// reports false, and does nothing, if that is not all in the list.
func (t *Table) Insert(st *State, n int, value Value) bool {
	last := len(t.list)
	if n < 1 || n > last || t.list[last-1].IsNil() || value.IsNil() || len(t.entries) > 0 {
		return false
	}
	t.reserve(st, last+1)
	t.list = t.list[:last+1]
	for last > n-1 { // from behind
		from := max(n-1, last-slotsPerLook)
		copy(t.list[from+1:], t.list[from:last])
		st.pass((last - from) / slotsPerStep)
		last = from
	}
	t.list[n-1] = value
	return true
}

// Remove moves what is behind n down by one and returns what was there. It is
// not ok, and does nothing, if that is not all in the list.
func (t *Table) Remove(st *State, n int) (removed Value, ok bool) {
	last := len(t.list)
	if n < 1 || n > last || t.list[last-1].IsNil() || len(t.entries) > 0 {
		return Nil, false
	}
	removed = t.list[n-1]
	for n < last {
		to := min(n+slotsPerLook, last)
		copy(t.list[n-1:], t.list[n:to])
		st.pass((to - n) / slotsPerStep)
		n = to
	}
	t.list[last-1] = Nil
	t.list = t.list[:last-1]
	return removed, true
}

// HasFields says whether there may be keys besides those of the list.
func (t *Table) HasFields() bool { return len(t.entries) > 0 }
