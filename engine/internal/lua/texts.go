package lua

import (
	"hash/maphash"

	glua "github.com/yuin/gopher-lua"
)

// textCache keeps short strings that came in lately, as Lua values. A Go
// string in an interface costs two allocations, and keys, arguments and
// replies repeat: Lua itself keeps each string once for the same reason.
type textCache struct {
	seed  maphash.Seed
	slots *[512]glua.LValue
}

const maxCachedBytes = 40

func (c *textCache) get(b []byte) glua.LValue {
	if len(b) > maxCachedBytes {
		return glua.LString(b)
	}
	if c.slots == nil {
		c.slots, c.seed = new([512]glua.LValue), maphash.MakeSeed()
	}
	slot := &c.slots[maphash.Bytes(c.seed, b)%uint64(len(c.slots))]
	if known, ok := (*slot).(glua.LString); ok && string(known) == string(b) {
		return *slot
	}
	v := glua.LValue(glua.LString(b))
	*slot = v
	return v
}
