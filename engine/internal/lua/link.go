package lua

import (
	"slices"

	glua "github.com/yuin/gopher-lua"
)

// Reading a global is a look-up by name, and scripts read hardly anything else:
// redis.call, tonumber, string.format. None of them ever changes, so code that
// is linked has the functions themselves among its constants. KEYS and ARGV,
// which may be other tables in each run, are looked up.

// An instruction has its code above these bits, and for these codes the number
// of a constant in the lowest.
const (
	codeShift   = 26
	constantMax = 1<<18 - 1
)

// link returns the code of a script for an interpreter that has what it reads.
// The code itself stays as it is, for the next interpreter.
func (s *state) link(proto *glua.FunctionProto) *glua.FunctionProto {
	linked := *proto
	linked.Code = slices.Clone(proto.Code)
	linked.Constants = slices.Clone(proto.Constants)
	places := map[int]int{} // of names among the constants -> of their values
	for pc, instruction := range linked.Code {
		if instruction>>codeShift != uint32(glua.OP_GETGLOBAL) {
			continue
		}
		name := int(instruction & constantMax)
		place, known := places[name]
		if !known {
			place = s.linkGlobal(&linked, name)
			places[name] = place
		}
		if place >= 0 {
			linked.Code[pc] = instruction&^(0x3f<<codeShift|constantMax) | uint32(glua.OP_LOADK)<<codeShift | uint32(place)
		}
	}
	linked.FunctionPrototypes = make([]*glua.FunctionProto, len(proto.FunctionPrototypes))
	for i, inner := range proto.FunctionPrototypes {
		linked.FunctionPrototypes[i] = s.link(inner)
	}
	return &linked
}

// linkGlobal makes the value of a global a constant and returns its number,
// -1 if it has to be looked up.
func (s *state) linkGlobal(proto *glua.FunctionProto, name int) int {
	text, ok := proto.Constants[name].(glua.LString)
	v := s.globals.RawGetString(string(text))
	if !ok || v == glua.LNil || text == "KEYS" || text == "ARGV" || len(proto.Constants) > constantMax {
		return -1
	}
	proto.Constants = append(proto.Constants, v)
	return len(proto.Constants) - 1
}
