package lua

import (
	"encoding/binary"
	"math"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// The library cmsgpack, in the behaviour of lua-cmsgpack 0.4.

// maxPackDepth is where nested tables become nil.
const maxPackDepth = 16

func (s *state) msgpackLibrary() library {
	members := s.functions(map[string]glua.LGFunction{
		"pack": s.pack, "unpack": s.unpackAll, "unpack_one": s.unpackOne, "unpack_limit": s.unpackLimit,
	})
	members["_NAME"] = glua.LString("cmsgpack")
	members["_VERSION"] = glua.LString("lua-cmsgpack 0.4.0")
	members["_COPYRIGHT"] = glua.LString("Copyright (C) 2012, Salvatore Sanfilippo")
	members["_DESCRIPTION"] = glua.LString("MessagePack C implementation for Lua")
	return members
}

func (s *state) pack(l *glua.LState) int {
	n := l.GetTop()
	if n == 0 {
		argError(l, 0, "pack", "MessagePack pack needs input.")
	}
	var out []byte
	for i := 1; i <= n; i++ {
		out = s.appendPacked(l, out, l.Get(i), 0)
	}
	s.meter.reserve(l, len(out))
	l.Push(glua.LString(out))
	return 1
}

func (s *state) appendPacked(l *glua.LState, out []byte, v glua.LValue, depth int) []byte {
	if len(out) > maxTextBytes {
		raise(l, noMemory)
	}
	switch v := v.(type) {
	case glua.LString:
		return append(appendLength(out, len(v), 0xa0, 32, 0xd9, 0xda, 0xdb), v...)
	case glua.LBool:
		if v {
			return append(out, 0xc3)
		}
		return append(out, 0xc2)
	case glua.LNumber:
		return appendPackedNumber(out, float64(v))
	case *glua.LTable:
		if depth == maxPackDepth {
			return append(out, 0xc0)
		}
		return s.appendPackedTable(l, out, s.unwrap(v), depth+1)
	}
	return append(out, 0xc0)
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
	if n := toInt64(glua.LNumber(f)); float64(n) == f && f < 1<<63 {
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

func (s *state) appendPackedTable(l *glua.LState, out []byte, t *glua.LTable, depth int) []byte {
	s.meter.pass(l, 1)
	items, longest, isArray := 0, glua.LNumber(0), true
	for k, _ := t.Next(glua.LNil); k != glua.LNil; k, _ = t.Next(k) {
		items++
		f, ok := k.(glua.LNumber)
		if !ok || f < 1 || f != glua.LNumber(toInt64(f)) {
			isArray = false
		}
		longest = max(longest, f)
	}
	if isArray && int(longest) == items {
		out = appendLength(out, items, 0x90, 16, 0, 0xdc, 0xdd)
		for i := 1; i <= items; i++ {
			out = s.appendPacked(l, out, t.RawGetInt(i), depth)
		}
		return out
	}
	out = appendLength(out, items, 0x80, 16, 0, 0xde, 0xdf)
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		out = s.appendPacked(l, s.appendPacked(l, out, k, depth), v, depth)
	}
	return out
}

func (s *state) unpackAll(l *glua.LState) int { return s.unpackValues(l, 0, 0, "unpack") }

func (s *state) unpackOne(l *glua.LState) int {
	return s.unpackValues(l, 1, optInt(l, 2, "unpack_one", 0), "unpack_one")
}

func (s *state) unpackLimit(l *glua.LState) int {
	return s.unpackValues(l, checkInt(l, 2, "unpack_limit"), optInt(l, 3, "unpack_limit", 0), "unpack_limit")
}

// unpackValues unpacks up to limit values from an offset and then gives the
// next offset first; with neither limit nor offset, all of them.
func (s *state) unpackValues(l *glua.LState, limit, offset int, function string) int {
	text := checkString(l, 1, function)
	if offset < 0 || limit < 0 {
		raise(l, "Invalid request to unpack with offset of %d and limit of %d.", offset, len(text))
	}
	if offset > len(text) {
		raise(l, "Start offset %d greater than input length %d.", offset, len(text))
	}
	all := limit == 0 && offset == 0
	defer s.meter.release()
	u := unpacker{state: s, l: l, rest: text[offset:]}
	var values []glua.LValue
	for len(u.rest) > 0 && (all || len(values) < limit) {
		values = append(values, u.value(0))
		if len(values) > maxResults {
			raise(l, "too many results to unpack")
		}
	}
	n := len(values)
	if !all {
		next := len(text) - len(u.rest)
		if len(u.rest) == 0 {
			next = -1
		}
		l.Push(glua.LNumber(next))
		n++
	}
	for _, v := range values {
		l.Push(v)
	}
	return n
}

type unpacker struct {
	state *state
	l     *glua.LState
	rest  string
}

func (u *unpacker) take(n int) string {
	if n > len(u.rest) {
		raise(u.l, "Missing bytes in input.")
	}
	text := u.rest[:n]
	u.rest = u.rest[n:]
	return text
}

// text takes a string that is kept.
func (u *unpacker) text(n int) glua.LString {
	u.state.meter.hold(u.l, n)
	return glua.LString(strings.Clone(u.take(n)))
}

// number takes a big-endian unsigned integer of n bytes.
func (u *unpacker) number(n int) uint64 {
	var v uint64
	for _, b := range []byte(u.take(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (u *unpacker) value(depth int) glua.LValue {
	if depth > maxCallDepth {
		raise(u.l, "Bad data format in input.")
	}
	u.state.meter.pass(u.l, 1)
	u.state.meter.hold(u.l, slotBytes)
	kind := u.take(1)[0]
	switch {
	case kind <= 0x7f:
		return glua.LNumber(kind)
	case kind <= 0x8f:
		return u.table(int(kind&15), depth)
	case kind <= 0x9f:
		return u.array(int(kind&15), depth)
	case kind <= 0xbf:
		return u.text(int(kind & 31))
	case kind >= 0xe0:
		return glua.LNumber(int8(kind))
	}
	switch kind {
	case 0xc0:
		return glua.LNil
	case 0xc2, 0xc3:
		return glua.LBool(kind == 0xc3)
	case 0xca:
		return glua.LNumber(math.Float32frombits(uint32(u.number(4))))
	case 0xcb:
		return glua.LNumber(math.Float64frombits(u.number(8)))
	case 0xcc, 0xcd, 0xce:
		return glua.LNumber(u.number(1 << (kind - 0xcc)))
	case 0xcf: // read as signed, as lua-cmsgpack does
		return glua.LNumber(int64(u.number(8)))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		bits := 8 << (kind - 0xd0)
		return glua.LNumber(int64(u.number(bits/8)) << (64 - bits) >> (64 - bits))
	case 0xd9, 0xda, 0xdb:
		return u.text(int(u.number(1 << (kind - 0xd9))))
	case 0xdc, 0xdd:
		return u.array(int(u.number(2<<(kind-0xdc))), depth)
	case 0xde, 0xdf:
		return u.table(int(u.number(2<<(kind-0xde))), depth)
	}
	raise(u.l, "Bad data format in input.")
	return glua.LNil
}

func (u *unpacker) array(n, depth int) glua.LValue {
	t := u.empty(n)
	for i := 1; i <= n; i++ {
		t.RawSetInt(i, u.value(depth+1))
	}
	return t
}

// empty makes a table. A head can promise any number of items; room is made
// for few before they are there.
func (u *unpacker) empty(n int) *glua.LTable {
	u.state.meter.hold(u.l, 2*tableBytes)
	return u.l.CreateTable(min(n, len(u.rest), 64), 0)
}

func (u *unpacker) table(n, depth int) glua.LValue {
	t := u.empty(0)
	for ; n > 0; n-- {
		key := u.value(depth + 1)
		value := u.value(depth + 1)
		u.state.meter.hold(u.l, 8*slotBytes)
		u.state.reserveKey(u.l, t, key)
		u.l.RawSet(t, key, value)
	}
	return t
}
