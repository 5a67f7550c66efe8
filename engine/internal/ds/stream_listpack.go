package ds

// The sizes that the entries of a stream would have in Redis, where a chunk is a listpack:
// a header, the elements and an end mark. An element is a string or an integer, with its
// length behind it so that it can be read from either end. Before the entries come the
// number of those present and of those deleted, both of which take one byte here, then
// the fields of the first entry, and a zero.

const (
	packedFrame  = 6 + 1 // the header and the end mark
	packedDigit  = 2     // an integer from 0 to 127 with its length
	packedHeader = packedFrame + 3*packedDigit
)

// packedChunk is the size of a chunk without entries.
func packedChunk(fields [][]byte) int {
	size := packedHeader + packedInt(int64(len(fields)))
	for _, field := range fields {
		size += packedBytes(field)
	}
	return size
}

// packedEntry is the size of an entry: flags, the two differences of its ID to the first
// of the chunk, the number of its fields and the fields unless they are shared, the
// values, and at the end the number of all these.
func packedEntry(first, id StreamID, pairs [][]byte, shared bool) int {
	elements := 3 + len(pairs)/2
	size := packedDigit + packedInt(int64(id.Ms-first.Ms)) + packedInt(int64(id.Seq-first.Seq))
	if !shared {
		elements += 1 + len(pairs)/2
		size += packedInt(int64(len(pairs) / 2))
	}
	for i, b := range pairs {
		if !shared || i%2 == 1 {
			size += packedBytes(b)
		}
	}
	return size + packedInt(int64(elements))
}

// packedBytes is the size of an element: that of an integer if it reads as one.
func packedBytes(b []byte) int {
	if n, ok := ParseInt(b); ok {
		return packedInt(n)
	}
	size := len(b) + 5
	switch {
	case len(b) < 64:
		size = len(b) + 1
	case len(b) < 4096:
		size = len(b) + 2
	}
	return size + packedLength(size)
}

// packedInt is the size of an integer.
func packedInt(n int64) int {
	size := 9
	switch {
	case 0 <= n && n <= 127:
		size = 1
	case -1<<12 <= n && n < 1<<12:
		size = 2
	case -1<<15 <= n && n < 1<<15:
		size = 3
	case -1<<23 <= n && n < 1<<23:
		size = 4
	case -1<<31 <= n && n < 1<<31:
		size = 5
	}
	return size + packedLength(size)
}

// packedLength is how many bytes the length behind an element takes. The odd limits are
// Redis's.
func packedLength(size int) int {
	switch {
	case size <= 127:
		return 1
	case size < 1<<14-1:
		return 2
	case size < 1<<21-1:
		return 3
	case size < 1<<28-1:
		return 4
	default:
		return 5
	}
}
