package lua

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Values go both ways between RESP and Lua: decoder makes Lua values of a
// reply, writeReply makes a reply of a Lua value.

// decoder reads one reply that the host wrote.
type decoder struct {
	state *state
	l     *lua51.Thread
	rest  []byte
}

// line takes the text up to CRLF, without the kind.
func (d *decoder) line() []byte {
	end := bytes.IndexByte(d.rest, '\r')
	if end < 1 {
		d.l.Raise("malformed reply")
	}
	text := d.rest[1:end]
	d.rest = d.rest[end+2:]
	return text
}

func (d *decoder) count() int {
	text := d.line()
	if n, ok := lua51.ParseDigits(text); ok {
		return int(n)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		d.l.Raise("malformed reply")
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

func (d *decoder) value() lua51.Value {
	if len(d.rest) == 0 {
		d.l.Raise("malformed reply")
	}
	switch d.rest[0] {
	case '$':
		if text := d.bulk(); text != nil {
			return d.text(text)
		}
		return lua51.False
	case ':':
		text := d.line()
		n, ok := lua51.ParseDigits(text)
		if !ok {
			n, _ = strconv.ParseInt(string(text), 10, 64)
		}
		return lua51.Int(int(n))
	case '+':
		t := d.state.vm.NewTable(0, 1)
		t.SetString(d.state.vm, "ok", d.state.vm.Text(d.line()))
		return t.Value()
	case '-':
		return d.state.errorTable(string(d.line())).Value()
	case '*', '>':
		return d.array()
	}
	return d.value3()
}

// text makes a text of a part of the reply. One that is most of a long reply keeps
// its memory.
func (d *decoder) text(part []byte) lua51.Value {
	reply := &d.state.reply
	if len(part) < longBytes || len(part) < reply.Len()/2 {
		return d.state.vm.Text(part)
	}
	d.l.Charge(cap(reply.Bytes()))
	reply.Swap(nil)
	return lua51.String(unsafe.String(unsafe.SliceData(part), len(part)))
}

// value3 reads what only RESP3 has.
func (d *decoder) value3() lua51.Value {
	switch d.rest[0] {
	case '%':
		return d.wrap("map", d.pairs().Value())
	case '~':
		return d.wrap("set", d.members().Value())
	case ',':
		f, _ := strconv.ParseFloat(string(d.line()), 64)
		return d.wrap("double", lua51.Number(f))
	case '#':
		return lua51.Bool(string(d.line()) == "t")
	case '_':
		d.line()
		return lua51.Nil
	case '(':
		return d.wrap("big_number", d.state.vm.Text(d.line()))
	case '=':
		text := d.bulk()
		inner := d.state.vm.NewTable(0, 2)
		inner.SetString(d.state.vm, "string", d.state.vm.Text(text[4:]))
		inner.SetString(d.state.vm, "format", d.state.vm.Text(text[:3]))
		return d.wrap("verbatim_string", inner.Value())
	}
	d.l.Raise("malformed reply")
	return lua51.Nil
}

func (d *decoder) wrap(field string, v lua51.Value) lua51.Value {
	t := d.state.vm.NewTable(0, 1)
	t.SetString(d.state.vm, field, v)
	return t.Value()
}

func (d *decoder) array() lua51.Value {
	n := d.count()
	if n < 0 {
		return lua51.False
	}
	t := d.state.vm.NewList(n)
	if d.state.reply.Proto == 3 { // there may be nil
		t = d.state.vm.NewTable(0, 0)
	}
	d.l.PushTable(t) // so that it is weighed
	for i := 1; i <= n; i++ {
		t.SetInt(d.state.vm, i, d.value())
		d.l.Pass(1)
	}
	d.l.Pop()
	return t.Value()
}

func (d *decoder) pairs() *lua51.Table {
	n := d.count()
	t := d.state.vm.NewTable(0, 0)
	d.l.PushTable(t)
	for ; n > 0; n-- {
		d.l.Pass(1)
		key := d.value()
		value := d.value()
		if !key.IsNil() {
			t.Set(d.state.vm, key, value)
		}
	}
	d.l.Pop()
	return t
}

func (d *decoder) members() *lua51.Table {
	n := d.count()
	t := d.state.vm.NewTable(0, 0)
	d.l.PushTable(t)
	for ; n > 0; n-- {
		d.l.Pass(1)
		if key := d.value(); !key.IsNil() {
			t.Set(d.state.vm, key, lua51.True)
		}
	}
	d.l.Pop()
	return t
}

// maxReplyDepth is where Redis runs out of Lua stack for a nested reply.
const maxReplyDepth = 2000

var errReplyDepth = errors.New("reached lua stack limit")

// maxReplyBytes bounds the reply of a script: tables may hold one text, or one
// another, any number of times.
const maxReplyBytes = 1 << 30

func (s *state) writeReply(v lua51.Value, out *resp.Writer) {
	s.replyStart = out.Len()
	s.writeValue(v, out, 0)
}

func (s *state) writeValue(v lua51.Value, out *resp.Writer, depth int) {
	s.l.Pass(1)
	if out.Len()-s.replyStart > maxReplyBytes {
		s.l.OutOfMemory()
	}
	switch v.Kind() {
	case lua51.KindString:
		text, _ := v.AsString()
		if len(text) < longBytes {
			out.BulkString(text)
		} else {
			s.writeLong("$", text, out)
		}
	case lua51.KindNumber:
		f, _ := v.AsNumber()
		out.Int(lua51.ToInt64(f))
	case lua51.KindBool:
		s.writeBool(v.Truth(), out)
	case lua51.KindTable:
		if depth >= maxReplyDepth {
			out.Error("ERR " + errReplyDepth.Error())
			return
		}
		s.writeTable(v.AsTable(), out, depth+1)
	default:
		out.Null()
	}
}

func (s *state) writeVerbatim(format, text string, out *resp.Writer) {
	switch {
	case len(text) < longBytes:
		out.Verbatim(inLine(format), text)
	case out.Proto < 3:
		s.writeLong("$", text, out)
	default:
		s.writeLong("="+(format + "   ")[:3]+":", text, out)
	}
}

// writeLong writes a text, after its kind and what else it begins with, piece by
// piece, so that it does not hold up others.
func (s *state) writeLong(begin, text string, out *resp.Writer) {
	const pieceBytes, frameBytes = 1 << 20, 32
	if need := out.Len() + len(text) + frameBytes; need > cap(out.Bytes()) {
		written := out.Swap(lua51.Room(max(need, min(2*need, maxReplyBytes/2))))
		out.Raw(written[:s.replyStart]) // what is not this script's is there at once
		for written = written[s.replyStart:]; len(written) > 0; {
			n := min(pieceBytes, len(written))
			out.Raw(written[:n])
			written = written[n:]
			s.l.PassBytes(n)
		}
	}
	out.Raw(append(strconv.AppendInt([]byte{begin[0]}, int64(len(begin)-1+len(text)), 10), '\r', '\n'))
	out.Raw([]byte(begin[1:]))
	for ; len(text) > pieceBytes; text = text[pieceBytes:] {
		out.Raw([]byte(text[:pieceBytes]))
		s.l.PassBytes(pieceBytes)
	}
	out.Raw(append([]byte(text), '\r', '\n'))
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
	text, _, _ = strings.Cut(inLine(text), "\x00")
	return text
}

func (s *state) writeTable(t *lua51.Table, out *resp.Writer, depth int) {
	if !t.HasFields() {
		s.writeArray(t, out, depth)
		return
	}
	if text, ok := t.GetString("err").AsString(); ok {
		out.Error(cText(text))
		return
	}
	if text, ok := t.GetString("ok").AsString(); ok {
		out.SimpleString(cText(text))
		return
	}
	if f, ok := t.GetString("double").AsNumber(); ok {
		out.Double(f)
		return
	}
	if m := t.GetString("map").AsTable(); m != nil {
		s.writeMap(m, out, depth)
		return
	}
	if m := t.GetString("set").AsTable(); m != nil {
		s.writeSet(m, out, depth)
		return
	}
	if text, ok := t.GetString("big_number").ToText(); ok {
		if len(text) > maxLineBytes {
			s.l.OutOfMemory()
		}
		out.BigNumber(text)
		return
	}
	if inner := t.GetString("verbatim_string").AsTable(); inner != nil {
		text, textOK := inner.GetString("string").ToText()
		format, formatOK := inner.GetString("format").ToText()
		if textOK && formatOK {
			s.writeVerbatim(format, text, out)
			return
		}
	}
	s.writeArray(t, out, depth)
}

// writeArray ends at the first nil, as Lua's arrays do.
func (s *state) writeArray(t *lua51.Table, out *resp.Writer, depth int) {
	n := 0
	for !t.GetInt(n + 1).IsNil() {
		if n++; n&0xfff == 0 {
			s.l.Pass(0x1000 / movedPerStep)
		}
	}
	out.Array(n)
	for i := 1; i <= n; i++ {
		s.writeValue(t.GetInt(i), out, depth)
	}
}

func (s *state) writeMap(t *lua51.Table, out *resp.Writer, depth int) {
	out.Map(s.size(t))
	for key, value := range s.l.All(t) {
		s.writeValue(key, out, depth)
		s.writeValue(value, out, depth)
	}
}

func (s *state) writeSet(t *lua51.Table, out *resp.Writer, depth int) {
	out.Set(s.size(t))
	for key := range s.l.All(t) {
		s.writeValue(key, out, depth)
	}
}

func (s *state) size(t *lua51.Table) int {
	n := 0
	for range s.l.All(t) {
		s.l.Pass(1)
		n++
	}
	return n
}
