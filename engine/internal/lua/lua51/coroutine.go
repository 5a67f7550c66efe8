package lua51

// Resume runs a coroutine with arguments until it yields or ends. It returns
// what it then gives, on its own stack; or the error that it has died of.
func (th *Thread) Resume(co *Thread, args []Value) (results []Value, problem Value, ok bool) {
	st := th.st
	if what := co.unresumable(th); what != "" {
		return nil, String(what), false
	}
	if st.goCalls >= maxGoCalls {
		return nil, String("C stack overflow"), false
	}
	frame, goCalls, building := th.frame, st.goCalls, st.meter.building
	co.resumer, co.status, th.status = th, running, normal
	st.current = co
	st.goCalls++
	thrown := co.protect(func() { co.proceed(args) })
	st.current = th
	st.goCalls = goCalls
	th.frame = frame
	co.resumer, th.status = nil, running
	if thrown != nil {
		st.meter.building = building
		co.status = dead
		return nil, thrown.Value, false
	}
	if co.yielding {
		co.yielding = false
		co.status = suspended
		return co.stack[co.pending.at:co.top], Nil, true
	}
	co.status = dead
	return co.stack[:co.top], Nil, true
}

func (co *Thread) unresumable(by *Thread) string {
	switch {
	case co == by:
		return "cannot resume running coroutine"
	case co.status == suspended:
		return ""
	case co.status == dead:
		return "cannot resume dead coroutine"
	}
	return "cannot resume " + co.Status(by) + " coroutine"
}

// proceed starts the coroutine, or lets its yield return.
func (co *Thread) proceed(args []Value) {
	co.nested = 0
	if co.body {
		co.body = false
		co.PushAll(args)
		if !co.precall(0, multiple) {
			return
		}
		co.frame.entry = true
		co.execute()
		return
	}
	at, results := co.pending.at, co.pending.results
	co.top = at
	co.PushAll(args)
	co.finish(at, at, len(args), results)
	if co.frame.fn != nil {
		co.execute()
	}
}

// Yield suspends the coroutine that runs, with all arguments of the running
// function in Go, which returns what this returns.
func (th *Thread) Yield() int {
	if th.nested > 0 || th == th.st.main {
		th.throw(String("attempt to yield across metamethod/C-call boundary"))
	}
	at := th.frame.place
	n := th.Top()
	copy(th.stack[at:], th.stack[th.frame.base:th.top])
	th.top = at + n
	return yielded
}

// Status is what scripts call the state of the coroutine.
func (co *Thread) Status(by *Thread) string {
	switch {
	case co == by:
		return "running"
	case co.status == suspended:
		return "suspended"
	case co.status == dead:
		return "dead"
	}
	return "normal"
}
