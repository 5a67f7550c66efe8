package rdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// A file is
//
//	REDIS0010 | record ... | 0xff | checksum of all before it (8)
//
// A record begins with an opcode, or is a key: the number of its value's type, its
// name, its value. What is said of a key (expiry, use) and in which database it is
// (select) comes before it, each with an opcode of its own.

// Reader reads a file record by record, from a stream.
type Reader struct {
	// SkipChecksum is whether any checksum will do.
	SkipChecksum bool

	d       decoder
	version int
	db      int
	done    error // io.EOF after the end of the file
}

// NewReader returns a Reader of collections within the limits, which stay the caller's.
// It reads nothing yet.
func NewReader(from io.Reader, limits *ds.Limits) *Reader {
	return &Reader{d: decoder{source: newSource(from), limits: limits}}
}

// Version is the version of the format of the file; 0 before the first Next.
func (r *Reader) Version() int { return r.version }

// Offset is how many bytes of the input have been used.
func (r *Reader) Offset() int64 { return r.d.offset() }

// Next returns the next record. The error is io.EOF after the last one, when the
// checksum was right, and else an *Error; it stays. Keys with an empty collection,
// which some versions of Redis have left in files, are passed over.
func (r *Reader) Next() (Record, error) {
	record, err := r.NextInto(&Key{})
	if key, ok := record.(*Key); ok {
		return *key, err
	}
	return record, err
}

// NextInto is Next that puts a key where the caller wants it and returns a pointer to it:
// so that a key needs no memory but that of its name and its value.
func (r *Reader) NextInto(key *Key) (Record, error) {
	if r.done == nil && r.version == 0 {
		r.header()
	}
	for r.done == nil && !r.d.failed() {
		if record := r.record(key); record != nil && !r.d.failed() {
			return record, nil
		}
	}
	if r.d.failed() {
		r.done = r.d.err
	}
	return nil, r.done
}

// Rest is the input from behind the end of the file: there an append-only file
// goes on. It is to be used after Next has returned io.EOF, and Next not after it.
func (r *Reader) Rest() io.Reader {
	d := &r.d
	return io.MultiReader(bytes.NewReader(d.buf[d.pos:d.end]), d.from)
}

func (r *Reader) header() {
	r.d.begin()
	header := r.d.fixed(len(magic) + 4)
	version, err := strconv.ParseUint(string(header[len(magic):]), 10, 16)
	switch {
	case r.d.failed():
	case string(header[:len(magic)]) != magic || err != nil:
		r.d.fail("this is no RDB file")
	case version < 1 || version > versionMax:
		r.d.fail(fmt.Sprintf("a file of version %d; versions 1 to %d can be read", version, versionMax))
	}
	r.version = int(version)
}

// record reads the next record; nil if there is none to hand out.
func (r *Reader) record(key *Key) Record {
	*key = Key{DB: r.db}
	for !r.d.failed() {
		r.d.begin()
		opcode := r.d.byte()
		if opcode < opcodeFirst {
			return r.key(key, opcode)
		}
		switch opcode {
		case opExpireMs:
			key.ExpireAtMs = r.d.timeMs()
		case opExpireSec:
			key.ExpireAtMs = int64(int32(binary.LittleEndian.Uint32(r.d.fixed(4)))) * 1000
		case opIdle:
			key.IdleSec = r.d.length()
		case opFreq:
			key.Freq, key.HasFreq = r.d.byte(), true
		case opSelect:
			r.selectDB()
			key.DB = r.db
		case opResize:
			return Size{DB: r.db, Keys: r.d.length(), Expires: r.d.length()}
		case opAux:
			return Aux{Name: r.d.goString(), Value: r.d.goString()}
		case opFunction:
			return Function{Code: r.d.ownText()}
		case opFunctionOld:
			r.d.fail("functions in a format that only release candidates of Redis 7.0 had")
		case opModuleAux:
			r.d.failModule("data")
		case opEnd:
			r.finish()
			return nil
		}
	}
	return nil
}

func (r *Reader) selectDB() {
	db := r.d.length()
	if db >= keyspace.Databases {
		r.d.fail(fmt.Sprintf("the database %d: there are only %d", db, keyspace.Databases))
		return
	}
	r.db = int(db)
}

func (r *Reader) key(key *Key, valueType byte) Record {
	if valueType > typeStream3 {
		r.d.fail("neither an opcode nor a type of value: " + strconv.Itoa(int(valueType)))
		return nil
	}
	key.Name = r.d.ownText()
	key.Value = r.d.value(valueType)
	if r.d.failed() || isEmptyCollection(key.Value) {
		return nil
	}
	return key
}

// finish reads what follows the end.
func (r *Reader) finish() {
	r.done = io.EOF
	if r.version < versionSummed {
		return
	}
	sum := r.d.checksum()
	r.d.begin()
	written := binary.LittleEndian.Uint64(r.d.fixed(checksumLength))
	if written != 0 && written != sum && !r.SkipChecksum && !r.d.failed() { // 0 is none: rdbchecksum no
		r.d.fail("the checksum is wrong: the file is damaged")
	}
}
