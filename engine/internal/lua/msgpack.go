package lua

import (
	"encoding/binary"
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The library cmsgpack, in the behaviour of lua-cmsgpack 0.4.

// maxUnpackDepth bounds nested tables, which take Go's stack.
const maxUnpackDepth = 8000

// maxPackDepth is where nested tables become nil.
const maxPackDepth = 16

func (s *state) msgpackLibrary() library {
	members := s.functions(map[string]lua51.GoFunction{
		"pack": s.pack, "unpack": s.unpackAll, "unpack_one": s.unpackOne, "unpack_limit": s.unpackLimit,
	})
	members["_NAME"] = lua51.String("cmsgpack")
	members["_VERSION"] = lua51.String("lua-cmsgpack 0.4.0")
	members["_COPYRIGHT"] = lua51.String("Copyright (C) 2012, Salvatore Sanfilippo")
	members["_DESCRIPTION"] = lua51.String("MessagePack C implementation for Lua")
	return members
}

func (s *state) pack(l *lua51.Thread) int {
	n := l.Top()
	if n == 0 {
		l.ArgError(0, "MessagePack pack needs input.")
	}
	p := packer{s.output(l)}
	for i := 1; i <= n; i++ {
		p.value(l.Arg(i), 0)
	}
	l.Push(p.out.value())
	return 1
}

type packer struct{ out output }

func (p *packer) value(v lua51.Value, depth int) {
	p.out.tidy()
	p.out.l.Pass(1)
	out := p.out.text
	switch v.Kind() {
	case lua51.KindString:
		text, _ := v.AsString()
		p.out.text = appendLength(out, len(text), 0xa0, 32, 0xd9, 0xda, 0xdb)
		p.out.add(text)
		return
	case lua51.KindBool:
		if v.Truth() {
			out = append(out, 0xc3)
		} else {
			out = append(out, 0xc2)
		}
	case lua51.KindNumber:
		f, _ := v.AsNumber()
		out = appendPackedNumber(out, f)
	case lua51.KindTable:
		if depth < maxPackDepth {
			p.table(v.AsTable(), depth+1)
			return
		}
		out = append(out, 0xc0)
	default:
		out = append(out, 0xc0)
	}
	p.out.text = out
}

// appendLength writes the head of a string, array or map: short in one byte,
// or a kind and 1, 2 or 4 bytes. A kind of 0 does not exist.
func appendLength(out []byte, n int, short byte, limit int, one, two, four byte) []byte {
	switch {
	case n < limit:
		return append(out, short|byte(n))
	case n <= 0xff && one != 0:
		return append(out, one, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(out, two), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(out, four), uint32(n))
}

func appendPackedNumber(out []byte, f float64) []byte {
	if n := lua51.ToInt64(f); float64(n) == f && f < 1<<63 {
		return appendPackedInt(out, n)
	}
	if single := float32(f); float64(single) == f {
		return binary.BigEndian.AppendUint32(append(out, 0xca), math.Float32bits(single))
	}
	return binary.BigEndian.AppendUint64(append(out, 0xcb), math.Float64bits(f))
}

func appendPackedInt(out []byte, n int64) []byte {
	switch {
	case 0 <= n && n <= 127 || -32 <= n && n < 0:
		return append(out, byte(n))
	case 0 <= n && n <= math.MaxUint8:
		return append(out, 0xcc, byte(n))
	case 0 <= n && n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(out, 0xcd), uint16(n))
	case 0 <= n && n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(out, 0xce), uint32(n))
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(out, 0xcf), uint64(n))
	case n >= math.MinInt8:
		return append(out, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(out, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(out, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(out, 0xd3), uint64(n))
}

func (p *packer) table(t *lua51.Table, depth int) {
	items, longest, isArray := 0, 0.0, true
	for k := range p.out.l.All(t) {
		p.out.l.Pass(1)
		items++
		f, ok := k.AsNumber()
		if !ok || f < 1 || f != float64(lua51.ToInt64(f)) {
			isArray = false
		}
		longest = max(longest, f)
	}
	if isArray && int(longest) == items {
		p.out.text = appendLength(p.out.text, items, 0x90, 16, 0, 0xdc, 0xdd)
		for i := 1; i <= items; i++ {
			p.value(t.GetInt(i), depth)
		}
		return
	}
	p.out.text = appendLength(p.out.text, items, 0x80, 16, 0, 0xde, 0xdf)
	for k, v := range p.out.l.All(t) {
		p.value(k, depth)
		p.value(v, depth)
	}
}

func (s *state) unpackAll(l *lua51.Thread) int { return s.unpackValues(l, 0, 0) }

func (s *state) unpackOne(l *lua51.Thread) int {
	return s.unpackValues(l, 1, optInt32(l, 2, 0))
}

func (s *state) unpackLimit(l *lua51.Thread) int {
	return s.unpackValues(l, checkInt32(l, 2), optInt32(l, 3, 0))
}

// unpackValues unpacks up to limit values from an offset and then gives the
// next offset first; with neither limit nor offset, all of them.
func (s *state) unpackValues(l *lua51.Thread, limit, offset int) int {
	text := checkString(l, 1)
	if offset < 0 || limit < 0 {
		l.Raise("Invalid request to unpack with offset of %d and limit of %d.", offset, len(text))
	}
	if offset > len(text) {
		l.Raise("Start offset %d greater than input length %d.", offset, len(text))
	}
	all := limit == 0 && offset == 0
	u := unpacker{state: s, l: l, rest: text[offset:]}
	l.SetTop(1)
	if !all {
		l.Push(lua51.Nil) // the next offset
	}
	n := 0
	for ; len(u.rest) > 0 && (all || n < limit); n++ {
		l.Push(u.value(0))
		if n >= maxResults {
			l.Raise("too many results to unpack")
		}
	}
	if all {
		return n
	}
	next := len(text) - len(u.rest)
	if len(u.rest) == 0 {
		next = -1
	}
	l.Args(2)[0] = lua51.Int(next)
	return n + 1
}

type unpacker struct {
	state *state
	l     *lua51.Thread
	rest  string
}

func (u *unpacker) take(n int) string {
	if n > len(u.rest) {
		u.l.Raise("Missing bytes in input.")
	}
	text := u.rest[:n]
	u.rest = u.rest[n:]
	return text
}

// text takes a string that is kept.
func (u *unpacker) text(n int) lua51.Value {
	b := u.l.NewBuilder(min(n, len(u.rest)))
	b.Add(u.take(n))
	return b.Text()
}

// number takes a big-endian unsigned integer of n bytes.
func (u *unpacker) number(n int) uint64 {
	var v uint64
	for _, b := range []byte(u.take(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (u *unpacker) value(depth int) lua51.Value {
	if depth > maxUnpackDepth {
		u.l.Raise("Bad data format in input.")
	}
	u.l.Pass(1)
	kind := u.take(1)[0]
	switch {
	case kind <= 0x7f:
		return lua51.Int(int(kind))
	case kind <= 0x8f:
		return u.table(int(kind&15), depth)
	case kind <= 0x9f:
		return u.array(int(kind&15), depth)
	case kind <= 0xbf:
		return u.text(int(kind & 31))
	case kind >= 0xe0:
		return lua51.Int(int(int8(kind)))
	}
	switch kind {
	case 0xc0:
		return lua51.Nil
	case 0xc2, 0xc3:
		return lua51.Bool(kind == 0xc3)
	case 0xca:
		return lua51.Number(float64(math.Float32frombits(uint32(u.number(4)))))
	case 0xcb:
		return lua51.Number(math.Float64frombits(u.number(8)))
	case 0xcc, 0xcd, 0xce:
		return lua51.Number(float64(u.number(1 << (kind - 0xcc))))
	case 0xcf: // read as signed, as lua-cmsgpack does
		return lua51.Number(float64(int64(u.number(8))))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		bits := 8 << (kind - 0xd0)
		return lua51.Number(float64(int64(u.number(bits/8)) << (64 - bits) >> (64 - bits)))
	case 0xd9, 0xda, 0xdb:
		return u.text(int(u.number(1 << (kind - 0xd9))))
	case 0xdc, 0xdd:
		return u.array(int(u.number(2<<(kind-0xdc))), depth)
	case 0xde, 0xdf:
		return u.table(int(u.number(2<<(kind-0xde))), depth)
	}
	u.l.Raise("Bad data format in input.")
	return lua51.Nil
}

func (u *unpacker) array(n, depth int) lua51.Value {
	t := u.open()
	for i := 1; i <= n; i++ {
		t.SetInt(u.state.vm, i, u.value(depth+1))
	}
	u.l.Pop()
	return t.Value()
}

// open makes a table, which is on the stack while it is filled, so that it is
// weighed.
func (u *unpacker) open() *lua51.Table {
	t := u.state.vm.NewTable(0, 0)
	u.l.PushTable(t)
	return t
}

func (u *unpacker) table(n, depth int) lua51.Value {
	t := u.open()
	for ; n > 0; n-- {
		key := u.value(depth + 1)
		value := u.value(depth + 1)
		u.l.RawSet(t, key, value)
	}
	u.l.Pop()
	return t.Value()
}
