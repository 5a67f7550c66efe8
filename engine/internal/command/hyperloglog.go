package command

import (
	"encoding/binary"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// A HyperLogLog counts distinct elements in a fixed amount of memory, to within 0.81 %. It
// is a string, and any command on strings may read it or write it: so its bytes are those
// of Redis, and every handler checks them first. One file per concept:
//
//	hyperloglog.go           the commands
//	hyperloglog_sketch.go    the string: its header, dense registers, and what an element is
//	hyperloglog_sparse.go    registers in runs, while they are few
//	hyperloglog_estimate.go  from registers to a number
//	hyperloglog_debug.go     PFDEBUG and PFSELFTEST
//
// The last number is kept in the string, and PFCOUNT, which is a reading command, writes
// it: therefore it is propagated.

const (
	errNotSketch     Error = "WRONGTYPE Key is not a valid HyperLogLog string value."
	errCorruptSketch Error = "INVALIDOBJ Corrupted HLL object detected"
)

// readSketch is the sketch under key, nil if there is no such key, to be read only.
func readSketch(c *Ctx, key []byte) (sketch, error) {
	_, s, err := ReadString(c, key)
	if err != nil || s == nil {
		return nil, err
	}
	return checkedSketch(s)
}

func checkedSketch(s *keyspace.String) (sketch, error) {
	text := sketch(s.Text(nil))
	if !text.valid() {
		return nil, errNotSketch
	}
	return text, nil
}

// editSketch is where the sketch under key is, nil if there is no such key.
func editSketch(c *Ctx, key []byte) (*sketch, error) {
	o, s, err := ReadString(c, key)
	if err != nil || s == nil {
		return nil, err
	}
	if _, err := checkedSketch(s); err != nil {
		return nil, err
	}
	return (*sketch)(c.DB.EditString(key, o, c.NowMs())), nil
}

// createSketch puts an empty sketch under key, which is not there.
func createSketch(c *Ctx, key []byte) *sketch {
	s := (*sketch)(c.DB.EditString(key, nil, c.NowMs()))
	*s = newSketch()
	return s
}

func pfadd(c *Ctx) error {
	key := c.Args[1]
	s, err := editSketch(c, key)
	if err != nil {
		return err
	}
	changed := s == nil
	if changed {
		s = createSketch(c, key)
	}
	for _, element := range c.Args[2:] {
		register, value := place(element)
		raised, ok := s.raise(register, value, c.Space.Limits.HyperLogLogBytes)
		if !ok {
			err = errCorruptSketch
			break
		}
		changed = changed || raised
	}
	if changed {
		s.forget()
		c.Touch(key, eventPFAdd)
	}
	if err != nil {
		return err
	}
	c.Out.Int(int64(oneIf(changed)))
	return nil
}

func pfcount(c *Ctx) error {
	if len(c.Args) > 2 {
		return countUnion(c)
	}
	key := c.Args[1]
	c.Space.Unchanging = false // the number may be written
	s, err := editSketch(c, key)
	if err != nil {
		return err
	}
	if s == nil {
		c.Out.Int(0)
		return nil
	}
	count := binary.LittleEndian.Uint64((*s)[countAt:])
	if !s.known() {
		registers, ok := s.histogram()
		if !ok {
			return errCorruptSketch
		}
		count = registers.estimate()
		binary.LittleEndian.PutUint64((*s)[countAt:], count)
		c.Touch(key)
		propagateCall(c)
	}
	c.Out.Int(int64(count))
	return nil
}

// propagateCall writes down the call of a reading command that has changed something.
func propagateCall(c *Ctx) {
	request := c.Propagate(len(c.Args))
	for _, arg := range c.Args {
		request.Bytes(arg)
	}
}

func countUnion(c *Ctx) error {
	var all registers
	if _, err := mergeKeys(c, &all); err != nil {
		return err
	}
	h := all.histogram()
	c.Out.Int(int64(h.estimate()))
	return nil
}

// mergeKeys takes the registers of the sketches under all keys of the call into all, and
// says whether any of them is dense.
func mergeKeys(c *Ctx, all *registers) (dense bool, err error) {
	for _, key := range c.Args[1:] {
		s, err := readSketch(c, key)
		if err != nil {
			return false, err
		}
		if s == nil {
			continue
		}
		dense = dense || s.dense()
		if !all.merge(s) {
			return false, errCorruptSketch
		}
	}
	return dense, nil
}

// pfmerge makes the result dense if a source is, even where it would not have to be.
func pfmerge(c *Ctx) error {
	key := c.Args[1]
	var all registers
	c.Space.Reading = true
	dense, err := mergeKeys(c, &all)
	c.Space.Reading = false
	if err != nil {
		return err
	}
	s, err := editSketch(c, key)
	if err != nil {
		return err
	}
	if s == nil {
		s = createSketch(c, key)
	}
	if dense && !s.makeDense() {
		return errCorruptSketch
	}
	for register, value := range all {
		if value > 0 {
			s.raise(register, value, c.Space.Limits.HyperLogLogBytes) // it is no corrupt one: it has been merged
		}
	}
	s.forget()
	c.Touch(key, eventPFAdd)
	c.Out.SimpleString("OK")
	return nil
}

var hyperLogLogSpecs = []Spec{
	{
		Name: "pfadd", Arity: -2, Flags: Write | DenyOOM | Fast, Keys: Key(1), Group: "hyperloglog", Since: "2.8.9",
		Summary:    "Adds elements to a HyperLogLog, and says whether its count may have changed. Creates the key if it does not exist.",
		Complexity: "O(1) for each element.", Run: pfadd,
	},
	{
		Name: "pfcount", Arity: -2, Flags: ReadOnly, Keys: KeysFrom(1), Group: "hyperloglog", Since: "2.8.9",
		Summary:    "Returns about how many distinct elements a HyperLogLog, or several taken together, has seen.",
		Complexity: "O(1) for one key, and very little if nothing was added since; O(N) for N keys.", Run: pfcount,
	},
	{
		Name: "pfdebug", Arity: 3, Flags: Write | DenyOOM | Admin, Keys: Key(2), Group: "hyperloglog", Since: "2.8.9",
		Summary: "Shows the inside of a HyperLogLog: GETREG, DECODE, ENCODING; or makes it dense: TODENSE.", Complexity: "O(1)", Run: pfdebug,
	},
	{
		Name: "pfmerge", Arity: -2, Flags: Write | DenyOOM, Keys: KeysFrom(1), Group: "hyperloglog", Since: "2.8.9",
		Summary: "Merges HyperLogLogs into one, which counts what any of them has seen.", Complexity: "O(N) for N keys.", Run: pfmerge,
	},
	{
		Name: "pfselftest", Arity: 1, Flags: Admin, Group: "hyperloglog", Since: "2.8.9",
		Summary: "Tests the HyperLogLogs of this server.", Complexity: "O(1), some tenths of a second.", Run: pfselftest,
	},
}
