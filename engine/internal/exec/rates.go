package exec

// rate tells how fast a counter has been growing lately. It looks at the counter
// at most ten times a second and keeps the last sixteen looks, so that asking
// means about the last second and a half, as with Redis, and nothing has to run
// by itself.
type rate struct {
	at     [16]int64 // µs
	value  [16]int64
	newest int
}

const rateEveryUs = 100_000

// look notes the counter, if it is time to.
func (r *rate) look(nowUs, value int64) {
	if nowUs-r.at[r.newest] < rateEveryUs {
		return
	}
	r.newest = (r.newest + 1) % len(r.at)
	r.at[r.newest], r.value[r.newest] = nowUs, value
}

// perSec is the growth in a second, over the time since the oldest look that is
// not too old.
func (r *rate) perSec(nowUs, value int64) float64 {
	const window = int64(len(r.at)) * rateEveryUs
	for i := 1; i <= len(r.at); i++ {
		at := (r.newest + i) % len(r.at)
		if age := nowUs - r.at[at]; age <= window && age >= rateEveryUs {
			return max(float64(value-r.value[at])*1e6/float64(age), 0) // the counter may have been reset
		}
	}
	return 0
}
