package lua51

import "unsafe"

// meter bounds what programs may use, in time and in memory.
//
// Time: jumps backwards, calls, and whatever loops or copies in Go count as
// steps. When some thousands have come together, Interrupt is asked. A step is
// an instruction, or a few bytes that are copied.
//
// Memory: whatever is made is charged. Only when so much has been made that the
// program may hold more than its limit is that weighed (weigh.go), and only
// that decides.
type meter struct {
	left      int    // steps until Interrupt is asked
	stopped   string // why the run ended
	limit     int64
	charged   int64 // since the last weighing
	allowance int64 // what may be charged until the next
	building  int64 // held by builders
	weighing  bool
	heavy     bool // Heavy was called
}

const (
	// StepsPerLook is how many steps pass between two questions: some 20 µs.
	StepsPerLook = 4096
	bytesPerStep = 64
	// heavyBytes is from where on a run is told to be heavy.
	heavyBytes = 64 << 20
)

// Start begins a run.
func (st *State) Start() {
	m := &st.meter
	m.left, m.stopped, m.building = StepsPerLook, "", 0
	if st.pool.on || m.heavy || m.charged > m.allowance/2 {
		m.charged, m.allowance, m.heavy = 0, min(m.limit, heavyBytes), false
	}
}

// Stopped is why Interrupt ended the run, "" if it did not.
func (st *State) Stopped() string { return st.meter.stopped }

// Pass counts steps of a loop in Go.
func (th *Thread) Pass(steps int) { th.st.pass(steps) }

func (st *State) pass(steps int) {
	if st.meter.left -= steps; st.meter.left <= 0 {
		st.look()
	}
}

// Next is that of a table, which may have to skip much.
func (th *Thread) Next(t *Table, key Value) (next, value Value, ok bool) {
	at, ok := t.after(key)
	if !ok {
		return Nil, Nil, false
	}
	found, next, value := t.scan(at)
	if found > at {
		th.Pass((found - at) / slotsPerStep)
	}
	return next, value, true
}

// PassBytes counts bytes that were copied.
func (th *Thread) PassBytes(n int) { th.Pass(n / bytesPerStep) }

// look asks whether the run may go on.
func (st *State) look() {
	m := &st.meter
	steps := max(StepsPerLook-m.left, 1)
	m.left = StepsPerLook
	if m.stopped == "" && st.Interrupt != nil {
		m.stopped = st.Interrupt(steps)
	}
	if m.stopped != "" {
		m.left = 0
		t := st.current.located(String(m.stopped))
		t.Stopped = true
		panic(t)
	}
}

// besideBytes is from where on memory is made beside the program. To have some hundred megabytes
// cleared, and to do the collector's work that is asked for them, takes a tenth of a second or two,
// and nothing interrupts that.
const besideBytes = 16 << 20

// makeRoom makes an empty slice with room for n values.
func makeRoom[T any](st *State, n int) []T {
	var one T
	if n < besideBytes/int(unsafe.Sizeof(one)) || st.Beside == nil {
		return make([]T, 0, n)
	}
	var made []T
	for ended := st.Beside(func() { made = make([]T, 0, n) }); !ended(); {
		st.look()
	}
	return made
}

// Charge reports bytes that are about to be made.
func (th *Thread) Charge(bytes int) { th.st.charge(int64(bytes)) }

func (st *State) charge(bytes int64) {
	st.meter.charged += bytes
	if st.meter.charged > st.meter.allowance {
		st.weighFor(bytes)
	}
}

// weighFor weighs what the program holds, now that it wants so many bytes more.
func (st *State) weighFor(bytes int64) {
	m := &st.meter
	if m.weighing || st.main == nil {
		return
	}
	if !m.heavy && m.allowance == heavyBytes {
		m.heavy, m.allowance = true, m.limit
		if st.Heavy != nil {
			st.Heavy()
		}
		if m.charged <= m.allowance {
			return
		}
	}
	m.weighing = true
	held := st.weigh() + m.building
	m.weighing = false
	if held+bytes > m.limit {
		m.charged, m.allowance = 0, m.limit/8
		st.current.throw(String(NoMemory))
	}
	m.charged = bytes
	m.allowance = max(m.limit-held, m.limit/8)
}

// SetLimit changes how many bytes a program may hold.
func (st *State) SetLimit(bytes int64) {
	st.meter.limit, st.meter.allowance, st.meter.charged = bytes, min(bytes, heavyBytes), 0
}

// MadeBytes is how many bytes were made since the state was weighed last.
func (st *State) MadeBytes() int64 { return st.meter.charged }
