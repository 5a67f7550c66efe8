package lua

import (
	"math"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The library struct: packs values the way C lays them out on a 64-bit
// machine. A format is read one directive at a time by structFormat.

const maxStructInt = 32

type structFormat struct {
	l         *lua51.Thread
	rest      string
	bigEndian bool
	alignment int
}

func (s *state) structLibrary() library {
	return s.functions(map[string]lua51.GoFunction{
		"pack": s.structPack, "unpack": s.structUnpack, "size": structSize,
	})
}

// number reads digits from the format; otherwise without any.
func (f *structFormat) number(otherwise int) int {
	if f.rest == "" || !isDigit(f.rest[0]) {
		return otherwise
	}
	n := 0
	for f.rest != "" && isDigit(f.rest[0]) {
		f.l.Pass(1)
		if n > (math.MaxInt32-int(f.rest[0]-'0'))/10 {
			f.l.Raise("integral size overflow")
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
			f.l.Raise("integral size %d is larger than limit of %d", size, maxStructInt)
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
			f.l.Raise("alignment %d is not a power of 2", align)
		}
		f.alignment = align
	default:
		f.l.ArgError(1, "invalid format option '"+string(rune(option))+"'")
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

func (s *state) structPack(l *lua51.Thread) int {
	f := structFormat{l: l, rest: checkString(l, 1), alignment: 1}
	l.Push(lua51.Nil) // a missing argument is nil in messages, as in the original
	o := s.output(l)
	arg := 2
	for f.rest != "" {
		l.Pass(1)
		o.tidy()
		option, size := f.next()
		for range f.padding(option, size, o.len()) {
			o.text = append(o.text, 0)
		}
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			o.text = append(o.text, f.bytes(structBits(checkNumber(l, arg)), size)...)
		case 'x':
			o.text = append(o.text, 0)
			continue
		case 'f':
			o.text = append(o.text, f.bytes(uint64(math.Float32bits(float32(checkNumber(l, arg)))), 4)...)
		case 'd':
			o.text = append(o.text, f.bytes(math.Float64bits(checkNumber(l, arg)), 8)...)
		case 'c', 's':
			addStructText(&o, option, size, arg)
		default:
			f.control(option)
			continue
		}
		arg++
	}
	l.Push(o.value())
	return 1
}

func addStructText(o *output, option byte, size, arg int) {
	text := checkString(o.l, arg)
	if option == 's' {
		o.add(text)
		o.text = append(o.text, 0)
		return
	}
	if size == 0 {
		size = len(text)
	}
	if len(text) < size {
		o.l.ArgError(arg+1, "string too short")
	}
	o.add(text[:size])
}

// structBits wraps a negative number, as a conversion in C does.
func structBits(n float64) uint64 {
	if n < 0 {
		return uint64(lua51.ToInt64(n))
	}
	return unsigned(n)
}

func (s *state) structUnpack(l *lua51.Thread) int {
	f := structFormat{l: l, rest: checkString(l, 1), alignment: 1}
	data := checkString(l, 2)
	at := optInt(l, 3, 1) - 1
	if at == -1 { // what is below is beyond all data in C
		l.ArgError(3, "offset must be 1 or greater")
	}
	l.SetTop(2)
	for f.rest != "" {
		l.Pass(1)
		option, size := f.next()
		at += f.padding(option, size, at)
		if size > len(data) || at < 0 || at > len(data)-size {
			l.ArgError(2, "data string too short")
		}
		switch option {
		case 'x':
			at++
			continue
		case 'c':
			if size == 0 {
				size = f.counted(len(data) - at)
			}
			l.Push(s.piece(data, at, at+size))
		case 's':
			end := strings.IndexByte(data[at:], 0)
			l.PassBytes(max(end, len(data)-at))
			if end < 0 {
				l.Raise("unfinished string in data")
			}
			l.Push(s.piece(data, at, at+end))
			size = end + 1
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I', 'f', 'd':
			l.Push(f.read(data[at:at+size], option))
		default:
			f.control(option)
			continue
		}
		at += size
		if l.Top() >= maxResults-2 {
			l.Raise("too many results to unpack")
		}
	}
	l.PushInt(at + 1)
	return l.Top() - 2
}

// counted takes the size of "c0" from the value unpacked before it.
func (f *structFormat) counted(room int) int {
	n, ok := f.l.Arg(f.l.Top()).AsNumber()
	if f.l.Top() == 2 || !ok {
		f.l.Raise("format 'c0' needs a previous size")
	}
	f.l.Pop()
	if n < 0 || n > float64(room) {
		f.l.ArgError(2, "data string too short")
	}
	return int(n)
}

func (f *structFormat) read(data string, option byte) lua51.Value {
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
		return lua51.Number(float64(math.Float32frombits(uint32(v))))
	case 'd':
		return lua51.Number(float64(math.Float64frombits(v)))
	case 'b', 'h', 'l', 'i':
		shift := max(64-8*len(data), 0)
		return lua51.Number(float64(int64(v) << shift >> shift))
	}
	return lua51.Number(float64(v))
}

func structSize(l *lua51.Thread) int {
	f := structFormat{l: l, rest: checkString(l, 1), alignment: 1}
	at := 0
	for f.rest != "" {
		l.Pass(1)
		option, size := f.next()
		at += f.padding(option, size, at)
		switch option {
		case 's':
			l.ArgError(1, "option 's' has no fixed size")
		case 'c':
			if size == 0 {
				l.ArgError(1, "option 'c0' has no fixed size")
			}
		}
		if size == 0 && strings.IndexByte("csiI", option) < 0 {
			f.control(option)
		}
		if at += size; at > math.MaxInt32 {
			l.ArgError(1, "item size overflow")
		}
	}
	l.PushNumber(float64(at))
	return 1
}
