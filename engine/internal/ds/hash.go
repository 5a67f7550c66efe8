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
	row    packed // field, value, field, value
	large  *largeHash
	limits *Limits // nil once it has been too large for a listpack
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

// Len returns the number of fields.
func (h *Hash) Len() int {
	if h.large != nil {
		return h.large.Len()
	}
	return h.row.count
}

// Get returns the value of field, and whether it is there. It does not allocate.
func (h *Hash) Get(field []byte) (string, bool) {
	if h.large != nil {
		return h.large.Get(field)
	}
	_, value := h.row.find(field, 2)
	if value < 0 {
		return "", false
	}
	return h.row.view(h.row.stringAt(value)), true
}

// Set stores value under field, and says whether the field is new.
func (h *Hash) Set(field []byte, value string) (inserted bool) {
	if h.large == nil {
		inserted = h.setPacked(field, value)
	} else {
		inserted = h.large.set(field, value)
	}
	if l := h.limits; l != nil &&
		(len(field) > l.HashBytes || len(value) > l.HashBytes || h.Len() > l.HashEntries) {
		h.limits = nil
	}
	return inserted
}

func (h *Hash) setPacked(field []byte, value string) (inserted bool) {
	size := stringSize(len(value))
	if at, old := h.row.find(field, 2); at >= 0 {
		start, end := h.row.stringAt(old)
		switch {
		case h.row.view(start, end) == value:
			return false
		case len(h.row.bytes)-(end-old)+size <= rowBytes:
			putString(h.row.splice(old, end, size), value)
			return false
		}
	} else if whole := stringSize(len(field)) + size; h.row.fits(whole) {
		end := len(h.row.bytes)
		putString(putString(h.row.splice(end, end, whole), field), value)
		h.row.count++
		return true
	}
	h.enlarge()
	return h.large.set(field, value)
}

// enlarge makes a Dict of the row.
func (h *Hash) enlarge() {
	h.large = &largeHash{}
	for field, value := range h.row.pairs() {
		h.large.set([]byte(field), strings.Clone(value))
	}
	h.row = packed{}
}

func (l *largeHash) set(field []byte, value string) (inserted bool) {
	old, replaced := l.Swap(field, value)
	l.valueBytes += StringBytes(len(value)) - StringBytes(len(old))
	return !replaced
}

// Delete removes field and says whether it was there.
func (h *Hash) Delete(field []byte) bool {
	if h.large != nil {
		old, ok := h.large.Delete(field)
		h.large.valueBytes -= StringBytes(len(old))
		return ok
	}
	at, value := h.row.find(field, 2)
	if at < 0 {
		return false
	}
	_, end := h.row.stringAt(value)
	h.row.splice(at, end, 0)
	h.row.count--
	return true
}

// Random returns a random field, each with the same probability; ok is false if
// there is none.
func (h *Hash) Random(r *rand.Rand) (field, value string, ok bool) {
	switch {
	case h.large != nil:
		return h.large.Random(r)
	case h.row.count == 0:
		return "", "", false
	}
	start, end := h.row.stringAt(h.row.random(r, 2))
	return h.row.view(start, end), h.row.view(h.row.stringAt(end)), true
}

// Scan is one step of a walk; see Dict.Scan. A packed row is visited in one step.
func (h *Hash) Scan(cursor uint64, visit func(field, value string)) (next uint64) {
	if h.large != nil {
		return h.large.Scan(cursor, visit)
	}
	for field, value := range h.row.pairs() {
		visit(field, value)
	}
	return 0
}

// All walks over all fields, as long as none was deleted in the order in which they came,
// as people see small hashes on Redis. Nothing may be deleted during the walk.
func (h *Hash) All() iter.Seq2[string, string] {
	if h.large != nil {
		return h.large.Forward()
	}
	return h.row.pairs()
}

// Clone returns a copy. O(n).
func (h *Hash) Clone() *Hash {
	c := &Hash{row: h.row.clone(), limits: h.limits}
	if h.large != nil {
		c.large = &largeHash{Dict: *h.large.Clone(nil), valueBytes: h.large.valueBytes}
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
