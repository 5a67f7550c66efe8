package lua

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Values go both ways between RESP and Lua: decoder makes Lua values of a
// reply, writeReply makes a reply of a Lua value.

// decoder reads one reply that the host wrote.
type decoder struct {
	state *state
	l     *glua.LState
	rest  []byte
}

// line takes the text up to CRLF, without the kind.
func (d *decoder) line() []byte {
	end := bytes.IndexByte(d.rest, '\r')
	if end < 1 {
		raise(d.l, "malformed reply")
	}
	text := d.rest[1:end]
	d.rest = d.rest[end+2:]
	return text
}

func (d *decoder) count() int {
	text := d.line()
	if n, ok := parseDigits(text); ok {
		return int(n)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		raise(d.l, "malformed reply")
	}
	return n
}

func (d *decoder) bulk() []byte {
	n := d.count()
	if n < 0 {
		return nil
	}
	text := d.rest[:n]
	d.rest = d.rest[n+2:]
	return text
}

func (d *decoder) value(depth int) glua.LValue {
	if len(d.rest) == 0 {
		raise(d.l, "malformed reply")
	}
	switch d.rest[0] {
	case '$':
		if text := d.bulk(); text != nil {
			return d.state.texts.get(text)
		}
		return glua.LFalse
	case ':':
		text := d.line()
		n, ok := parseDigits(text)
		if !ok {
			n, _ = strconv.ParseInt(string(text), 10, 64)
		}
		return value(glua.LNumber(n))
	case '+':
		return d.state.status.get(d.l, d.state.texts.get(d.line()))
	case '-':
		return errorTable(d.l, string(d.line()))
	case '*', '>':
		return d.array(depth)
	}
	return d.value3(depth)
}

// value3 reads what only RESP3 has.
func (d *decoder) value3(depth int) glua.LValue {
	switch d.rest[0] {
	case '%':
		return d.wrap("map", d.pairs(depth))
	case '~':
		return d.wrap("set", d.members(depth))
	case ',':
		f, _ := strconv.ParseFloat(string(d.line()), 64)
		return d.wrap("double", glua.LNumber(f))
	case '#':
		return glua.LBool(string(d.line()) == "t")
	case '_':
		d.line()
		return glua.LNil
	case '(':
		return d.wrap("big_number", d.state.texts.get(d.line()))
	case '=':
		text := d.bulk()
		inner := d.l.CreateTable(0, 2)
		inner.RawSetString("format", d.state.texts.get(text[:3]))
		inner.RawSetString("string", d.state.texts.get(text[4:]))
		return d.wrap("verbatim_string", inner)
	}
	raise(d.l, "malformed reply")
	return glua.LNil
}

func (d *decoder) wrap(field string, v glua.LValue) glua.LValue {
	t := d.l.CreateTable(0, 1)
	t.RawSetString(field, v)
	return t
}

func (d *decoder) array(depth int) glua.LValue {
	n := d.count()
	if n < 0 {
		return glua.LFalse
	}
	t := d.state.arrays.get(d.l, n, len(d.rest))
	for i := 1; i <= n; i++ {
		t.RawSetInt(i, d.value(depth+1))
	}
	return t
}

func (d *decoder) pairs(depth int) *glua.LTable {
	n := d.count()
	t := d.l.CreateTable(0, n)
	for ; n > 0; n-- {
		key := d.value(depth + 1)
		value := d.value(depth + 1)
		if key != glua.LNil {
			t.RawSet(key, value)
		}
	}
	return t
}

func (d *decoder) members(depth int) *glua.LTable {
	n := d.count()
	t := d.l.CreateTable(0, n)
	for ; n > 0; n-- {
		if key := d.value(depth + 1); key != glua.LNil {
			t.RawSet(key, glua.LTrue)
		}
	}
	return t
}

// maxReplyDepth is where Redis runs out of Lua stack for a nested reply.
const maxReplyDepth = 2000

var errReplyDepth = errors.New("reached lua stack limit")

// maxReplyBytes bounds the reply of a script: tables may hold one text, or one
// another, any number of times.
const maxReplyBytes = 1 << 30

func (s *state) writeReply(v glua.LValue, out *resp.Writer) error {
	s.replyStart = out.Len()
	return s.writeValue(v, out, 0)
}

func (s *state) writeValue(v glua.LValue, out *resp.Writer, depth int) error {
	if out.Len()-s.replyStart > maxReplyBytes {
		return meterError(noMemory)
	}
	switch v := v.(type) {
	case glua.LString:
		out.BulkString(string(v))
	case glua.LNumber:
		out.Int(toInt64(v))
	case glua.LBool:
		s.writeBool(bool(v), out)
	case *glua.LTable:
		if s.meter.left--; s.meter.left <= 0 && !s.meter.mayGoOn() {
			return meterError(s.meter.stopped)
		}
		if depth >= maxReplyDepth {
			out.Error("ERR " + errReplyDepth.Error())
			return nil
		}
		return s.writeTable(s.unwrap(v), out, depth+1)
	default:
		out.Null()
	}
	return nil
}

func (s *state) writeBool(b bool, out *resp.Writer) {
	switch {
	case s.reply.Proto >= 3:
		out.Bool(b)
	case b:
		out.Int(1)
	default:
		out.Null()
	}
}

// cText is text up to its first zero byte: what Redis writes of an error or a
// status, which are texts of C on their way.
func cText(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

func (s *state) writeTable(t *glua.LTable, out *resp.Writer, depth int) error {
	if text, ok := t.RawGetString("err").(glua.LString); ok {
		out.Error(cText(string(text)))
		return nil
	}
	if text, ok := t.RawGetString("ok").(glua.LString); ok {
		out.SimpleString(cText(string(text)))
		return nil
	}
	if f, ok := t.RawGetString("double").(glua.LNumber); ok {
		out.Double(float64(f))
		return nil
	}
	if m, ok := t.RawGetString("map").(*glua.LTable); ok {
		return s.writeMap(m, out, depth)
	}
	if m, ok := t.RawGetString("set").(*glua.LTable); ok {
		return s.writeSet(m, out, depth)
	}
	if text, ok := toText(t.RawGetString("big_number")); ok {
		out.BigNumber(text)
		return nil
	}
	if inner, ok := t.RawGetString("verbatim_string").(*glua.LTable); ok {
		text, textOK := toText(inner.RawGetString("string"))
		format, formatOK := toText(inner.RawGetString("format"))
		if textOK && formatOK {
			out.Verbatim(format, text)
			return nil
		}
	}
	return s.writeArray(t, out, depth)
}

// writeArray ends at the first nil, as Lua's arrays do.
func (s *state) writeArray(t *glua.LTable, out *resp.Writer, depth int) error {
	n := 0
	for t.RawGetInt(n+1) != glua.LNil {
		n++
	}
	out.Array(n)
	for i := 1; i <= n; i++ {
		if err := s.writeValue(t.RawGetInt(i), out, depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) writeMap(t *glua.LTable, out *resp.Writer, depth int) error {
	out.Map(size(t))
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		if err := s.writeValue(k, out, depth); err != nil {
			return err
		}
		if err := s.writeValue(v, out, depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) writeSet(t *glua.LTable, out *resp.Writer, depth int) error {
	out.Set(size(t))
	for k, _ := t.Next(glua.LNil); k != glua.LNil; k, _ = t.Next(k) {
		if err := s.writeValue(k, out, depth); err != nil {
			return err
		}
	}
	return nil
}

func size(t *glua.LTable) int {
	n := 0
	t.ForEach(func(glua.LValue, glua.LValue) { n++ })
	return n
}
