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
	HyperLogLogBytes                 int // of one that is sparse
	SetIntegers                      int // most members of a Set of integers

	// When a chunk of a Stream is full; 0 is no limit, beside that of a file.
	StreamChunkEntries, StreamChunkBytes int
}

// DefaultLimits are those of Redis 7.0.
func DefaultLimits() Limits {
	return Limits{
		HashEntries: 512, HashBytes: 64, SortedSetEntries: 128, SortedSetBytes: 64, SetIntegers: 512, HyperLogLogBytes: 3000,
		StreamChunkEntries: 100, StreamChunkBytes: 4096,
	}
}

// usual are the limits of a collection that belongs to no engine yet.
var usual = DefaultLimits()
