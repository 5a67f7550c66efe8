// Package check looks for damage in the files that an engine and Redis keep, and repairs what can be:
// append-only files, alone or as a set with a manifest, and RDB files. It is for tools; nothing may
// be writing to the files meanwhile.
//
// It reads with the very code that loads the files, in its strict mode, so what it
// calls whole is loaded. It changes nothing but by Trim, which the caller asks for.
//
// Reports are values with names for JSON. To check another kind of file: a report and a function that
// fills it, in a file of its own.
package check

import "io"

// Progress is told how much of a file has been read, about once a megabyte. It may be nil.
type Progress func(readBytes, sizeBytes int64)

const progressBytes = 1 << 20

func (p Progress) count(from io.Reader, size int64) io.Reader {
	if p == nil {
		return from
	}
	return &counted{from: from, to: p, size: size}
}

type counted struct {
	from             io.Reader
	to               Progress
	read, told, size int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if c.read += int64(n); c.read-c.told >= progressBytes {
		c.told = c.read
		c.to(c.read, c.size)
	}
	return n, err
}
