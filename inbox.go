package signalbox

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// The inbox is one subscription for the whole process, opened when the first life wants it. In a Cluster it is one in each
// slot in which a life of the process waits, or a moment ago did, so that the nodes have nothing to tell each other. Messages
// may be lost whenever the connection is; each time it is open (again), every life that messages matter to asks once. A
// connection that died unnoticed is found by the transport after a while of silence; until then heartbeats do its work.

// openInbox starts the subscription if nobody has, for a life. Called with mu held.
func (b *Box) openInbox(l *life) {
	if b.closed != nil {
		return
	}
	if b.shards != nil && l.channel == "" {
		l.channel = ledger.ShardedInbox(l.errand.name(), b.process)
		if b.hearers[l.channel] == nil {
			b.hearers[l.channel] = make(map[*life]bool)
		}
		b.hearers[l.channel][l] = true
		b.shards.Want(l.channel)
	}
	switch {
	case b.listening:
	case b.shards != nil:
		b.listening = true
		b.servants.Go(func() { b.shards.Run(b.stopping, shardsPause) })
	default:
		b.listening = true
		b.servants.Go(b.listen)
	}
}

// shardsPause is how long to wait before channels are looked for again that were lost, however seldom heartbeats are.
func shardsPause(failures int) time.Duration {
	return acquisition.Pause(failures, DefaultClaim, DefaultClaim, rand.Uint64())
}

// leaveInbox is for a life that is over. Called with mu held.
func (b *Box) leaveInbox(l *life) {
	if l.channel != "" {
		b.shards.Drop(l.channel)
		if delete(b.hearers[l.channel], l); len(b.hearers[l.channel]) == 0 {
			delete(b.hearers, l.channel)
		}
		l.channel = ""
	}
}

func (b *Box) listen() {
	channels := []string{ledger.InboxPrefix + b.process}
	for failures := 1; b.stopping.Err() == nil; failures++ {
		// What ended it makes no difference: until it is open again heartbeats do its work, and say what is wrong.
		_ = b.transport.Listen(b.stopping, channels, func(e transport.Event) {
			failures = 0
			b.receive(e)
		})
		pause := time.NewTimer(b.backoff(failures))
		select {
		case <-pause.C:
		case <-b.stopping.Done():
			pause.Stop()
		}
	}
}

// backoff is how long to wait before something that has failed so many times in a row is tried again.
func (b *Box) backoff(failures int) time.Duration {
	return acquisition.Pause(failures, b.claim, b.claim, rand.Uint64())
}

// receive steps the life that a message is for, or all when messages may have gone by.
func (b *Box) receive(event transport.Event) {
	var out outbox
	b.mu.first.Lock()
	now := b.clock.Now()
	if event.Subscribed && b.shards != nil {
		for l := range b.hearers[event.Channel] {
			b.step(l, now, acquisition.Event{What: acquisition.Listening}, &out)
		}
	} else if event.Subscribed {
		for id, l := range b.lives {
			if id == l.ids[0] {
				b.step(l, now, acquisition.Event{What: acquisition.Listening}, &out)
			}
		}
	} else if id, e, ok := parseMessage(event.Payload); ok {
		if l := b.lives[id]; l != nil {
			b.step(l, now, e, &out)
		}
	}
	b.mu.first.Unlock()
	b.perform(&out)
}

// parseMessage reads "verb id number…", as the transitions publish it, and reports whether it is one of ours: anybody may
// publish.
func parseMessage(text string) (id string, e acquisition.Event, ok bool) {
	part := strings.Fields(text)
	if len(part) < 2 {
		return "", e, false
	}
	var number [3]int64
	for i, text := range part[2:] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || i >= len(number) {
			return "", e, false
		}
		number[i] = n
	}
	expected := 0
	switch part[0] {
	case "grant": // token, the server's clock, for how long
		e.What, expected = acquisition.Handed, 3
		e.Answer.Token, e.Answer.NowMs = number[0], number[1]
	case "heavy": // limit
		e.What, expected = acquisition.TooHeavy, 1
		e.Answer.Limit = int(number[0])
	case "ask": // ms
		e.What, expected = acquisition.Worth, 1
		e.After = time.Duration(min(max(number[0], 0), int64(MaxTTL/time.Millisecond))) * time.Millisecond
	case "open": // round
		e.What, expected = acquisition.Worth, 1
	case "wanted":
		e.What = acquisition.Wanted
	case "force":
		e.What = acquisition.Forced
	default:
		return "", e, false
	}
	return part[1], e, len(part) == 2+expected && (e.What != acquisition.Handed || e.Answer.Token > 0)
}
