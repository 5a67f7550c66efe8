package lua

import (
	glua "github.com/yuin/gopher-lua"
)

// maxCoroutineDepth bounds coroutines that resume coroutines: each takes
// part of Go's stack. Lua's limit is 200 nested C calls.
const maxCoroutineDepth = 190

// coroutineLibrary is gopher-lua's own, with that bound around it.
func (s *state) coroutineLibrary() library {
	scratch := glua.NewState(glua.Options{SkipOpenLibs: true})
	defer scratch.Close()
	scratch.Push(scratch.NewFunction(glua.OpenCoroutine))
	scratch.Call(0, 1)
	table := scratch.Get(-1).(*glua.LTable)
	members := make(library)
	table.ForEach(func(name, value glua.LValue) {
		f := value.(*glua.LFunction).GFunction
		switch text := string(name.(glua.LString)); text {
		case "resume":
			members[text] = s.function(s.bounded(f))
		case "wrap":
			members[text] = s.function(s.wrap(f))
		default:
			members[text] = s.function(f)
		}
	})
	return members
}

func (s *state) bounded(resume glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		if s.nesting >= maxCoroutineDepth {
			l.RaiseError("C stack overflow")
		}
		s.nesting++
		defer func() { s.nesting-- }()
		return resume(l)
	}
}

func (s *state) wrap(wrap glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		n := wrap(l)
		if f, ok := l.Get(-1).(*glua.LFunction); ok {
			f.GFunction = s.bounded(f.GFunction)
		}
		return n
	}
}
