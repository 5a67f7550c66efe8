package lua

import (
	"math"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// The library struct: packs values the way C lays them out on a 64-bit
// machine. A format is read one directive at a time by structFormat.

const maxStructInt = 32

type structFormat struct {
	l         *glua.LState
	function  string
	rest      string
	bigEndian bool
	alignment int
}

func (s *state) structLibrary() library {
	return s.functions(map[string]glua.LGFunction{
		"pack": s.structPack, "unpack": structUnpack, "size": structSize,
	})
}

// number reads digits from the format; otherwise without any.
func (f *structFormat) number(otherwise int) int {
	if f.rest == "" || !isDigit(f.rest[0]) {
		return otherwise
	}
	n := 0
	for f.rest != "" && isDigit(f.rest[0]) {
		if n > (math.MaxInt32-int(f.rest[0]-'0'))/10 {
			raise(f.l, "integral size overflow")
		}
		n = n*10 + int(f.rest[0]-'0')
		f.rest = f.rest[1:]
	}
	return n
}

// next takes one directive; size is that of its value.
func (f *structFormat) next() (option byte, size int) {
	option = f.rest[0]
	f.rest = f.rest[1:]
	switch option {
	case 'b', 'B', 'x':
		size = 1
	case 'h', 'H':
		size = 2
	case 'l', 'L', 'T', 'd':
		size = 8
	case 'f':
		size = 4
	case 'c':
		size = f.number(1)
	case 'i', 'I':
		size = f.number(4)
		if size > maxStructInt {
			raise(f.l, "integral size %d is larger than limit of %d", size, maxStructInt)
		}
	}
	return option, size
}

// padding says how many bytes bring at to the alignment of a directive.
func (f *structFormat) padding(option byte, size, at int) int {
	if size == 0 || strings.IndexByte("hHlLTfdiIbB", option) < 0 {
		return 0
	}
	align := min(size, f.alignment)
	if align <= 1 {
		return 0
	}
	return (align - at&(align-1)) & (align - 1)
}

// control handles what is no value.
func (f *structFormat) control(option byte) {
	switch option {
	case ' ':
	case '>':
		f.bigEndian = true
	case '<':
		f.bigEndian = false
	case '!':
		align := f.number(8)
		if align == 0 || align&(align-1) != 0 {
			raise(f.l, "alignment %d is not a power of 2", align)
		}
		f.alignment = align
	default:
		argError(f.l, 1, f.function, "invalid format option '"+string(rune(option))+"'")
	}
}

func (f *structFormat) bytes(v uint64, size int) []byte {
	out := make([]byte, size)
	for i := 0; i < size; i++ {
		at := i
		if f.bigEndian {
			at = size - 1 - i
		}
		out[at] = byte(v)
		v >>= 8
	}
	return out
}

func (s *state) structPack(l *glua.LState) int {
	f := structFormat{l: l, function: "pack", rest: checkString(l, 1, "pack"), alignment: 1}
	l.Push(glua.LNil) // a missing argument is nil in messages, as in the original
	var out []byte
	arg := 2
	for f.rest != "" {
		option, size := f.next()
		out = append(out, make([]byte, f.padding(option, size, len(out)))...)
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			n := checkNumber(l, arg, "pack")
			out = append(out, f.bytes(structBits(n), size)...)
		case 'x':
			out = append(out, 0)
			continue
		case 'f':
			out = append(out, f.bytes(uint64(math.Float32bits(float32(checkNumber(l, arg, "pack")))), 4)...)
		case 'd':
			out = append(out, f.bytes(math.Float64bits(float64(checkNumber(l, arg, "pack"))), 8)...)
		case 'c', 's':
			out = structText(l, out, option, size, arg)
		default:
			f.control(option)
			continue
		}
		arg++
		if len(out) > maxTextBytes {
			raise(l, noMemory)
		}
	}
	s.meter.reserve(l, len(out))
	l.Push(glua.LString(out))
	return 1
}

func structText(l *glua.LState, out []byte, option byte, size, arg int) []byte {
	text := checkString(l, arg, "pack")
	if option == 's' {
		return append(append(out, text...), 0)
	}
	if size == 0 {
		size = len(text)
	}
	if len(text) < size {
		argError(l, arg+1, "pack", "string too short")
	}
	return append(out, text[:size]...)
}

// structBits wraps a negative number, as a conversion in C does.
func structBits(n glua.LNumber) uint64 {
	if n < 0 {
		return uint64(toInt64(n))
	}
	return unsigned(n)
}

func structUnpack(l *glua.LState) int {
	f := structFormat{l: l, function: "unpack", rest: checkString(l, 1, "unpack"), alignment: 1}
	data := checkString(l, 2, "unpack")
	at := optInt(l, 3, "unpack", 1) - 1
	if at < 0 {
		argError(l, 3, "unpack", "offset must be 1 or greater")
	}
	var values []glua.LValue
	for f.rest != "" {
		option, size := f.next()
		at += f.padding(option, size, at)
		if size > len(data) || at > len(data)-size {
			argError(l, 2, "unpack", "data string too short")
		}
		switch option {
		case 'x':
			at++
			continue
		case 'c':
			if size == 0 {
				size, values = f.counted(values, len(data)-at)
			}
			values = append(values, piece(data, at, at+size))
		case 's':
			end := strings.IndexByte(data[at:], 0)
			if end < 0 {
				raise(l, "unfinished string in data")
			}
			values = append(values, piece(data, at, at+end))
			size = end + 1
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I', 'f', 'd':
			values = append(values, f.read(data[at:at+size], option))
		default:
			f.control(option)
			continue
		}
		at += size
		if len(values) >= maxResults-4 {
			raise(l, "too many results to unpack")
		}
	}
	for _, v := range values {
		l.Push(v)
	}
	l.Push(glua.LNumber(at + 1))
	return len(values) + 1
}

// counted takes the size of "c0" from the value unpacked before it.
func (f *structFormat) counted(values []glua.LValue, room int) (int, []glua.LValue) {
	if len(values) == 0 {
		raise(f.l, "format 'c0' needs a previous size")
	}
	n, ok := values[len(values)-1].(glua.LNumber)
	if !ok {
		raise(f.l, "format 'c0' needs a previous size")
	}
	if n < 0 || n > glua.LNumber(room) {
		argError(f.l, 2, "unpack", "data string too short")
	}
	return int(n), values[:len(values)-1]
}

func (f *structFormat) read(data string, option byte) glua.LValue {
	var v uint64
	for i := range len(data) {
		at := i
		if !f.bigEndian {
			at = len(data) - 1 - i
		}
		v = v<<8 | uint64(data[at])
	}
	switch option {
	case 'f':
		return glua.LNumber(math.Float32frombits(uint32(v)))
	case 'd':
		return glua.LNumber(math.Float64frombits(v))
	case 'b', 'h', 'l', 'i':
		shift := max(64-8*len(data), 0)
		return glua.LNumber(int64(v) << shift >> shift)
	}
	return glua.LNumber(v)
}

func structSize(l *glua.LState) int {
	f := structFormat{l: l, function: "size", rest: checkString(l, 1, "size"), alignment: 1}
	at := 0
	for f.rest != "" {
		option, size := f.next()
		at += f.padding(option, size, at)
		switch option {
		case 's':
			argError(l, 1, "size", "option 's' has no fixed size")
		case 'c':
			if size == 0 {
				argError(l, 1, "size", "option 'c0' has no fixed size")
			}
		}
		if size == 0 && strings.IndexByte("csiI", option) < 0 {
			f.control(option)
		}
		if at += size; at > math.MaxInt32 {
			argError(l, 1, "size", "item size overflow")
		}
	}
	l.Push(glua.LNumber(at))
	return 1
}
