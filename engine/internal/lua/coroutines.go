package lua

import "github.com/signalbox-io/signalbox/engine/internal/lua/lua51"

func (s *state) coroutineLibrary() library {
	return s.functions(map[string]lua51.GoFunction{
		"create": s.create, "resume": s.resume, "running": s.coroutineRunning, "status": coroutineStatus,
		"yield": func(l *lua51.Thread) int { return l.Yield() }, "wrap": s.wrap,
	})
}

func (s *state) newCoroutine(l *lua51.Thread) *lua51.Thread {
	f := l.Arg(1).AsFunction()
	if f == nil || f.IsNative() {
		l.ArgError(1, "Lua function expected")
	}
	return s.vm.NewThread(f)
}

func checkCoroutine(l *lua51.Thread) *lua51.Thread {
	co := l.Arg(1).AsThread()
	if co == nil {
		l.ArgError(1, "coroutine expected")
	}
	return co
}

func (s *state) create(l *lua51.Thread) int {
	l.Push(s.newCoroutine(l).Value())
	return 1
}

func (s *state) coroutineRunning(l *lua51.Thread) int {
	if l == s.l {
		l.Push(lua51.Nil)
	} else {
		l.Push(l.Value())
	}
	return 1
}

func coroutineStatus(l *lua51.Thread) int {
	l.PushString(checkCoroutine(l).Status(l))
	return 1
}

func (s *state) resume(l *lua51.Thread) int {
	co := checkCoroutine(l)
	results, problem, ok := l.Resume(co, l.Args(2))
	l.PushBool(ok)
	if !ok {
		l.Push(problem)
		return 2
	}
	return 1 + l.PushAll(results)
}

// wrap makes a function that resumes, and raises what fails.
func (s *state) wrap(l *lua51.Thread) int {
	co := s.newCoroutine(l)
	l.Push(s.vm.NewFunction(func(l *lua51.Thread) int {
		results, problem, ok := l.Resume(co, l.Args(1))
		if !ok {
			if text, isText := problem.ToText(); isText {
				problem = lua51.String(l.Where(1) + text)
			}
			l.Throw(problem)
		}
		return l.PushAll(results)
	}, co.Value()).Value())
	return 1
}
