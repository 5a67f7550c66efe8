package ds

import "math/bits"

// Two things for whoever takes a whole Dict out, or puts a whole one in.
//
// Scan is for walks that strangers begin and may never end: all it keeps is a cursor.
// A walk of one's own can go by position instead. It reads memory in order, where Scan
// follows chains, and may stop after any element, also in a Dict without an index.

// Descend visits the elements at the positions from, from-1 and so on until visit
// returns false, and returns the position to go on from; 0 is the end. A walk begins
// with Len or more, may be spread over any number of calls, and visits each element
// that is there during all of it at least once, whatever else comes and goes between the
// calls: what comes is put behind the last, and what is moved into a hole is the
// last, which was visited already unless the hole is before the place of the walk, too.
// visit must not change d.
func (d *Dict[V]) Descend(from int, visit func(key string, v V) bool) (next int) {
	for at := min(from, d.size); at > 0; at-- {
		e := d.at(link(at))
		if !visit(e.key, e.value) {
			return at - 1
		}
	}
	return 0
}

// Expect makes the index fit n elements that are about to come, so that it need not be
// rebuilt again and again on the way. Until Settle it does not shrink. n is a hint: hardly
// any memory is taken for elements that do not come.
func (d *Dict[V]) Expect(n int) {
	const most = 1 << 30
	if n <= max(d.size, bucketsMin) || n > most {
		return
	}
	if d.index == nil {
		d.buildIndex()
	}
	if d.size == 0 {
		d.index = &index{main: newTable(1 << bits.Len(uint(n-1)))}
	}
	d.index.expected = true
}

// Settle ends what Expect has begun.
func (d *Dict[V]) Settle() {
	if d.index != nil {
		d.index.expected = false
		d.resize()
	}
}

// Add stores v under key if the key is new, and says whether it is.
func (d *Dict[V]) Add(key string, v V) (inserted bool) {
	hash := d.hash(key)
	d.moveSome()
	if d.find(key, hash) != 0 {
		return false
	}
	d.insert(key, hash, v)
	return true
}
