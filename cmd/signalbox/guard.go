package main

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox"
)

// A guard stands between a lease and the command that runs under it: the command must have ended before the permits can
// pass to somebody else. It knows three moments:
//
//	deadline - grace   no renewal has come: SIGTERM to the group
//	lease.done         the lease is over here, shortly before it is on the server: SIGKILL to the group, at once
//	forced             an operator has given the permits away already: SIGTERM, and SIGKILL after the grace
//
// A renewal moves the deadline and with it the first moment. One that comes after SIGTERM changes nothing: the command
// has been told to end.
type guard struct {
	lease *grant
	child *child
	grace time.Duration
	cause error     // why the command was ended, nil if it was not
	since time.Time // of the cause
	final bool      // SIGKILL has been sent
	asked bool      // a signal has asked the command to end
	left  []int     // the processes that could not be ended

	first      time.Time     // the deadline before any renewal
	firstGrace time.Duration // the grace until then: a lease that was handed over is short before it is confirmed
	warn       *time.Timer   // for the first moment
	kill       *time.Timer
	done       <-chan struct{} // the lease's; nil after it was heard
}

func newGuard(lease *grant, c *child, grace time.Duration) *guard {
	g := &guard{lease: lease, child: c, grace: grace, first: lease.Deadline(), done: lease.done}
	g.firstGrace = min(grace, max(time.Until(g.first)/4, 0))
	g.warn = time.NewTimer(g.untilWarning())
	g.kill = time.NewTimer(0)
	g.kill.Stop()
	return g
}

func (g *guard) close() {
	g.warn.Stop()
	g.kill.Stop()
}

// untilWarning is the time until too little of the lease is left.
func (g *guard) untilWarning() time.Duration {
	deadline, grace := g.lease.Deadline(), g.grace
	if deadline.Equal(g.first) {
		grace = g.firstGrace
	}
	return time.Until(deadline.Add(-grace))
}

// watch returns the exit status of the command when it has ended.
func (g *guard) watch(signals <-chan os.Signal) int {
	for {
		select {
		case s := <-signals:
			g.asked = g.asked || ends(s)
			g.child.signal(s)
		case <-g.warn.C:
			g.warned()
		case <-g.done:
			g.over()
		case <-g.kill.C:
			g.end()
		case state := <-g.child.states:
			if !state.stopped {
				g.sweep()
				return state.status
			}
			g.suspend(state)
		}
	}
}

// suspend takes the stop of a command on to whoever waits for signalbox, a shell as a rule. While signalbox is stopped
// nobody renews the lease: when it goes on, the command may do so only if the lease has lived.
func (g *guard) suspend(state state) {
	if g.child.stop(state) && g.cause == nil && time.Until(g.lease.Deadline()) <= 0 {
		g.blame(signalbox.ErrLeaseLost)
		g.end()
		return
	}
	g.child.resume()
}

func (g *guard) warned() {
	if left := g.untilWarning(); left > 0 {
		g.warn.Reset(left)
		return
	}
	if g.cause == nil {
		g.blame(signalbox.ErrLeaseLost)
		g.child.terminate()
		g.kill.Reset(time.Until(g.lease.Deadline()))
	}
}

func (g *guard) blame(cause error) { g.cause, g.since = cause, time.Now() }

// over hears the end of the lease.
func (g *guard) over() {
	g.done = nil
	g.warn.Stop()
	if cause := g.lease.Err(); errors.Is(cause, signalbox.ErrForced) && g.cause == nil {
		g.blame(cause)
		g.child.terminate()
		g.kill.Reset(g.grace)
		return
	}
	if g.cause == nil {
		g.blame(g.lease.Err())
	}
	g.end()
}

func (g *guard) end() {
	g.child.kill()
	g.final = true
}

// killPatience is for how long one and the same processes are waited for that were killed. The kernel takes longer only over a process that
// waits for a device, and it does not let us kill one that has become another user (sudo).
const killPatience = 5 * time.Second

// sweep ends what the command has left, if it was ended for the lease: until the grace is over they may end by
// themselves.
func (g *guard) sweep() {
	if g.cause == nil {
		return
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	var since time.Time
	for left := g.child.left(); len(left) > 0; left = g.child.left() {
		if !g.final || !slices.Equal(left, g.left) {
			g.left, since = left, time.Now()
		}
		if g.final {
			if time.Since(since) > killPatience {
				return
			}
			g.child.kill()
		}
		select {
		case <-look.C:
		case <-g.kill.C:
			g.end()
		case <-g.done:
			g.done = nil
			g.end()
		}
	}
	g.left = nil
}
