package acquisition

import "time"

// Instant is a moment by the holder's clock, as the time since an origin of its own. The clock must go on while the
// computer sleeps, and never go back. 0 stands for never.
type Instant time.Duration

// Add returns the moment d later.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// align moves a moment back to the grid of an interval, so that what can go together does.
func (t Instant) align(interval time.Duration) Instant {
	if interval <= 0 {
		return t
	}
	return t / Instant(interval) * Instant(interval)
}

// Terms are what an acquisition asks for, as far as its life depends on it.
type Terms struct {
	TTL    time.Duration // for which the server keeps a lease that is not renewed
	Claim  time.Duration // for which it believes in a waiter that is silent
	Cool   time.Duration // for which permits rest after a lease that was not given back
	Weight int
	Until  Instant // the caller's deadline, 0 if there is none
	Wait   bool    // takes a place in the queue rather than be refused
	// Passing says that a grant lets the caller through and leaves no lease to keep.
	Passing bool
	// Places says that the caller wants to hear of each place in the queue. Such a waiter asks by itself; others are kept
	// by the heartbeat of their process.
	Places bool
	Notice bool   // the holder wants to hear at once when somebody waits
	Seed   uint64 // of the jitter
}

// Heartbeat is how often a waiter says that it is there: often enough that the server believes in it though one was lost.
func Heartbeat(claim time.Duration) time.Duration { return claim / 3 }

// maxMargin bounds how long before the server a lease ends here.
const maxMargin = 500 * time.Millisecond

// Margin is what is taken off a lease of a given span: a twentieth, for clocks that run at different rates and for the
// time a holder needs to stop.
func Margin(span time.Duration) time.Duration {
	return min(max(span/20, 2*time.Millisecond), maxMargin)
}

// maxArrival is for how long a packet that was sent can stay on its way: TCP gives a connection up after about that long.
const maxArrival = 15 * time.Minute

// arrival is for how long after it was sent a request may still reach the server: as long as a lease that it would bring
// about could do harm. The ids of acquisitions that were taken back are barred for that long.
func (t *Terms) arrival() time.Duration { return max(t.Claim, min(t.TTL+t.Cool, maxArrival)) }
