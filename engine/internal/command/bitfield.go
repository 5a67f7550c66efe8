package command

import (
	"bytes"
)

// BITFIELD is a small language of its own: a list of operations, each on one
// integer, done in order. All of it is understood before anything is done, and
// the string is grown once, to where the farthest write reaches.

const (
	errFieldType Error = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	errFieldRO   Error = "ERR BITFIELD_RO only supports the GET subcommand"
	errOverflow  Error = "ERR Invalid OVERFLOW type specified"
)

type fieldVerb uint8

const (
	fieldGet fieldVerb = iota
	fieldSet
	fieldIncrBy
)

// fieldOperation is one step of a call.
type fieldOperation struct {
	verb     fieldVerb
	kind     fieldType
	offset   int64 // in bits
	operand  int64 // of SET and INCRBY
	overflow overflowRule
}

func parseFieldVerb(arg []byte) (verb fieldVerb, operands int, ok bool) {
	switch {
	case Is(arg, "GET"):
		return fieldGet, 2, true
	case Is(arg, "SET"):
		return fieldSet, 3, true
	case Is(arg, "INCRBY"):
		return fieldIncrBy, 3, true
	default:
		return 0, 0, false
	}
}

// parseFieldType reads i or u and a width.
func parseFieldType(arg []byte) (fieldType, error) {
	if len(arg) < 2 || (arg[0] != 'i' && arg[0] != 'u') {
		return fieldType{}, errFieldType
	}
	kind := fieldType{signed: arg[0] == 'i'}
	width, ok := ParseInt(arg[1:])
	if !ok || width < 1 || width > 64 || (width == 64 && !kind.signed) {
		return fieldType{}, errFieldType
	}
	kind.width = uint(width)
	return kind, nil
}

// fieldOffset reads a position in bits or, after a #, in fields of that width.
func (c *Ctx) fieldOffset(arg []byte, kind fieldType) (int64, error) {
	inFields := bytes.HasPrefix(arg, []byte("#"))
	if !inFields {
		return c.bitOffset(arg)
	}
	offset, ok := ParseInt(arg[1:])
	if !ok || !c.holdsBit(offset) || !c.holdsBit(offset*int64(kind.width)) {
		return 0, errBitOffset
	}
	return offset * int64(kind.width), nil
}

// parseFields reads the operations of a call.
func (c *Ctx) parseFields() (operations []fieldOperation, err error) {
	overflow := overflowWrap
	for args := c.Args[2:]; len(args) > 0; {
		if Is(args[0], "OVERFLOW") && len(args) > 1 {
			if overflow, err = parseOverflow(args[1]); err != nil {
				return nil, err
			}
			args = args[2:]
			continue
		}
		verb, operands, ok := parseFieldVerb(args[0])
		if !ok || operands >= len(args) {
			return nil, ErrSyntax
		}
		operation := fieldOperation{verb: verb, overflow: overflow}
		if err := c.parseField(&operation, args[1:1+operands]); err != nil {
			return nil, err
		}
		operations, args = append(operations, operation), args[1+operands:]
	}
	return operations, nil
}

func (c *Ctx) parseField(operation *fieldOperation, args [][]byte) (err error) {
	if operation.kind, err = parseFieldType(args[0]); err != nil {
		return err
	}
	if operation.offset, err = c.fieldOffset(args[1], operation.kind); err != nil {
		return err
	}
	if operation.verb == fieldGet {
		return nil
	}
	operand, ok := ParseInt(args[2])
	if !ok {
		return ErrNotInteger
	}
	operation.operand = operand
	return nil
}

func bitfield(c *Ctx) error {
	operations, err := c.parseFields()
	if err != nil {
		return err
	}
	farthest := int64(-1) // bit that is written to
	for _, o := range operations {
		if o.verb != fieldGet {
			farthest = max(farthest, o.offset+int64(o.kind.width)-1)
		}
	}
	if farthest < 0 {
		return c.readFields(operations)
	}
	data, changed, err := growBits(c, c.Args[1], farthest)
	if err != nil {
		return err
	}
	c.Out.Array(len(operations))
	for _, o := range operations {
		reply, wrote, ok := o.run(data)
		changed = changed || wrote
		if ok {
			c.Out.Int(reply)
		} else {
			c.Out.Null()
		}
	}
	if changed {
		c.Touch(c.Args[1], eventSetBit)
	}
	return nil
}

func bitfieldReadOnly(c *Ctx) error {
	operations, err := c.parseFields()
	if err != nil {
		return err
	}
	for _, o := range operations {
		if o.verb != fieldGet {
			return errFieldRO
		}
	}
	return c.readFields(operations)
}

// readFields answers a call that only reads: it does not make the key.
func (c *Ctx) readFields(operations []fieldOperation) error {
	data, err := readBits(c, c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Array(len(operations))
	for _, o := range operations {
		c.Out.Int(o.kind.read(data, o.offset))
	}
	return nil
}

// run carries out an operation on data. It is not ok if the result did not fit
// and the rule is to fail; then nothing was written.
func (o fieldOperation) run(data []byte) (reply int64, wrote, ok bool) {
	old := o.kind.read(data, o.offset)
	value := old
	switch o.verb {
	case fieldGet:
		return old, false, true
	case fieldSet:
		value, ok = o.kind.fit(o.operand, 0, o.overflow)
		reply = old
	case fieldIncrBy:
		value, ok = o.kind.fit(old, o.operand, o.overflow)
		reply = value
	}
	if !ok || value == old {
		return reply, false, ok
	}
	o.kind.write(data, o.offset, value)
	return reply, true, true
}
