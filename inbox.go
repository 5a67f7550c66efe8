package signalbox

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// The inbox is one subscription for the whole process, opened by the first waiter. Messages may be lost whenever the
// connection is; each time it is open (again), every waiter asks once. A connection that died unnoticed is found by a
// ping after half a minute of silence; until then heartbeats do its work.

const inboxSilence = 30 * time.Second

type inbox struct {
	box  *Box
	once sync.Once
	up   atomic.Bool
}

// message is "verb id number…", as the transitions publish it.
type message struct {
	verb   string
	id     string
	number [3]int64
}

// open starts the subscription if nobody has.
func (i *inbox) open() {
	if !i.up.Load() {
		i.once.Do(func() { i.box.serve(i.run) })
	}
}

func (i *inbox) run() {
	for i.box.stopping.Err() == nil {
		i.listen()
		i.up.Store(false)
		pause := time.NewTimer(backoff(i.box.claim))
		select {
		case <-pause.C:
		case <-i.box.stopping.Done():
			pause.Stop()
		}
	}
}

// listen subscribes and handles messages until the connection fails or the box closes.
func (i *inbox) listen() {
	subscription := i.box.client.Subscribe(i.box.stopping, ledger.InboxPrefix+i.box.process)
	var once sync.Once
	shut := func() {
		// A subscription that failed has nothing left to report when it closes.
		once.Do(func() { _ = subscription.Close() })
	}
	defer shut()
	defer context.AfterFunc(i.box.stopping, shut)()
	for silent := false; ; {
		received, err := subscription.ReceiveTimeout(i.box.stopping, inboxSilence)
		var network net.Error
		switch {
		case err == nil:
			silent = false
			i.handle(received)
		case !silent && errors.As(err, &network) && network.Timeout():
			silent = true
			if subscription.Ping(i.box.stopping) != nil {
				return
			}
		default:
			return
		}
	}
}

func (i *inbox) handle(received any) {
	switch received := received.(type) {
	case *redis.Subscription:
		i.up.Store(true)
		i.box.keeper.hasten()
	case *redis.Message:
		m, ok := parseMessage(received.Payload)
		if !ok {
			return
		}
		if to := i.box.member(m.id); to != nil {
			to.hear(m)
		}
	}
}

// parseMessage reads a message and reports whether it is one of ours: anybody may publish.
func parseMessage(text string) (message, bool) {
	part := strings.Fields(text)
	if len(part) < 2 {
		return message{}, false
	}
	m := message{verb: part[0], id: part[1]}
	numbers := map[string]int{"grant": 3, "heavy": 1, "force": 0}
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
