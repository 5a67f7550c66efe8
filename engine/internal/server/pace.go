package server

import "time"

// A pace shares a core between a job and those who are served. The job would have it for 10 ms
// at a time, which is how often the runtime takes it away, and looks whether the network has
// brought anything: clients would see that as latency, and as a tenth of their throughput.
//
// So the job rests, twice as long as it has worked, while there are clients that want something. It
// finds out by resting: who was served meanwhile counts. While nobody was, it works longer and
// rests for a moment only.

const (
	busyTurn = time.Millisecond
	idleTurn = 4 * time.Millisecond
	mostRest = 4 * time.Millisecond // a turn is long when the disk is slow, or somebody else has the core
	idleRest = time.Microsecond
)

type pace struct {
	began  time.Time // the turn
	served int64     // as it was then
	busy   bool
}

// rest ends a turn that has lasted long enough. served counts the batches that were run. Who is
// in a hurry does not rest.
func (p *pace) rest(served int64, hurry bool) {
	worked, turn := time.Since(p.began), idleTurn
	if p.busy {
		turn = busyTurn
	}
	if worked < turn {
		return
	}
	p.busy = served != p.served
	switch {
	case hurry:
	case p.busy:
		time.Sleep(min(2*worked, mostRest))
	default:
		time.Sleep(idleRest)
	}
	p.began, p.served = time.Now(), served
}
