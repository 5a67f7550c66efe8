package server

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How the loop waits. In epoll_wait it gives the processor (Go's P) away as soon as the runtime's
// monitor has seen it twice, after 20 µs and more. Where there is one P only, a second thread then
// looks at the network for Go, and the loop, when it is woken, takes the P back and wakes the
// monitor up: three switches between threads instead of one. With one client on the server's own
// core, and two others who wanted it, a request took 19.8 µs of CPU time, and takes 13.3 (Redis:
// 12.3); the rate was half of what it is.
//
// So when it has seen its last waits end soon it holds the P while it waits, and the runtime does
// not know that it does. That is only done while nobody else can want the P:
//
//   - with more than one P the monitor leaves the loop alone, and it is not needed. Then the loop does
//     not offer its own either, since to yield would wake a thread up that looks for work: two switches
//     for a request of one client, which takes 1.7 times the CPU time,
//   - the loop has just offered the P to others (yield), and none took it,
//   - nobody waits for a disk, and no connection is served by a goroutine: both come back by a
//     thread or by Go's own look at the network, which need a P.
//
// What is left are timers, and whatever else a program does that embeds the engine: they wait for
// a tick at most. The tick ends a wait that lasts for longer than was thought. It is one timer for
// a thousand waits, not one for each. Where nothing happens, nothing ticks.
//
// Rejected: a bound for each wait, with epoll_pwait2 (on a virtual machine setting a timer costs as
// much as the request: 23 µs for 10); sched_yield and another look instead of a wait (the least CPU time
// of all, but the system takes it for a wish to be last: half the rate if others want the core).

const (
	tickEvery      = time.Millisecond       // how long the P is held in vain, at most
	briefWait      = 200 * time.Microsecond // such waits
	briefEnough    = 8                      // in succession make the next one likely to be brief
	othersRanAfter = 2 * time.Microsecond   // yield takes 0.2 if nobody else wants the P
)

// waiting is what the loop knows of its waits. It is the loop's own.
type waiting struct {
	tick    int  // a timerfd, which epoll tells of
	ticking bool // it does
	brief   int  // waits in succession that were
	alone   bool // nobody took the P when it was last offered
}

// yield lets others have the P if it is the only one, and finds out whether there are any.
func (l *eventLoop) yield() {
	if runtime.GOMAXPROCS(0) > 1 {
		return
	}
	began := time.Now()
	runtime.Gosched()
	l.waiting.alone = time.Since(began) < othersRanAfter
}

// await waits until epoll has something to tell, and returns how much. A tick may be among it.
func (l *eventLoop) await() int {
	if n := l.poll(0); n > 0 {
		return n
	}
	w := &l.waiting
	if l.mayHold() && l.keepTicking() {
		if n := l.poll(-1); n > 1 || n == 1 && int(l.events[0].Fd) != w.tick {
			return n
		}
		w.brief = 0 // it was a tick, or a signal, by which the runtime wants something
	}
	if w.ticking {
		w.ticking = false
		l.setTick(0)
	}
	began := time.Now()
	n, err := unix.EpollWait(l.epoll, l.events[:], -1)
	if w.brief++; time.Since(began) > briefWait {
		w.brief = 0
	}
	if err != nil {
		return 0 // it was a signal: no other error is possible
	}
	return n
}

// mayHold reports whether nobody else wants the P, for all that is known.
func (l *eventLoop) mayHold() bool {
	return l.waiting.alone && l.waiting.brief >= briefEnough && l.server.aside.Load() == 0
}

// keepTicking has the tick tick, unless there are other Ps.
func (l *eventLoop) keepTicking() bool {
	if w := &l.waiting; !w.ticking {
		if runtime.GOMAXPROCS(0) > 1 {
			w.brief = 0
			return false
		}
		w.ticking = true
		l.setTick(tickEvery)
	}
	return true
}

func (l *eventLoop) setTick(every time.Duration) {
	span := unix.NsecToTimespec(every.Nanoseconds())
	_ = unix.TimerfdSettime(l.waiting.tick, 0, &unix.ItimerSpec{Interval: span, Value: span}, nil) // it cannot fail
}

// poll is epoll_wait of which the runtime does not know (socketcall_linux.go).
func (l *eventLoop) poll(timeoutMs int) int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll),
		uintptr(unsafe.Pointer(&l.events)), uintptr(len(l.events)), uintptr(timeoutMs), 0, 0) //nolint:gosec // the loop's own, which is not moved
	if errno != 0 {
		return 0
	}
	return int(n) //nolint:gosec // at most len(l.events)
}
