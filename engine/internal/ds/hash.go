package ds

import (
	"iter"
	"math/rand/v2"
	"strings"
)

// Hash maps fields to string values. While it is small, its fields and values are one
// packed row, and a change costs O(n); afterwards it is a Dict, for good, with the costs
// of one.
type Hash struct {
	row    rowOr[largeHash] // field, value, field, value
	limits *Limits          // nil once it has been too large for a listpack
}

type largeHash struct {
	Dict[string]
	valueBytes int // of the heap; see MemoryBytes
}

// NewHash returns an empty Hash.
func NewHash() *Hash { return &Hash{limits: &usual} }

// Within sets the limits for what is written from now on.
func (h *Hash) Within(limits *Limits) {
	if h.limits != nil {
		h.limits = limits
	}
}

// Enlarge makes the hash one that has been too large to be compact.
func (h *Hash) Enlarge() { h.limits = nil }

// Expect makes room for these fields and values, one after the other, if the hash is empty:
// they are about to be set.
func (h *Hash) Expect(pairs [][]byte) {
	if h.row.form == formStrings {
		h.row.expect(stringsSize(pairs))
	}
}

// Len returns the number of fields.
func (h *Hash) Len() int {
	if large := h.row.large(); large != nil {
		return large.Len()
	}
	return int(h.row.count)
}

// Get returns the value of field, and whether it is there. It does not allocate.
func (h *Hash) Get(field []byte) (string, bool) {
	if large := h.row.large(); large != nil {
		return large.Get(field)
	}
	_, value := h.row.find(field, 2)
	if value < 0 {
		return "", false
	}
	return h.row.show(stringAt(h.row.bytes(), value)), true
}

// Set stores value under field, and says whether the field is new. The bytes are copied.
func (h *Hash) Set(field, value []byte) (inserted bool) {
	large := h.row.large()
	done := false
	if large == nil {
		if inserted, done = h.setPacked(field, value); !done {
			large = h.enlarge()
		}
	}
	if !done {
		inserted = large.set(field, string(value))
	}
	if l := h.limits; l != nil &&
		(len(field) > l.HashBytes || len(value) > l.HashBytes || h.Len() > l.HashEntries) {
		h.limits = nil
	}
	return inserted
}

// setPacked is Set for a row; it is not done if the row would be too long.
func (h *Hash) setPacked(field, value []byte) (inserted, done bool) {
	size := stringSize(len(value))
	if at, old := h.row.find(field, 2); at >= 0 {
		row := h.row.bytes()
		start, end := stringAt(row, old)
		switch {
		case view(row[start:end]) == view(value):
			return false, true
		case len(row)-(end-old)+size <= rowBytes:
			putString(h.row.splice(old, end, size), value)
			return false, true
		}
		return false, false
	}
	whole, end := stringSize(len(field))+size, int(h.row.length)
	if !h.row.fits(whole) {
		return false, false
	}
	putString(putString(h.row.splice(end, end, whole), field), value)
	h.row.count++
	return true, true
}

// enlarge makes a Dict of the row.
func (h *Hash) enlarge() *largeHash {
	large := &largeHash{}
	for field, value := range h.row.pairs() {
		large.set([]byte(field), strings.Clone(value))
	}
	h.row.become(large)
	return large
}

func (l *largeHash) set(field []byte, value string) (inserted bool) {
	old, replaced := l.Swap(field, value)
	l.valueBytes += StringBytes(len(value)) - StringBytes(len(old))
	return !replaced
}

// Delete removes field and says whether it was there.
func (h *Hash) Delete(field []byte) bool {
	if large := h.row.large(); large != nil {
		old, ok := large.Delete(field)
		large.valueBytes -= StringBytes(len(old))
		return ok
	}
	at, value := h.row.find(field, 2)
	if at < 0 {
		return false
	}
	_, end := stringAt(h.row.bytes(), value)
	h.row.splice(at, end, 0)
	h.row.count--
	return true
}

// Random returns a random field, each with the same probability; ok is false if
// there is none.
func (h *Hash) Random(r *rand.Rand) (field, value string, ok bool) {
	if large := h.row.large(); large != nil {
		return large.Random(r)
	}
	if h.row.count == 0 {
		return "", "", false
	}
	row := h.row.bytes()
	start, end := stringAt(row, h.row.random(r, 2))
	return h.row.show(start, end), h.row.show(stringAt(row, end)), true
}

// Scan is one step of a walk; see Dict.Scan. A packed row is visited in one step.
func (h *Hash) Scan(cursor uint64, visit func(field, value string)) (next uint64) {
	if large := h.row.large(); large != nil {
		return large.Scan(cursor, visit)
	}
	for field, value := range h.row.pairs() {
		visit(field, value)
	}
	return 0
}

// All walks over all fields, as long as none was deleted in the order in which they came,
// as people see small hashes on Redis. Nothing may be deleted during the walk.
func (h *Hash) All() iter.Seq2[string, string] {
	if large := h.row.large(); large != nil {
		return large.Forward()
	}
	return h.row.pairs()
}

// Clone returns a copy. O(n).
func (h *Hash) Clone() *Hash {
	c := &Hash{limits: h.limits}
	if large := h.row.large(); large != nil {
		c.row.become(&largeHash{Dict: *large.Clone(nil), valueBytes: large.valueBytes})
	} else {
		c.row.packed = h.row.clone()
	}
	return c
}

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for such a hash.
func (h *Hash) Encoding() string {
	if h.limits == nil {
		return "hashtable"
	}
	return "listpack"
}
