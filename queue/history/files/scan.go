package files

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
)

// scan reads the records of one segment, wherever they are. It holds a window of the file, which moves forward and is as
// large as the largest record needs.
type scan struct {
	file io.ReaderAt
	size int64 // nothing is read behind it
	mark mark

	window []byte
	start  int64 // of the window
}

const (
	windowBytes = 1 << 18
	blockBytes  = 4096 // what a disk reads as a whole, or cannot read
)

var (
	errEnd    = errors.New("the file ends within an entry")
	errLength = errors.New("an entry has an impossible length")
	errMark   = errors.New("what is there is no entry")
	errSum    = errors.New("an entry has another checksum")
)

// at returns the bytes from an offset on, until the next call.
func (s *scan) at(offset int64, n int) ([]byte, error) {
	if offset < 0 || int64(n) > s.size-offset {
		return nil, errEnd
	}
	if from := offset - s.start; from >= 0 && from+int64(n) <= int64(len(s.window)) {
		return s.window[from : from+int64(n)], nil
	}
	want := int(min(s.size-offset, int64(max(n, windowBytes))))
	if cap(s.window) < want {
		s.window = make([]byte, want)
	}
	s.window, s.start = s.window[:want], offset
	if got, err := s.file.ReadAt(s.window, offset); got < want {
		s.window = s.window[:max(got, 0)]
		switch {
		case got >= n:
		case errors.Is(err, io.EOF):
			return nil, errEnd // it was cut while it is read
		default:
			return nil, err
		}
	}
	return s.window[:n], nil
}

// header reads the header. If it is damaged the mark is that of the first record, should that be whole.
func (s *scan) header() (header, error) {
	b, err := s.at(0, headerBytes)
	if errors.Is(err, errEnd) {
		return header{}, errHeader
	}
	if err != nil {
		return header{}, err
	}
	h, err := decodeHeader(b)
	s.mark = h.mark
	if !errors.Is(err, errHeader) {
		return h, err
	}
	if first, atErr := s.at(headerBytes, recordBytes); atErr == nil {
		s.mark = mark(first)
		if _, _, notOne := s.record(headerBytes); notOne != nil {
			s.mark = h.mark
		}
	}
	return h, err
}

// record reads the record at an offset, and where it ends. Its data are valid until the next call.
func (s *scan) record(offset int64) (r record, end int64, err error) {
	head, err := s.at(offset, recordBytes)
	if err != nil {
		return r, 0, err
	}
	if mark(head) != s.mark {
		return r, 0, errMark
	}
	r, sum, dataBytes := decodeRecord(head)
	if dataBytes > mostData {
		return r, 0, errLength
	}
	whole, err := s.at(offset, recordBytes+int(dataBytes))
	if err != nil {
		return r, 0, err
	}
	if crc32.Checksum(whole[8:], castagnoli) != sum {
		return r, 0, errSum
	}
	r.data = whole[recordBytes:]
	if r.number == 0 || r.id.String() == "" || uint64(r.place) >= r.number {
		return r, 0, errSum // whole, and nothing that this program writes
	}
	return r, offset + int64(len(whole)), nil
}

// next is where the next record begins, at an offset or behind it; the file's size if there is none.
func (s *scan) next(offset int64) int64 {
	for offset+recordBytes <= s.size {
		n := int(min(s.size-offset, windowBytes))
		b, err := s.at(offset, n)
		if err != nil {
			// A disk that cannot read some of it may read a block of it.
			n = int(min(s.size-offset, blockBytes-offset%blockBytes))
			if b, err = s.at(offset, n); err != nil {
				offset += int64(n)
				continue
			}
		}
		end := offset + int64(max(len(b)-len(s.mark)+1, 1)) // a mark may lie across the end
		for offset < end {
			found := -1
			if b, err = s.at(offset, int(min(end-offset+int64(len(s.mark))-1, s.size-offset))); err == nil {
				found = bytes.Index(b, s.mark[:])
			}
			if found < 0 {
				offset = end
				break
			}
			offset += int64(found)
			if _, _, err := s.record(offset); err == nil {
				return offset
			}
			offset++
		}
	}
	return s.size
}
