package command

// Bitmaps are strings, looked at bit by bit: bit 0 is the highest bit of the
// first byte. There is no type of their own. One file per concept:
//
//	bitmap.go        single bits; how the bit commands find and grow a string
//	bitmap_count.go  counting and searching, within ranges
//	bitmap_op.go     bitwise operations over whole strings
//	bitfield.go      BITFIELD: its grammar and what it does
//	bitfield_int.go  integers of any width at any bit, and their overflow
//
// What walks over a string takes it in words of 64 bits.

const (
	errBitOffset Error = "ERR bit offset is not an integer or out of range"
	errBit       Error = "ERR bit is not an integer or out of range"
)

// bitOffset reads the position of a bit. Only the first byte that it touches
// has to be within the bound of strings, so a field at the very end may make a
// string up to eight bytes longer, as in Redis.
func (c *Ctx) bitOffset(arg []byte) (int64, error) {
	offset, ok := ParseInt(arg)
	if !ok || !c.holdsBit(offset) {
		return 0, errBitOffset
	}
	return offset, nil
}

func (c *Ctx) holdsBit(offset int64) bool { return offset >= 0 && offset>>3 < c.maxStringBytes() }

// readBits is the bytes under key, nil if there is no such key.
func readBits(c *Ctx, key []byte) ([]byte, error) {
	c.Space.Reading = true // also for BITOP and a BITFIELD that writes nothing
	_, s, err := ReadString(c, key)
	if err != nil || s == nil {
		return nil, err
	}
	return s.Text(nil), nil
}

// growBits is the bytes under key, made long enough to hold the bit at
// offset; grown says whether they had to be made longer, or made at all.
func growBits(c *Ctx, key []byte, offset int64) (data []byte, grown bool, err error) {
	o, _, err := ReadString(c, key)
	if err != nil {
		return nil, false, err
	}
	text := c.DB.EditString(key, o, c.NowMs())
	if missing := int(offset>>3) + 1 - len(*text); missing > 0 {
		*text, grown = append(*text, make([]byte, missing)...), true
	}
	return *text, grown, nil
}

func getbit(c *Ctx) error {
	offset, err := c.bitOffset(c.Args[2])
	if err != nil {
		return err
	}
	data, err := readBits(c, c.Args[1])
	if err != nil {
		return err
	}
	bit := byte(0)
	if at := offset >> 3; at < int64(len(data)) {
		bit = data[at] >> (7 - offset&7) & 1
	}
	c.Out.Int(int64(bit))
	return nil
}

// setbit of the value that a bit has already is no change, unless the string
// had to grow for it.
func setbit(c *Ctx) error {
	offset, err := c.bitOffset(c.Args[2])
	if err != nil {
		return err
	}
	bit, ok := ParseInt(c.Args[3])
	if !ok || bit&^1 != 0 {
		return errBit
	}
	data, grown, err := growBits(c, c.Args[1], offset)
	if err != nil {
		return err
	}
	place, shift := &data[offset>>3], 7-offset&7
	old := *place >> shift & 1
	if grown || old != byte(bit) {
		*place = *place&^(1<<shift) | byte(bit)<<shift
		c.Touch(c.Args[1], eventSetBit)
	}
	c.Out.Int(int64(old))
	return nil
}

var bitmapSpecs = []Spec{
	{
		Name: "setbit", Arity: 4, Flags: Write | DenyOOM, Keys: Key(1), Group: "bitmap", Since: "2.2.0",
		Summary: "Sets one bit of a string, which grows as needed, and returns what it was.", Complexity: "O(1)", Run: setbit,
	},
	{
		Name: "getbit", Arity: 3, Flags: ReadOnly | Fast, Keys: Key(1), Group: "bitmap", Since: "2.2.0",
		Summary: "Returns one bit of a string.", Complexity: "O(1)", Run: getbit,
	},
	{
		Name: "bitcount", Arity: -2, Flags: ReadOnly, Keys: Key(1), Group: "bitmap", Since: "2.6.0",
		Summary: "Counts the bits that are set in a string, or in a part of it.", Complexity: "O(N) for N bytes", Run: bitcount,
	},
	{
		Name: "bitpos", Arity: -3, Flags: ReadOnly, Keys: Key(1), Group: "bitmap", Since: "2.8.7",
		Summary: "Finds the first bit that is set, or clear, in a string or a part of it.", Complexity: "O(N) for N bytes", Run: bitpos,
	},
	{
		Name: "bitop", Arity: -4, Flags: Write | DenyOOM, Keys: KeysFrom(2), Group: "bitmap", Since: "2.6.0",
		Summary: "Stores the AND, OR, XOR or NOT of strings, bit by bit.", Complexity: "O(N) for N bytes", Run: bitop,
	},
	{
		Name: "bitfield", Arity: -2, Flags: Write | DenyOOM, Keys: Key(1), Group: "bitmap", Since: "3.2.0",
		Summary: "Reads, sets and increments integers of any width at any bit of a string.", Complexity: "O(1) for each operation", Run: bitfield,
	},
	{
		Name: "bitfield_ro", Arity: -2, Flags: ReadOnly | Fast, Keys: Key(1), Group: "bitmap", Since: "6.0.0",
		Summary: "Reads integers of any width at any bit of a string.", Complexity: "O(1) for each operation", Run: bitfieldReadOnly,
	},
}
