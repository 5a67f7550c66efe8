package lua

import (
	"time"

	glua "github.com/yuin/gopher-lua"
)

// A meter bounds what scripts may use, in time and in memory.
//
// Time: gopher-lua asks the context of a state before every instruction
// whether it has ended. The meter is that context, and counts along. That is
// far cheaper than a real one, and every few thousand instructions the host
// is asked whether the script may go on: it has the clock, and it may let
// others in meanwhile. Once it may not, every further instruction fails, so
// that no pcall helps.
//
// Memory: nobody tells what gopher-lua allocates. So the libraries report
// what they make, instructions are charged flatly, and when enough has come
// together what the script can still reach is weighed (weigh.go). Only that
// decides. The costs: one addition for each string, and a walk over what is
// held each time it may have grown by a quarter of the bound.
//
// A library function that makes something large must report it: reserve for
// what it hands out in one piece, hold for what it builds piece by piece. One
// that loops for long must call pass.

const (
	// stepsPerLook is how many instructions pass between two questions to the
	// host: 0.1 ms or so.
	stepsPerLook = 4096
	// stepsPerCall is what a command counts for.
	stepsPerCall = 64
	// bytesPerStep is what instructions allocate on the average, at the most.
	bytesPerStep = 32
	// maxScriptBytes bounds what a script holds.
	maxScriptBytes = 1 << 30
	// largeBytes is from where on a single piece is looked at when it is made.
	largeBytes = 64 << 10
	// The sizes of the things of Lua, about.
	tableBytes, slotBytes, threadBytes = 160, 16, 24 << 10
	// maxSourceBytes bounds the text of a script: its syntax tree takes up to
	// a hundred times as much.
	maxSourceBytes = 4 << 20
)

const noMemory = "not enough memory"

type meter struct {
	state   *state
	limit   int64 // of the bytes that a script may hold
	left    int   // instructions until the host is asked again
	charged int64 // bytes made since the script was weighed
	held    int64 // bytes that a library function is building up
	weighed bool  // in this run
	stopped string
	reason  string // what Err says
	ended   chan struct{}
}

func newMeter(s *state) *meter {
	m := &meter{state: s, limit: maxScriptBytes, ended: make(chan struct{})}
	close(m.ended)
	return m
}

// start makes ready for a run.
func (m *meter) start() {
	m.left, m.charged, m.held, m.weighed, m.stopped = stepsPerLook, 0, 0, false, ""
}

// Done is asked before every instruction. The channel is closed if that one
// is to fail, with what Err says.
func (m *meter) Done() <-chan struct{} {
	if m.left--; m.left > 0 {
		return nil
	}
	return m.look()
}

func (m *meter) look() <-chan struct{} {
	if !m.mayGoOn() {
		m.reason = m.stopped
		return m.ended
	}
	m.charged += stepsPerLook * bytesPerStep
	if m.isDue() && m.exhausted(0) {
		m.reason = noMemory
		return m.ended
	}
	return nil
}

// mayGoOn asks the host, if there is one: there is none while the interpreter
// is built.
func (m *meter) mayGoOn() bool {
	if m.stopped == "" && m.state.host != nil {
		m.stopped = m.state.host.Interrupt(stepsPerLook)
	}
	if m.stopped != "" {
		m.left = 0
		return false
	}
	m.left = stepsPerLook
	return true
}

// Err says why an instruction fails.
func (m *meter) Err() error { return meterError(m.reason) }

type meterError string

func (e meterError) Error() string { return string(e) }

// Deadline and Value make the meter a context.
func (m *meter) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value knows nothing.
func (m *meter) Value(any) any { return nil }

// pass counts steps of a loop in Go, and ends it if the script must end.
func (m *meter) pass(l *glua.LState, steps int) {
	if m.left -= steps; m.left <= 0 && !m.mayGoOn() {
		raise(l, "%s", m.stopped)
	}
}

// reserve reports bytes that are about to be made, and refuses them if they
// are too many.
func (m *meter) reserve(l *glua.LState, bytes int) {
	m.charged += int64(bytes)
	if bytes >= largeBytes && m.isDue() && m.exhausted(int64(bytes)) {
		raise(l, noMemory)
	}
}

// hold reports bytes of something that the script cannot reach yet. The
// function that builds it calls release at its end.
func (m *meter) hold(l *glua.LState, bytes int) {
	m.held += int64(bytes)
	m.charged += int64(bytes)
	if m.isDue() && m.exhausted(0) {
		raise(l, noMemory)
	}
}

func (m *meter) release() { m.held = 0 }

// madeMuch says that a run has made more than a few tables and texts.
func (m *meter) madeMuch() bool { return m.weighed || m.charged > muchBytes }

// isDue says that so much has been made that the script may hold too much. A
// smaller part of the limit would find that out sooner, and would have
// scripts that hold much weighed all the time.
func (m *meter) isDue() bool { return m.charged > m.limit/4 }

// exhausted weighs what the script holds, and says whether it is too much
// together with what is about to be made.
func (m *meter) exhausted(more int64) bool {
	bytes := m.state.weigh(m.limit) + m.held + more
	m.charged, m.weighed = 0, true
	return bytes > m.limit
}
