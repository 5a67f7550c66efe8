package lua51

import "math/bits"

// How list and nodes of a table grow and shrink: as in the original, when a new
// key finds no free node. The list gets the largest power of two of places such
// that more than half of them are taken, the nodes as many as are left, rounded
// up to a power of two. What was in the nodes goes to the new ones from the
// last to the first.

// maxListBits bounds a list to 2 to the power of it.
const maxListBits = 26

// listCounts counts the whole numbers among keys: those from 2^(i-1)+1 to 2^i.
type listCounts [maxListBits + 1]int

func (c *listCounts) add(key Value) int {
	if i := listIndex(key); i < 1<<maxListBits {
		c[bits.Len(i)]++
		return 1
	}
	return 0
}

// best is how long a list of these keys has to be, and how many of them are in
// it.
func (c *listCounts) best(keys int) (length, within int) {
	sum := 0
	for i, power := 0, 1; power/2 < keys && sum < keys; i, power = i+1, 2*power {
		if c[i] == 0 {
			continue
		}
		if sum += c[i]; sum > power/2 {
			length, within = power, sum
		}
	}
	return length, within
}

// rehash makes list and nodes anew, with room for one more key.
func (t *Table) rehash(st *State, key Value) {
	var counts listCounts
	numbers := t.countList(st, &counts)
	used := numbers + 1
	for i := range t.nodes {
		if i&0xff == 0xff {
			st.pass(0x100)
		}
		if n := &t.nodes[i]; !n.value.IsNil() {
			numbers += counts.add(n.key)
			used++
		}
	}
	numbers += counts.add(key)
	length, within := counts.best(numbers)
	t.resize(st, length, used-within)
}

func (t *Table) countList(st *State, counts *listCounts) int {
	all := 0
	for low, slice := 0, 0; low < len(t.list); slice++ {
		high := min(1<<slice, len(t.list))
		for i := low; i < high; i++ {
			if !t.list[i].IsNil() {
				counts[slice]++
			}
			if i&0xfff == 0xfff {
				st.pass(0x1000 / slotsPerStep)
			}
		}
		all += counts[slice]
		low = high
	}
	return all
}

// resize makes the list so long, makes nodes for so many keys, and puts what
// was there into them. Until all is done the table is what it was: the program
// may be ended in between.
func (t *Table) resize(st *State, length, keys int) {
	size := 0
	if keys > 0 {
		size = 1 << bits.Len(uint(keys-1))
	}
	inPlace := size <= cap(t.nodes) && cap(t.nodes) <= fewNodes && length >= len(t.list)
	if !inPlace {
		st.charge(nodeBytes * int64(size))
	}
	anew := Table{list: t.resizedList(st, length), free: int32(size), meter: t.meter}
	old := t.nodes
	if inPlace {
		var few [fewNodes]node
		old = few[:copy(few[:], t.nodes)]
		anew.nodes = t.nodes[:size]
		clear(anew.nodes)
	} else {
		anew.nodes = makeRoom[node](st, size)[:size]
	}
	for i := length; i < len(t.list); i++ {
		if i&0xff == 0xff {
			st.pass(0x100)
		}
		if v := t.list[i]; !v.IsNil() {
			key := Int(i + 1)
			anew.nodes[anew.insert(key, hashOf(key))].value = v
		}
	}
	for i := len(old) - 1; i >= 0; i-- {
		if i&0xff == 0xff {
			st.pass(0x100)
		}
		n := &old[i]
		if n.value.IsNil() {
			continue
		}
		if at := listIndex(n.key); at < uint(length) {
			anew.list[at] = n.value
		} else {
			anew.nodes[anew.insert(n.key, n.hash)].value = n.value
		}
	}
	t.list, t.nodes, t.free = anew.list, anew.nodes, anew.free
}

// resizedList is the list of a table with another length, in the same memory if
// that does.
func (t *Table) resizedList(st *State, length int) []Value {
	old := t.list
	if length <= cap(old) && (length >= len(old) || cap(old) <= pooledSlots) {
		list := old[:length]
		if length > len(old) {
			clear(list[len(old):])
		}
		return list
	}
	st.charge(valueBytes * int64(length))
	list := makeRoom[Value](st, length)
	for old = old[:min(len(old), length)]; len(old) > 0; {
		n := min(len(old), slotsPerLook)
		list = append(list, old[:n]...)
		old = old[n:]
		st.pass(n / slotsPerStep)
	}
	return list[:length]
}
