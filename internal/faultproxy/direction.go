package faultproxy

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Two goroutines serve a direction, so that a delay makes bytes late without making them few: one reads and notes when
// each piece is due, the other waits for that and for the network, and writes. Between them is a queue of a fixed
// length; when it is full the reader stops, and so in the end does the sender.

const (
	pieceBytes = 16 << 10
	queueMost  = 64
)

type direction struct {
	link     *link
	from, to net.Conn
	requests bool

	passed int64 // bytes since the fault of `era` began
	era    int
	holed  bool // bytes of this stream were lost
}

type piece struct {
	bytes []byte
	due   time.Time
}

// run ends with the link, which it cuts when its side has ended.
func (d *direction) run() {
	queue := make(chan piece, queueMost)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		d.read(queue)
	})
	d.write(queue)
	d.link.cut()
	reader.Wait()
}

// read queues what arrives until the sender ends.
func (d *direction) read(queue chan<- piece) {
	var last time.Time
	for {
		buffer := make([]byte, pieceBytes)
		n, err := d.from.Read(buffer)
		if err != nil {
			return
		}
		if d.requests {
			d.link.remember(buffer[:n])
		}
		fault, _, _ := d.fault()
		due := time.Now().Add(fault.Delay)
		if fault.Jitter > 0 {
			due = due.Add(rand.N(fault.Jitter))
		}
		if due.Before(last) {
			due = last // TCP keeps the order
		}
		last = due
		select {
		case queue <- piece{buffer[:n], due}:
		case <-d.link.gone:
			return
		}
	}
}

// write hands on what is due, until the queue ends or the link is to be cut.
func (d *direction) write(queue <-chan piece) {
	for {
		fault, era, over := d.fault()
		if era != d.era {
			d.era, d.passed = era, 0
		}
		if d.holed && !fault.Drop {
			return
		}
		if fault.Hold {
			select {
			case <-over:
			case <-d.link.gone:
				return
			}
			continue
		}
		select {
		case next, ok := <-queue:
			if !ok || !d.deliver(next) {
				return
			}
		case <-over:
		case <-d.link.gone:
			return
		}
	}
}

// deliver waits until a piece is due and may pass, and reports whether the link may live on.
func (d *direction) deliver(next piece) bool {
	if !d.await(next.due) {
		return false
	}
	for {
		fault, era, over := d.fault()
		if era != d.era {
			d.era, d.passed = era, 0
		}
		switch {
		case d.holed && !fault.Drop:
			return false
		case fault.Drop:
			d.holed = true
			return true
		case fault.Hold:
			select {
			case <-over:
				continue
			case <-d.link.gone:
				return false
			}
		}
		return d.pass(next.bytes, fault.CutAfter)
	}
}

// coarse is how late a timer of Go may be on a quiet machine, and more: the runtime sleeps in whole milliseconds.
const coarse = 2 * time.Millisecond

// await waits for a moment, a timer for most of the time and exactly for the rest. It reports whether the link is there
// still.
func (d *direction) await(due time.Time) bool {
	if most := time.Until(due) - coarse; most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-d.link.gone:
			return false
		}
	}
	sleepUntil(due)
	return true
}

// pass writes bytes, up to where the link is to be cut.
func (d *direction) pass(bytes []byte, cutAfter int64) bool {
	cut := cutAfter > 0 && d.passed+int64(len(bytes)) >= cutAfter
	if cut {
		bytes = bytes[:max(0, cutAfter-d.passed)]
	}
	d.passed += int64(len(bytes))
	_, err := d.to.Write(bytes)
	return err == nil && !cut
}

func (d *direction) fault() (Direction, int, <-chan struct{}) {
	fault, era, over := d.link.proxy.current(d.link)
	if d.requests {
		return fault.Requests, era, over
	}
	return fault.Replies, era, over
}
