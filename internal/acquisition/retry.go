package acquisition

import "time"

// maxDoublings bounds how often a pause doubles.
const maxDoublings = 4

// Pause is how long to wait before something is tried again that has failed so many times in a row. It is the only policy
// of its kind in the library: a thirtieth of the span in which it matters, doubled with each failure up to sixteen times,
// and half of it random, since what fails for one fails for many at once. It never takes more than half of the time that
// is left, so that the last tries are close together where they decide. random is a uniformly distributed number.
func Pause(failures int, span, left time.Duration, random uint64) time.Duration {
	base := span / 60
	pause := (base + time.Duration(random%uint64(base+1))) << min(max(failures-1, 0), maxDoublings)
	return max(min(pause, left/2), span/600, time.Millisecond)
}

// pause is Pause with the machine's own jitter.
func (m *Machine) pause(failures int, span, left time.Duration) time.Duration {
	m.jitter += 0x9e3779b97f4a7c15 // splitmix64
	z := m.jitter
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return Pause(failures, span, left, z^z>>31)
}
