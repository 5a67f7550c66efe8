package command

import (
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

const (
	// defaultMaxStringBytes is Redis's proto-max-bulk-len, for a Ctx that sets
	// no bound.
	defaultMaxStringBytes = 512 << 20

	errOffset Error = "ERR offset is out of range"
)

// checkLength refuses to make a string of size bytes longer by added if it
// would pass the bound.
func checkLength(c *Ctx, size, added int64) error {
	if size > c.maxStringBytes()-added {
		return ErrTooLong
	}
	return nil
}

func (c *Ctx) maxStringBytes() int64 {
	if c.MaxStringBytes == 0 {
		return defaultMaxStringBytes
	}
	return c.MaxStringBytes
}

func appendString(c *Ctx) error {
	key, tail := c.Args[1], c.Args[2]
	s, found, err := Read[*keyspace.String](c, key)
	if err != nil {
		return err
	}
	length := len(tail)
	if found {
		if err := checkLength(c, int64(len(s.Bytes)), int64(len(tail))); err != nil {
			return err
		}
		s.Bytes, s.Raw = append(s.Bytes, tail...), true
		length = len(s.Bytes)
	} else {
		storeString(c, key, tail)
	}
	c.Touch(key, eventAppend)
	c.Out.Int(int64(length))
	return nil
}

func strlen(c *Ctx) error {
	s, found, err := Read[*keyspace.String](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Int(0)
		return nil
	}
	c.Out.Int(int64(len(s.Bytes)))
	return nil
}

// getrange has its own idea of indexes, unlike the ranges of lists (Span): an
// end before the beginning of the string is the first byte.
func getrange(c *Ctx) error {
	start, err := c.Int(2)
	if err != nil {
		return err
	}
	end, err := c.Int(3)
	if err != nil {
		return err
	}
	s, found, err := Read[*keyspace.String](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found || (start < 0 && end < 0 && start > end) {
		c.Out.BulkString("")
		return nil
	}
	length := int64(len(s.Bytes))
	if start < 0 {
		start = max(start+length, 0)
	}
	if end < 0 {
		end = max(end+length, 0)
	}
	end = min(end, length-1)
	if start > end {
		c.Out.BulkString("")
		return nil
	}
	c.Out.Bulk(s.Bytes[start : end+1])
	return nil
}

// setrange of nothing changes nothing, not even the length.
func setrange(c *Ctx) error {
	key, part := c.Args[1], c.Args[3]
	offset, err := c.Int(2)
	if err != nil {
		return err
	}
	if offset < 0 {
		return errOffset
	}
	s, found, err := Read[*keyspace.String](c, key)
	if err != nil {
		return err
	}
	if len(part) > 0 {
		if err := checkLength(c, offset, int64(len(part))); err != nil {
			return err
		}
		if !found {
			s = &keyspace.String{}
			c.DB.Put(key, s, c.NowMs())
		}
		overwrite(s, int(offset), part)
		c.Touch(key, eventSetRange)
	}
	if s == nil {
		c.Out.Int(0)
		return nil
	}
	c.Out.Int(int64(len(s.Bytes)))
	return nil
}

func overwrite(s *keyspace.String, offset int, part []byte) {
	if missing := offset + len(part) - len(s.Bytes); missing > 0 {
		s.Bytes = append(s.Bytes, make([]byte, missing)...)
	}
	copy(s.Bytes[offset:], part)
	s.Raw = true
}
