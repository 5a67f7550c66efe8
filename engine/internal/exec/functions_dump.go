package exec

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
)

// The payload of FUNCTION DUMP: for each library a byte and its text as a
// string of an RDB file; then the version of that format, and the CRC64 of
// all before it, both little-endian.

const (
	functionOpcode     = 0xf5
	oldFunctionOpcode  = 0xf6 // of candidates for 7.0
	dumpVersion        = 10   // of Redis 7.0
	dumpFooterBytes    = 10
	longestLibraryText = 512 << 20
)

func (m *Machine) functionDump(c *command.Ctx) error {
	var payload []byte
	for _, library := range m.library.sorted() {
		payload = append(payload, functionOpcode)
		payload = appendDumpLength(payload, len(library.Code))
		payload = append(payload, library.Code...)
	}
	payload = binary.LittleEndian.AppendUint16(payload, dumpVersion)
	c.Out.Bulk(binary.LittleEndian.AppendUint64(payload, crc64(payload)))
	return nil
}

// appendDumpLength writes a length as RDB files do.
func appendDumpLength(payload []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(payload, byte(n))
	case n < 1<<14:
		return append(payload, 0x40|byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(payload, 0x80), uint32(n))
}

func (m *Machine) functionRestore(c *command.Ctx) error {
	flush, replace := false, false
	switch {
	case len(c.Args) > 4:
		return wrongSubcommand("FUNCTION", c.Args[1])
	case len(c.Args) == 3, command.Is(c.Args[3], "APPEND"):
	case command.Is(c.Args[3], "REPLACE"):
		replace = true
	case command.Is(c.Args[3], "FLUSH"):
		flush = true
	default:
		return command.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
	}
	restored, err := m.readDump(c, c.Args[2])
	if err != nil {
		return err
	}
	if err := m.join(restored, flush, replace); err != nil {
		return err
	}
	c.Out.SimpleString("OK")
	return nil
}

// join adds restored libraries to those there are, all or none.
func (m *Machine) join(restored []*lua.Library, flush, replace bool) error {
	if flush {
		for _, library := range m.library.sorted() {
			m.library.remove(library)
		}
	}
	for _, library := range restored {
		if m.library.byName[library.Name] != nil && !replace {
			m.library.forget(restored...)
			return command.Error("ERR Library " + library.Name + " already exists")
		}
	}
	return m.library.add(restored...)
}

// readDump loads the libraries of a payload, without adding them.
func (m *Machine) readDump(c *command.Ctx, payload []byte) ([]*lua.Library, error) {
	if !validDump(payload) {
		return nil, command.Error("ERR DUMP payload version or checksum are wrong")
	}
	// They are gathered in a registry of their own, which checks their names.
	gathered := newLibraries(nil)
	gathered.runner = m.library.runner
	fail := func(err error) ([]*lua.Library, error) {
		gathered.forget(gathered.sorted()...)
		return nil, err
	}
	d := dumpReader{rest: payload}
	for len(d.rest) > dumpFooterBytes {
		switch opcode := d.rest[0]; {
		case opcode == oldFunctionOpcode:
			return fail(command.Error("ERR Pre-GA function format not supported"))
		case opcode != functionOpcode:
			return fail(command.Error("ERR given type is not a function"))
		}
		d.rest = d.rest[1:]
		code, err := d.text()
		if err != nil {
			return fail(command.Error("ERR Failed loading library payload"))
		}
		library, err := m.loadLibrary(c, &gathered, code, false)
		if err == nil {
			err = gathered.add(library)
		}
		if err != nil {
			return fail(err)
		}
	}
	return gathered.sorted(), nil
}

func validDump(payload []byte) bool {
	body := len(payload) - dumpFooterBytes
	if body < 0 {
		return false
	}
	version := binary.LittleEndian.Uint16(payload[body:])
	sum := binary.LittleEndian.Uint64(payload[body+2:])
	return version <= dumpVersion && sum == crc64(payload[:body+2])
}

// dumpReader reads the strings of a payload.
type dumpReader struct{ rest []byte }

var errShortDump = errors.New("the payload ends too early")

func (d *dumpReader) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.rest)) {
		return nil, errShortDump
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken, nil
}

// length reads a length, or the number of a special form.
func (d *dumpReader) length() (n uint64, special bool, err error) {
	head, err := d.take(1)
	if err != nil {
		return 0, false, err
	}
	low := uint64(head[0] & 0x3f)
	width := uint64(0)
	switch {
	case head[0]>>6 == 0:
		return low, false, nil
	case head[0]>>6 == 3:
		return low, true, nil
	case head[0]>>6 == 1:
		next, err := d.take(1)
		if err != nil {
			return 0, false, err
		}
		return low<<8 | uint64(next[0]), false, nil
	case head[0] == 0x80:
		width = 4
	case head[0] == 0x81:
		width = 8
	default:
		return 0, false, errors.New("no such form of a length")
	}
	number, err := d.take(width)
	for _, b := range number {
		n = n<<8 | uint64(b)
	}
	return n, false, err
}

func (d *dumpReader) text() ([]byte, error) {
	n, special, err := d.length()
	switch {
	case err != nil:
		return nil, err
	case !special:
		return d.take(n)
	case n <= 2: // an integer of 1, 2 or 4 bytes
		return d.integer(1 << n)
	case n == 3:
		return d.compressed()
	}
	return nil, errors.New("no such form of a string")
}

func (d *dumpReader) integer(width int) ([]byte, error) {
	b, err := d.take(uint64(width))
	if err != nil {
		return nil, err
	}
	var n int64
	for i := width - 1; i >= 0; i-- {
		n = n<<8 | int64(b[i])
	}
	shift := 64 - 8*width
	return strconv.AppendInt(nil, n<<shift>>shift, 10), nil
}

func (d *dumpReader) compressed() ([]byte, error) {
	packed, special, err := d.length()
	if err != nil || special {
		return nil, errShortDump
	}
	size, special, err := d.length()
	if err != nil || special || size > longestLibraryText {
		return nil, errShortDump
	}
	in, err := d.take(packed)
	if err != nil {
		return nil, err
	}
	return decompress(in, int(size))
}
