package ds

import (
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"unsafe"
)

// A Dict keeps its entries dense: the elements sit at positions 0 to Len-1 of a
// paged array, and deleting one moves the last into the hole. This buys three
// things at once: a uniformly random element is one array access, a walk over
// everything is a walk over memory, and the collector sees a few large pages
// instead of one object per element.
//
// Above smallMax elements an index of chained buckets (dictindex.go) finds the
// position of a key. Entries are linked by position, not by pointer. Up to smallMax
// elements there is no index and no hashing: keys are compared one by one, which
// is as fast and keeps the very many tiny hashes of a typical keyspace small.
//
// No call does work in proportion to the size, except Clone and walking: pages are
// added one at a time, and the index is rebuilt in small steps by the writes that
// follow (see moveSome).

const (
	pageBits = 11 // whole pages of entries, in the sense of the allocator: no waste
	pageSize = 1 << pageBits
	pageMask = pageSize - 1

	smallMax = 8 // most elements that are searched without an index
)

// Dict is a hash table from strings to V with a cursor scan and uniform random
// choice. It holds up to 2^32-2 elements. Unless said otherwise, operations take
// amortized O(1) and no single one of them pauses to rebuild the table.
type Dict[V any] struct {
	pages [][]entry[V] // all of pageSize, except that a lone first page may be shorter
	size  int
	seed  maphash.Seed // set with the first index and kept: scan cursors depend on it
	index *index       // nil while there are few elements

	keyBytes int // of the heap; see MemoryBytes
}

type entry[V any] struct {
	key   string
	value V
	hash  uint32 // valid only while there is an index
	next  link
}

// NewDict returns an empty Dict.
func NewDict[V any]() *Dict[V] { return &Dict[V]{} }

// Len returns the number of elements.
func (d *Dict[V]) Len() int { return d.size }

// Clear removes all elements.
func (d *Dict[V]) Clear() { *d = Dict[V]{seed: d.seed} }

// Get returns the value of key, and whether it is there. It does not allocate.
func (d *Dict[V]) Get(key []byte) (V, bool) { return d.GetString(view(key)) }

// GetString is Get for a string.
func (d *Dict[V]) GetString(key string) (V, bool) {
	if at := d.find(key, d.hash(key)); at != 0 {
		return d.at(at).value, true
	}
	var none V
	return none, false
}

// Key returns the string that is held for key, and whether it is there. Another Dict that
// is given it shares its bytes.
func (d *Dict[V]) Key(key []byte) (held string, ok bool) {
	at := d.find(view(key), d.hash(view(key)))
	if at == 0 {
		return "", false
	}
	return d.at(at).key, true
}

// Set stores v under key and says whether the key is new.
func (d *Dict[V]) Set(key string, v V) (inserted bool) {
	hash := d.hash(key)
	if _, there := d.replace(key, hash, v); there {
		return false
	}
	d.insert(key, hash, v)
	return true
}

// SetBytes is Set for bytes; they are copied only if the key is new.
func (d *Dict[V]) SetBytes(key []byte, v V) (inserted bool) {
	hash := d.hash(view(key))
	if _, there := d.replace(view(key), hash, v); there {
		return false
	}
	d.insert(string(key), hash, v)
	return true
}

// AddNew stores v under a copy of key, which must not be there: it does not look.
func (d *Dict[V]) AddNew(key []byte, v V) {
	d.moveSome()
	d.insert(string(key), d.hash(view(key)), v)
}

// Swap is SetBytes that returns the value that the key had before.
func (d *Dict[V]) Swap(key []byte, v V) (old V, replaced bool) {
	hash := d.hash(view(key))
	if old, replaced = d.replace(view(key), hash, v); !replaced {
		d.insert(string(key), hash, v)
	}
	return old, replaced
}

// Delete removes key, and returns the value it had and whether it was there.
func (d *Dict[V]) Delete(key []byte) (V, bool) { return d.DeleteString(view(key)) }

// DeleteString is Delete for a string.
func (d *Dict[V]) DeleteString(key string) (V, bool) {
	hash := d.hash(key)
	d.moveSome()
	at := d.find(key, hash)
	if at == 0 {
		var none V
		return none, false
	}
	value := d.at(at).value
	d.remove(at)
	return value, true
}

// Random returns a random element, each with the same probability; ok is false if
// there is none.
func (d *Dict[V]) Random(r *rand.Rand) (key string, v V, ok bool) {
	if d.size == 0 {
		return key, v, false
	}
	e := d.at(link(r.IntN(d.size) + 1))
	return e.key, e.value, true
}

// All walks over all elements, in an order that depends only on the history of
// insertions and deletions. During the walk the current element may be deleted, and
// values of present keys may be set; any other change makes the walk repeat or miss
// elements.
func (d *Dict[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		// From the end, because a deletion moves the last element into the hole: only
		// elements that were already seen change their place.
		for at := d.size; at > 0; at-- {
			e := d.at(link(at))
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Forward is All in the other direction: the order of insertion as long as nothing was
// deleted. Nothing may be deleted during the walk.
func (d *Dict[V]) Forward() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for at := 1; at <= d.size; at++ {
			e := d.at(link(at))
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Clone returns a copy of d, whose values are made by copyValue; if that is nil they are
// assigned. O(n).
func (d *Dict[V]) Clone(copyValue func(V) V) *Dict[V] {
	c := &Dict[V]{pages: make([][]entry[V], len(d.pages)), size: d.size, seed: d.seed, keyBytes: d.keyBytes}
	for i, page := range d.pages {
		c.pages[i] = append(make([]entry[V], 0, len(page)), page...)
	}
	if d.index != nil {
		c.index = d.index.clone()
	}
	if copyValue == nil {
		return c
	}
	for at := 1; at <= c.size; at++ {
		e := c.at(link(at))
		e.value = copyValue(e.value)
	}
	return c
}

func (d *Dict[V]) at(at link) *entry[V] {
	i := at - 1
	return &d.pages[i>>pageBits][i&pageMask]
}

// hash returns the hash of key, or 0 while there is no index to look it up in.
func (d *Dict[V]) hash(key string) uint32 {
	if d.index == nil {
		return 0
	}
	return uint32(maphash.String(d.seed, key))
}

// find returns where key is, or 0.
func (d *Dict[V]) find(key string, hash uint32) link {
	if d.index == nil {
		for at := link(d.size); at > 0; at-- {
			if d.at(at).key == key {
				return at
			}
		}
		return 0
	}
	at := d.index.first(hash)
	for at != 0 {
		e := d.at(at)
		if e.hash == hash && e.key == key {
			return at
		}
		at = e.next
	}
	return 0
}

func (d *Dict[V]) replace(key string, hash uint32, v V) (old V, replaced bool) {
	d.moveSome()
	at := d.find(key, hash)
	if at == 0 {
		return old, false
	}
	place := &d.at(at).value
	old, *place = *place, v
	return old, true
}

// insert adds a key that is known to be absent.
func (d *Dict[V]) insert(key string, hash uint32, v V) {
	d.reserve()
	d.size++
	d.keyBytes += StringBytes(len(key))
	at := link(d.size)
	*d.at(at) = entry[V]{key: key, value: v, hash: hash}
	switch {
	case d.index != nil:
		d.chain(at)
		d.resize()
	case d.size > smallMax:
		d.buildIndex()
	}
}

// remove takes the element at hole out and moves the last element there.
func (d *Dict[V]) remove(hole link) {
	last := link(d.size)
	if d.index != nil {
		*d.linkTo(hole) = d.at(hole).next
		if hole != last {
			*d.linkTo(last) = hole
		}
	}
	d.keyBytes -= StringBytes(len(d.at(hole).key))
	*d.at(hole) = *d.at(last)
	*d.at(last) = entry[V]{}
	d.size--
	d.release()
	if d.index != nil {
		d.resize()
	}
}

// reserve makes room for one more entry. A lone page doubles, so that a small Dict
// stays small; later pages come whole, so that no page is ever copied again.
func (d *Dict[V]) reserve() {
	switch {
	case len(d.pages) == 0:
		d.pages = [][]entry[V]{make([]entry[V], 2)}
	case len(d.pages) == 1 && d.size == len(d.pages[0]) && d.size < pageSize:
		page := make([]entry[V], 2*d.size)
		copy(page, d.pages[0])
		d.pages[0] = page
	case d.size == len(d.pages)*pageSize:
		d.pages = append(d.pages, make([]entry[V], pageSize))
	}
}

// release gives back pages that are no longer needed, with some slack, so that a
// size that swings around a page's end does not allocate each time.
func (d *Dict[V]) release() {
	n := len(d.pages)
	if n > 1 {
		if d.size <= (n-1)*pageSize-pageSize/2 {
			d.pages[n-1] = nil
			d.pages = d.pages[:n-1]
		}
		if cap(d.pages) > 64 && len(d.pages) < cap(d.pages)/4 {
			d.pages = append(make([][]entry[V], 0, cap(d.pages)/2), d.pages...)
		}
		return
	}
	if length := len(d.pages[0]); length > smallMax && d.size <= length/4 {
		d.pages[0] = append(make([]entry[V], 0, length/2), d.pages[0][:length/2]...)
	}
}

// view gives bytes the type of a string without copying them, for a look-up only:
// the result must not outlive the call it is made for.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
