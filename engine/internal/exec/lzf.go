package exec

import "errors"

var errBadLZF = errors.New("bad compressed data")

// decompress undoes LZF: a stream of literal runs (a byte below 32, one less
// than the length) and of references back (3 bits of length, 13 of distance;
// a length of 7 goes on in the next byte). The result must have size bytes.
func decompress(in []byte, size int) ([]byte, error) {
	var out []byte
	for len(in) > 0 {
		head := int(in[0])
		in = in[1:]
		if head < 32 {
			n := head + 1
			if n > len(in) || len(out)+n > size {
				return nil, errBadLZF
			}
			out, in = append(out, in[:n]...), in[n:]
			continue
		}
		n := head >> 5
		if n == 7 {
			if len(in) == 0 {
				return nil, errBadLZF
			}
			n += int(in[0])
			in = in[1:]
		}
		if len(in) == 0 {
			return nil, errBadLZF
		}
		from := len(out) - (head&31<<8 | int(in[0])) - 1
		in = in[1:]
		n += 2
		if from < 0 || len(out)+n > size {
			return nil, errBadLZF
		}
		for i := range n { // it may reach into what it writes
			out = append(out, out[from+i])
		}
	}
	if len(out) != size {
		return nil, errBadLZF
	}
	return out, nil
}
