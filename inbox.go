package signalbox

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// The inbox is one subscription for the whole process, opened by the first waiter. Messages may be lost whenever the
// connection is; each time it is open (again), every waiter asks once. A connection that died unnoticed is found by the
// transport after a while of silence; until then heartbeats do its work.

type inbox struct {
	box  *Box
	once sync.Once
	// round tells one subscription from the next: 0 while there is none, then 1, 2 and so on.
	round atomic.Int64
}

// message is "verb id number…", as the transitions publish it.
type message struct {
	verb   string
	id     string
	number [3]int64
}

// open starts the subscription if nobody has.
func (i *inbox) open() {
	if i.round.Load() == 0 {
		i.once.Do(func() { i.box.serve(i.run) })
	}
}

func (i *inbox) run() {
	channels := []string{ledger.InboxPrefix + i.box.process}
	for round := int64(1); i.box.stopping.Err() == nil; round++ {
		// What ended it makes no difference: until it is open again heartbeats do its work, and say what is wrong.
		_ = i.box.transport.Listen(i.box.stopping, channels, func(e transport.Event) { i.handle(round, e) })
		i.round.Store(0)
		pause := time.NewTimer(backoff(i.box.claim))
		select {
		case <-pause.C:
		case <-i.box.stopping.Done():
			pause.Stop()
		}
	}
}

func (i *inbox) handle(round int64, event transport.Event) {
	if event.Subscribed {
		i.round.Store(round)
		i.box.keeper.hasten(round)
		i.box.nudge()
		return
	}
	m, ok := parseMessage(event.Payload)
	if !ok {
		return
	}
	if to := i.box.member(m.id); to != nil {
		to.hear(m)
	}
}

// parseMessage reads a message and reports whether it is one of ours: anybody may publish.
func parseMessage(text string) (message, bool) {
	part := strings.Fields(text)
	if len(part) < 2 {
		return message{}, false
	}
	m := message{verb: part[0], id: part[1]}
	numbers := map[string]int{"grant": 3, "heavy": 1, "ask": 1, "open": 1, "wanted": 0, "force": 0}
	if n, known := numbers[m.verb]; !known || len(part) != 2+n {
		return message{}, false
	}
	for i, text := range part[2:] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return message{}, false
		}
		m.number[i] = n
	}
	return m, true
}
