package files

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// Segments are NUMBER.history, from 1 on. All numbers in them are little-endian.
//
//	header   magic 8, version 4, mark 4, segment 8, entries before 8, the last one's ms 8 and seq 8,
//	         length of the queue's name 4, the name in 512, CRC32C of all that 4
//	record   mark 4, CRC32C of the rest 4, length of the data 4, place in its call 4, number 8, ms 8, seq 8, data
//
// The header has one length and one layout in all versions, so that a program knows a version that it cannot read.
//
// The mark is random, another in each segment. Behind damage the next record is found by it, and no data can pretend to
// be a record, because nobody who enqueues knows the mark.
//
// Numbers count entries from 1 on: so a hole is noticed where nothing is damaged, and it is known how many are in it. A record
// knows where in its call of Append it was: those before that call were on disk when it was written. That tells damage from a
// call that a crash cut off.
const (
	version     = 1
	magic       = "sbhist\r\n"
	headerBytes = 8 + 4 + 4 + 8 + 8 + 8 + 8 + 4 + mostName + 4
	recordBytes = 4 + 4 + 4 + 4 + 8 + 8 + 8 // before the data
	mostName    = 512
	mostData    = 512 << 20 // what a server takes in one value
	suffix      = ".history"
	unfinished  = ".new" // after a segment's name, while it has no whole header
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type mark [4]byte

// header begins a segment.
type header struct {
	version uint32
	mark    mark
	segment uint64
	before  uint64 // how many entries are in the segments before it
	after   sequence.ID
	queue   string
}

// errHeader: there is no header that could be believed.
var errHeader = errors.New("its header is damaged")

func newMark() (m mark) {
	_, _ = rand.Read(m[:]) // never fails
	return m
}

func (h header) encode() []byte {
	b := make([]byte, 0, headerBytes)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, h.version)
	b = append(b, h.mark[:]...)
	for _, n := range []uint64{h.segment, h.before, h.after.Ms, h.after.Seq} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h.queue)))
	b = append(b, h.queue...)
	b = b[:headerBytes-4] // the rest of the name is zeros
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeHeader reads what encode has written. Without an error all of it is to be believed; with errHeader nothing is, but
// the mark may be right.
func decodeHeader(b []byte) (h header, err error) {
	if len(b) < headerBytes {
		return h, errHeader
	}
	h.version = binary.LittleEndian.Uint32(b[8:])
	h.mark = mark(b[12:])
	h.segment = binary.LittleEndian.Uint64(b[16:])
	h.before = binary.LittleEndian.Uint64(b[24:])
	h.after = sequence.ID{Ms: binary.LittleEndian.Uint64(b[32:]), Seq: binary.LittleEndian.Uint64(b[40:])}
	name := binary.LittleEndian.Uint32(b[48:])
	sum := binary.LittleEndian.Uint32(b[headerBytes-4:])
	if string(b[:8]) != magic || crc32.Checksum(b[:headerBytes-4], castagnoli) != sum || name > mostName {
		return h, errHeader
	}
	h.queue = string(b[52 : 52+name])
	if h.version != version {
		return h, fmt.Errorf("%w: it has version %d, this program knows %d (read it with the program that wrote it, or a newer one)",
			history.ErrOtherVersion, h.version, version)
	}
	return h, nil
}

// record is an entry in a segment.
type record struct {
	number uint64 // of the entries of this history, from 1 on
	place  uint32 // in the call that it was written in, from 0 on
	id     sequence.ID
	data   []byte // of the reader's buffer
}

// onDisk is the number of an entry that was durable when this one was written, as all before it were.
func (r record) onDisk() uint64 { return r.number - 1 - uint64(r.place) }

func (r record) append(b []byte, m mark) []byte {
	start := len(b)
	b = append(b, m[:]...)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.data)))
	b = binary.LittleEndian.AppendUint32(b, r.place)
	for _, n := range []uint64{r.number, r.id.Ms, r.id.Seq} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(b, r.data...)
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(b[start+8:], castagnoli))
	return b
}

// decodeRecord reads the head of a record, and how long its data are.
func decodeRecord(b []byte) (r record, sum, dataBytes uint32) {
	r.place = binary.LittleEndian.Uint32(b[12:])
	r.number = binary.LittleEndian.Uint64(b[16:])
	r.id = sequence.ID{Ms: binary.LittleEndian.Uint64(b[24:]), Seq: binary.LittleEndian.Uint64(b[32:])}
	return r, binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
}

func segmentName(number uint64) string { return fmt.Sprintf("%010d%s", number, suffix) }

// segmentNumber is 0 for what is no segment's name.
func segmentNumber(path string) uint64 {
	name := filepath.Base(path)
	number, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 64)
	if err != nil || segmentName(number) != name {
		return 0
	}
	return number
}
