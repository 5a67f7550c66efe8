package ds

// Limits are the sizes up to which Redis keeps a small collection in a compact
// encoding. Here they decide what OBJECT ENCODING says, and what Redis does
// otherwise in the one encoding and the other; a Set of integers really is
// another structure.
//
// A collection points at the limits of the engine that it belongs to, so that
// changing them holds for what is written from then on. Once it has been too
// large it points at none: it never becomes compact again.
type Limits struct {
	HashEntries, HashBytes           int // most fields; longest field or value
	SortedSetEntries, SortedSetBytes int // most members; longest member
	SetIntegers                      int // most members of a Set of integers
}

// DefaultLimits are those of Redis 7.0.
func DefaultLimits() Limits {
	return Limits{HashEntries: 512, HashBytes: 64, SortedSetEntries: 128, SortedSetBytes: 64, SetIntegers: 512}
}

// usual are the limits of a collection that belongs to no engine yet.
var usual = DefaultLimits()
