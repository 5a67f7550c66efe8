package lua

import (
	glua "github.com/yuin/gopher-lua"
)

// maxCoroutineDepth bounds coroutines that resume coroutines: each takes
// part of Go's stack. Lua's limit is 200 nested C calls.
const maxCoroutineDepth = 190

// coroutineLibrary is gopher-lua's own, with that bound around it and the
// words of Lua.
func (s *state) coroutineLibrary() library {
	scratch := glua.NewState(glua.Options{SkipOpenLibs: true})
	defer scratch.Close()
	scratch.Push(scratch.NewFunction(glua.OpenCoroutine))
	scratch.Call(0, 1)
	table := scratch.Get(-1).(*glua.LTable)
	original := func(name string) glua.LGFunction { return table.RawGetString(name).(*glua.LFunction).GFunction }
	create := s.create(original("create"))
	resume := s.function(s.resume(original("resume")))
	return library{
		"create": s.function(create), "resume": resume,
		"running": s.function(original("running")), "status": s.function(original("status")),
		"yield": s.function(s.yield(original("yield"))), "wrap": s.function(s.wrap(create, resume)),
	}
}

// create makes a coroutine that is metered like all others.
func (s *state) create(create glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		s.meter.hold(l, threadBytes)
		s.meter.release()
		n := create(l)
		if thread, ok := l.Get(-1).(*glua.LState); ok {
			thread.SetContext(s.meter)
		}
		return n
	}
}

func (s *state) resume(resume glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		thread, ok := l.Get(1).(*glua.LState)
		problem := ""
		switch {
		case !ok:
			argError(l, 1, "resume", "coroutine expected")
		case thread.Dead:
			problem = "cannot resume dead coroutine"
		case thread == l || thread == s.l || thread.Parent != nil:
			problem = "cannot resume non-suspended coroutine"
		case s.nesting >= maxCoroutineDepth:
			problem = "C stack overflow"
		}
		if problem != "" {
			l.Push(glua.LFalse)
			l.Push(glua.LString(problem))
			return 2
		}
		s.nesting++
		defer func() { s.nesting-- }()
		return resume(l)
	}
}

func (s *state) yield(yield glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		if l == s.l {
			raisePlain(l, "attempt to yield across metamethod/C-call boundary")
		}
		return yield(l)
	}
}

// wrap makes a function that resumes, and raises what fails.
func (s *state) wrap(create glua.LGFunction, resume *glua.LFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		checkFunction(l, 1, "wrap")
		create(l)
		thread := l.Get(-1)
		// The coroutine is an upvalue, so that it can be found (weigh.go).
		l.Push(l.NewClosure(func(l *glua.LState) int {
			n := l.GetTop()
			l.Insert(resume, 1)
			l.Insert(thread, 2)
			l.Call(n+1, glua.MultRet)
			if glua.LVAsBool(l.Get(1)) {
				return l.GetTop() - 1
			}
			problem := l.Get(2)
			if text, ok := toText(problem); ok {
				position, _ := where(l, 1)
				problem = glua.LString(position + translate(text))
			}
			l.Error(problem, 0)
			return 0
		}, thread))
		return 1
	}
}
