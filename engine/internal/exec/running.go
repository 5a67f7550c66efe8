package exec

import (
	"fmt"

	"github.com/signalbox-io/signalbox/engine/internal/acl"
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// A script runs inside the command that called it, and nothing else runs
// until it ends. One that runs for long must not lock everybody out, though:
// after busy-reply-threshold others are told that the engine is BUSY, and may
// kill it.
//
// The shell holds its one lock around every step of the machine. So it is the
// script that lets others in: every few thousand instructions package lua
// calls Interrupt, which, once the script is busy, calls the shell's hook
// every few milliseconds. That gives the lock back for a moment. Whoever gets
// in takes the usual way, through Step, where allowed refuses all commands
// but those that Redis lets through. One Step then runs inside another; what
// the outer one needs is put back after (letIn), and the few places that would
// show or change the middle of a script ask Busy: serving blocked clients,
// expiring keys, and whatever else does not come through Step.
//
// (The other way would be a published flag that connections look at before
// they take the lock. They would then have to parse, authenticate, queue and
// reply without it: a second machine for the bad case.)
//
// Time comes from the hook. Where a clock stands still while somebody runs, as
// in a bubble of testing/synctest, instructions count instead: it is assumed
// that nobody makes more than stepsPerMs of them in a millisecond.

// running is the script or function that runs, if active.
type running struct {
	active   bool
	function bool // of a library, else of EVAL
	loading  bool // a library's text
	readOnly bool
	allowOOM bool
	unlogged bool // what its commands change is not propagated
	wrote    bool // it has called a command that writes
	busy     bool // it has been running for too long
	killed   bool
	caller   *Session
	heavy    func()   // to be called at the end, if it has made much
	name     string   // of the function
	request  [][]byte // of the caller

	began     bool
	startedUs int64 // when it was first interrupted, which is soon
	steps     int64
	letInAt   int64 // when others are to be let in again, in steps
	letInAtUs int64 // or by the clock
}

const (
	// stepsPerMs is more than a machine makes.
	stepsPerMs = 100_000
	// stepsPerLetIn is a few milliseconds, usPerLetIn is five.
	stepsPerLetIn = 1 << 17
	usPerLetIn    = 5000
	// longestAtCloseMs is how long a script that has written may run on when the engine is closed: what is ended in
	// its middle has written half of what it was to write. One that has not ends at once.
	longestAtCloseMs = 1000
	// longestLoadMs is how long the text of a library may run.
	longestLoadMs = 500
)

const (
	errNotBusy    command.Error = "NOTBUSY No scripts in execution right now."
	errUnkillable command.Error = "UNKILLABLE Sorry the script already executed write commands against the dataset. " +
		"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	errBusyScript   command.Error = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errBusyFunction command.Error = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."

	killedText = "Script killed by user with SCRIPT KILL..."
)

// Busy reports whether a script is in the middle of its run. Only the hook
// Options.Interrupt, and those whom it lets in, can see that.
func (m *Machine) Busy() bool { return m.running.active }

func (m *Machine) errBusy() error {
	if m.running.function {
		return errBusyFunction
	}
	return errBusyScript
}

// startScript makes the checks that come before a script runs.
func (m *Machine) startScript(c *command.Ctx, flags lua.Flags, readOnly bool) error {
	declared := flags&lua.EvalCompat == 0
	if readOnly && declared && flags&lua.NoWrites == 0 {
		return command.Error("ERR Can not execute a script with write flag using *_ro command.")
	}
	if m.repl.restricts {
		if err := m.scriptMayReplicate(c, flags); err != nil {
			return err
		}
	}
	if declared && m.memory.short && flags&(lua.AllowOOM|lua.NoWrites) == 0 {
		return errScriptOOM
	}
	caller := session(c)
	m.running = running{
		active: true, caller: caller, request: c.Args,
		readOnly: readOnly || declared && flags&lua.NoWrites != 0,
		allowOOM: declared && flags&lua.AllowOOM != 0,
	}
	m.script.db = caller.db
	m.script.name = caller.name
	m.script.user = caller.user
	m.script.Out.Proto = 2
	return nil
}

func (m *Machine) endScript() {
	if m.running.heavy != nil {
		m.running.heavy()
	}
	m.running = running{}
}

// Heavy has the shell bound the process's memory. It is lua.Host.
func (m *Machine) Heavy(mostBytes int64) {
	if m.options.BoundMemory != nil {
		m.running.heavy = m.options.BoundMemory(mostBytes)
	}
}

// Beside has the shell do work beside the script. It is lua.Host.
func (m *Machine) Beside(work func()) (ended func() bool) {
	if m.options.Beside != nil {
		return m.options.Beside(work)
	}
	work()
	return func() bool { return true }
}

// Interrupt is called now and then while a script runs. It is lua.Host.
func (m *Machine) Interrupt(steps int) (stop string) {
	r := &m.running
	r.steps += int64(steps)
	nowUs, closing := m.nowUs, false
	if m.options.Interrupt != nil {
		nowUs, closing = m.options.Interrupt(false)
	}
	if !r.began {
		r.began, r.startedUs = true, nowUs
	}
	ranMs := max((nowUs-r.startedUs)/1000, r.steps/stepsPerMs)
	threshold := m.busyReplyMs
	switch {
	case r.killed, closing && (!r.wrote || ranMs >= longestAtCloseMs):
		return killedText
	case r.loading && ranMs > longestLoadMs:
		return "FUNCTION LOAD timeout"
	case r.loading || threshold == 0 || ranMs < threshold:
		return ""
	}
	if !r.busy {
		r.busy = true
		m.logSlowScript(ranMs)
	}
	if r.steps >= r.letInAt || nowUs >= r.letInAtUs {
		r.letInAt, r.letInAtUs = r.steps+stepsPerLetIn, nowUs+usPerLetIn
		if m.letIn(); r.killed {
			return killedText
		}
	}
	return ""
}

// letIn gives others a moment, and puts back what they have changed.
func (m *Machine) letIn() {
	if m.options.Interrupt == nil {
		return
	}
	nowUs, current, ready, executing, replyFrom := m.nowUs, m.current, m.ready, m.executing, m.replyFrom
	spec, args := m.callSpec, m.callArgs
	later, flushed := m.tracker.later, m.tracker.flushed
	m.executing, m.tracker.later, m.tracker.flushed = false, nil, false
	m.options.Interrupt(true)
	m.nowUs, m.current, m.ready, m.executing, m.replyFrom = nowUs, current, ready, executing, replyFrom
	m.callSpec, m.callArgs = spec, args
	m.tracker.later, m.tracker.flushed = later, flushed
}

func (m *Machine) logSlowScript(ranMs int64) {
	const warning = 3
	name := "SCRIPT KILL"
	if m.running.function {
		name = "FUNCTION KILL"
	}
	m.options.Log(warning, fmt.Sprintf("Slow script detected: still in execution after %d milliseconds. "+
		"You can try killing the script using the %s command.", ranMs, name))
}

// killScript ends the script or function that runs.
func (m *Machine) killScript(c *command.Ctx, function bool) error {
	r := &m.running
	switch {
	case !r.active:
		return errNotBusy
	case r.wrote:
		return errUnkillable
	case r.function != function:
		return m.errBusy()
	}
	r.killed = true
	c.Out.SimpleString("OK")
	return nil
}

// Call runs one command of a script. It is lua.Host.
func (m *Machine) Call(args [][]byte, out *resp.Writer) {
	spec, err := m.findForScript(args)
	if err == nil {
		err = m.allowedToScript(spec, args)
	}
	if err != nil {
		if spec != nil {
			m.count(spec).rejected++
		}
		out.Error(err.Error())
		return
	}
	if spec.Flags&command.Write != 0 {
		m.running.wrote = true
	}
	m.script.Out.Proto = out.Proto
	m.call(m.script, spec, args, out, false)
}

// Record says whether what the commands of the script change goes into the log. It is
// lua.Host.
func (m *Machine) Record(on bool) { m.running.unlogged = !on }

var _ lua.Host = (*Machine)(nil)

func (m *Machine) findForScript(args [][]byte) (*command.Spec, error) {
	spec, err := m.find(args)
	switch {
	case spec == nil:
		return nil, command.Error("ERR Unknown Redis command called from script")
	case err != nil:
		return spec, command.Error("ERR Wrong number of args calling Redis command from script")
	case spec.Flags&command.NoScript != 0 && !m.allowsInScripts(spec):
		return spec, command.Error("ERR This Redis command is not allowed from script")
	}
	return spec, nil
}

// allowedToScript makes the checks of one command of a script that depend on its
// caller and on how it is run.
func (m *Machine) allowedToScript(spec *command.Spec, args [][]byte) error {
	if !m.script.free() {
		if err := m.permittedToScript(m.script, spec, args); err != nil {
			return err
		}
	}
	r := &m.running
	switch {
	case m.repl.restricts && spec.Flags&command.Stale == 0 && r.caller.link == nil && m.isStale():
		return command.Error("ERR Can not execute the command on a stale replica")
	case r.readOnly && (spec.Flags&command.Write != 0 || spec.MayReplicate()):
		return command.Error("ERR Write commands are not allowed from read-only scripts.")
	case m.repl.restricts && spec.Flags&command.Write != 0 && !r.wrote && m.mayChange() != nil:
		return m.mayChange()
	case m.memory.short && spec.Flags&command.DenyOOM != 0 && !r.wrote && !r.allowOOM:
		return errOOM // a script that has written already goes on
	case m.persistence.refusal != nil && spec.Flags&command.Write != 0:
		return m.persistence.refusal
	}
	return nil
}

// Permits says whether there is such a command, and whether the script's user
// may run it. It is lua.Host.
func (m *Machine) Permits(args [][]byte) (permitted, known bool) {
	spec, _ := m.find(args) // a wrong number of arguments does not matter
	if spec == nil || m.script.free() {
		return spec != nil, spec != nil
	}
	why, _ := m.script.user.Check(spec, args)
	return why == acl.Allowed, true
}
