package ds

import (
	"iter"
	"math/rand/v2"
)

// Hash maps fields to string values. Its costs are those of Dict.
type Hash struct {
	fields Dict[string]
	limits *Limits // nil once it has been too large for a listpack

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
func (h *Hash) Len() int { return h.fields.Len() }

// Get returns the value of field, and whether it is there.
func (h *Hash) Get(field []byte) (string, bool) { return h.fields.Get(field) }

// Set stores value under field, and says whether the field is new.
func (h *Hash) Set(field []byte, value string) (inserted bool) {
	old, replaced := h.fields.Swap(field, value)
	h.valueBytes += StringBytes(len(value)) - StringBytes(len(old))
	if l := h.limits; l != nil &&
		(len(field) > l.HashBytes || len(value) > l.HashBytes || h.fields.Len() > l.HashEntries) {
		h.limits = nil
	}
	return !replaced
}

// Delete removes field and says whether it was there.
func (h *Hash) Delete(field []byte) bool {
	old, ok := h.fields.Delete(field)
	h.valueBytes -= StringBytes(len(old))
	return ok
}

// Random returns a random field, each with the same probability; ok is false if
// there is none.
func (h *Hash) Random(r *rand.Rand) (field, value string, ok bool) { return h.fields.Random(r) }

// Scan is one step of a walk; see Dict.Scan.
func (h *Hash) Scan(cursor uint64, visit func(field, value string)) (next uint64) {
	return h.fields.Scan(cursor, visit)
}

// All walks over all fields, as long as none was deleted in the order in which they came,
// as people see small hashes on Redis. Nothing may be deleted during the walk.
func (h *Hash) All() iter.Seq2[string, string] { return h.fields.Forward() }

// Clone returns a copy. O(n).
func (h *Hash) Clone() *Hash {
	return &Hash{fields: *h.fields.Clone(nil), limits: h.limits, valueBytes: h.valueBytes}
}

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for such a hash.
func (h *Hash) Encoding() string {
	if h.limits == nil {
		return "hashtable"
	}
	return "listpack"
}
