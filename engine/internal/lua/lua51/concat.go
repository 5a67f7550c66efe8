package lua51

import (
	"strings"
	"unsafe"
)

// MaxTextBytes bounds a text that a program builds, as Redis bounds a value.
const MaxTextBytes = 512 << 20

// NoMemory is what a program that wants too much memory fails with.
const NoMemory = "not enough memory"

// concat joins the values from a place on the stack to another and leaves the
// result in the first.
func (th *Thread) concat(first, last int) {
	for last > first {
		if n := th.joinTexts(first, last); n > 1 {
			last -= n - 1
			continue
		}
		a, b := th.stack[last-1], th.stack[last]
		handler := th.st.metaMethod(a, eventConcat)
		if handler.IsNil() {
			handler = th.st.metaMethod(b, eventConcat)
		}
		if handler.IsNil() {
			bad, place := a, last-1
			if a.isString() || a.isNumber() {
				bad, place = b, last
			}
			th.typeError(bad, place-th.frame.base, "concatenate")
		}
		result := th.callMeta(handler, a, b)
		th.stack[last-1] = result
		last--
	}
}

// joinTexts joins as many texts and numbers as there are up to a place, puts
// the result where the first of them was, and returns how many they were.
func (th *Thread) joinTexts(first, last int) (n int) {
	total := 0
	from := last
	for ; from >= first; from-- {
		v := th.stack[from]
		switch {
		case v.isString():
			total += len(v.text())
		case v.isNumber():
			total += 24 // about
		default:
			goto counted
		}
	}
counted:
	from++
	if n = last - from + 1; n < 2 {
		return n
	}
	if total > MaxTextBytes {
		th.OutOfMemory()
	}
	if total > chunkBytes {
		th.stack[from] = th.joinLong(th.stack[from:last+1], total)
		return n
	}
	var room [256]byte
	text := room[:0]
	if total > len(room) {
		text = make([]byte, 0, total)
	}
	for _, v := range th.stack[from : last+1] {
		if v.isString() {
			text = append(text, v.text()...)
		} else {
			text = AppendNumber(text, v.float())
		}
	}
	if total > len(room) {
		th.PassBytes(total)
		th.st.charge(int64(total))
		th.stack[from] = String(unsafe.String(unsafe.SliceData(text), len(text)))
	} else {
		th.stack[from] = th.st.Text(text)
	}
	return n
}

func (th *Thread) joinLong(values []Value, total int) Value {
	b := th.NewBuilder(total)
	for _, v := range values {
		text, _ := v.ToText()
		b.Add(text)
	}
	return b.Text()
}

// Builder builds a long text without holding up others: it charges for what it
// takes, and lets the meter look while it copies.
type Builder struct {
	th   *Thread
	text *strings.Builder // which does not clear its memory first
	room int              // that is counted
}

// NewBuilder makes a builder with room for so many bytes.
func (th *Thread) NewBuilder(room int) *Builder {
	b := &Builder{th: th, text: &strings.Builder{}}
	if room > 0 {
		b.grow(room)
	}
	return b
}

// Room is an empty slice with room for so many bytes. Other than make, it does not
// clear them first, which would take long.
func Room(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	return unsafe.Slice(unsafe.StringData(b.String()), n)[:0]
}

// Len is how long the text is.
func (b *Builder) Len() int { return b.text.Len() }

// Add adds a text.
func (b *Builder) Add(text string) {
	if len(text) > b.text.Cap()-b.text.Len() {
		b.grow(len(text))
	}
	for len(text) > chunkBytes {
		b.text.WriteString(text[:chunkBytes])
		text = text[chunkBytes:]
		b.th.PassBytes(chunkBytes)
	}
	b.text.WriteString(text)
}

// AddBytes adds bytes.
func (b *Builder) AddBytes(text []byte) {
	b.Add(unsafe.String(unsafe.SliceData(text), len(text)))
}

// AddByte adds a byte.
func (b *Builder) AddByte(c byte) {
	if b.text.Len() == b.text.Cap() {
		b.grow(1)
	}
	b.text.WriteByte(c)
}

// grow makes room for n more bytes. What is built cannot be weighed, so it is
// counted.
func (b *Builder) grow(n int) {
	if b.text.Len()+n > MaxTextBytes {
		b.th.OutOfMemory()
	}
	room := max(b.text.Len()+n, min(2*b.text.Len(), MaxTextBytes), 64)
	b.th.st.charge(int64(room))
	b.th.st.meter.building += int64(room - b.room)
	b.room = room
	old := b.text.String()
	b.text = &strings.Builder{}
	b.text.Grow(room)
	for len(old) > chunkBytes {
		b.text.WriteString(old[:chunkBytes])
		old = old[chunkBytes:]
		b.th.PassBytes(chunkBytes)
	}
	b.text.WriteString(old)
}

// Text is what was built. The builder is not used again.
func (b *Builder) Text() Value {
	b.th.st.meter.building -= int64(b.room)
	return String(b.text.String())
}

// OutOfMemory ends what the program does, unless it catches that.
func (th *Thread) OutOfMemory() { th.throw(String(NoMemory)) }
