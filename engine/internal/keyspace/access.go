package keyspace

import "math"

// When and how often an object was used, in 32 bits, for OBJECT IDLETIME and
// FREQ and for choosing what to evict. What the bits mean depends on the
// eviction policy, as in Redis:
//
//	least recently used    the time of the last use in tenths of a second, which
//	                       wraps after thirteen years
//	least frequently used  the minute of the last change, 16 bits, and a counter
//
// The counter grows with the logarithm of the number of uses: the fuller it is,
// the less likely one more use makes it grow. It decays by one for each period
// in which the object was not used. A change of policy leaves figures of the
// other kind behind, until the objects are used again.

const (
	idleUnitMs       = 100
	freshCounter     = 5 // a new object is not the first to go
	defaultLogFactor = 10
	defaultDecayMin  = 1
)

// used notes one use.
func (s *Space) used(o *Object, nowMs int64) {
	switch {
	case s.NoTouch:
	case s.policy.frequency():
		o.access = minuteOf(nowMs)<<8 | uint32(s.increment(s.counter(o, nowMs)))
	default:
		o.access = uint32(nowMs / idleUnitMs)
	}
}

// fresh is the access of an object that has just come.
func (s *Space) fresh(nowMs int64) uint32 {
	if s.policy.frequency() {
		return minuteOf(nowMs)<<8 | freshCounter
	}
	return uint32(nowMs / idleUnitMs)
}

func minuteOf(nowMs int64) uint32 { return uint32(nowMs/60_000) & 0xffff }

// increment is the counter after one more use.
func (s *Space) increment(counter uint8) uint8 {
	if counter == 255 {
		return counter
	}
	above := max(float64(counter)-freshCounter, 0)
	if s.Rand != nil && s.Rand.Float64() < 1/(above*float64(s.LogFactor)+1) {
		counter++
	}
	return counter
}

// counter is the counter as it has decayed to by now.
func (s *Space) counter(o *Object, nowMs int64) uint8 {
	counter := uint8(o.access)
	if s.DecayMin == 0 {
		return counter
	}
	elapsed := int64((minuteOf(nowMs) - o.access>>8) & 0xffff)
	return counter - uint8(min(elapsed/s.DecayMin, int64(counter)))
}

// Frequency is how often the object is used, on a scale to 255; ok is false if
// the eviction policy does not count that.
func (s *Space) Frequency(o *Object, nowMs int64) (counter int, ok bool) {
	return int(s.counter(o, nowMs)), s.policy.frequency()
}

// IdleMs is for how long the object was not used, in ms; ok is false if the
// eviction policy counts something else instead.
func (s *Space) IdleMs(o *Object, nowMs int64) (ms int64, ok bool) {
	units := int32(uint32(nowMs/idleUnitMs) - o.access) // below 0 if the clock went back
	return int64(max(units, 0)) * idleUnitMs, !s.policy.frequency()
}

// SetIdle makes the object as old as if it had not been used for so many ms, if
// the policy counts that; for RESTORE.
func (s *Space) SetIdle(o *Object, idleMs, nowMs int64) {
	idleMs = min(idleMs, nowMs, math.MaxInt32*idleUnitMs) // more cannot be told apart
	if !s.policy.frequency() {
		o.access = uint32((nowMs - idleMs) / idleUnitMs)
	}
}

// SetFrequency sets the counter, if the policy counts that; for RESTORE.
func (s *Space) SetFrequency(o *Object, counter uint8, nowMs int64) {
	if s.policy.frequency() {
		o.access = minuteOf(nowMs)<<8 | uint32(counter)
	}
}
