package lua51

import "math"

// hashedBytes is how long a text may be for all of it to make its hash. The
// original takes all of every text; here that would hold up others.
const hashedBytes = 64 << 10

// hashOf is the hash of a key, as the original computes it. Only objects have
// none that is the same there: their address makes it.
func hashOf(key Value) uint32 {
	switch {
	case key.isString():
		text := key.text()
		if len(text) > hashedBytes {
			return textHash(text[:hashedBytes/2], len(text)) ^ textHash(text[len(text)-hashedBytes/2:], 0)
		}
		return textHash(text, len(text))
	case key.isNumber():
		f := key.float()
		if f == 0 { // 0 and -0 are one key
			return 0
		}
		bits := math.Float64bits(f)
		return uint32(bits) + uint32(bits>>32)
	case key.word < stringWord:
		return uint32(key.word & 1)
	}
	return uint32(uintptr(key.ref))
}

func textHash(text string, seed int) uint32 {
	h := uint32(seed)
	for i := len(text) - 1; i >= 0; i-- {
		h ^= h<<5 + h>>2 + uint32(text[i])
	}
	return h
}

// mainPlace is where among so many nodes a key should be.
func mainPlace(key Value, hash uint32, nodes int) int {
	if key.word < tableWord { // a text or a boolean
		return int(hash) & (nodes - 1)
	}
	return int(hash % (uint32(nodes-1) | 1))
}
