package racelab

import (
	"context"
	"slices"
	"time"
)

// An algorithm that subscribes by its own client library has three goroutines
// while it waits: its own, which waits for a message or an alarm; the library's,
// which reads from the connection; and the alarm's, which sleeps. The lab waits
// until the last two have stopped, and takes the first to stand idle: it is, when
// it has subscribed, and when it has ended a vain attempt by UNWATCH. Messages
// are handed in one by one, and only while it is idle, so that each begins one
// attempt.

// listening is the subscription of a client.
type listening struct {
	conn   *conn
	wake   time.Time
	reads  chan struct{} // the reader has come back for more
	sleeps chan struct{} // the alarm is set
	heard  chan struct{} // lets the reader go on
	ring   chan struct{} // lets the alarm go on
	gone   chan struct{} // closed with the connection
}

// read stops the reader until there is something to read. It is false when the
// connection is closed.
func (l *listening) read() bool {
	select {
	case l.reads <- struct{}{}:
	case <-l.gone:
		return false
	}
	select {
	case <-l.heard:
		return true
	case <-l.gone:
		return false
	}
}

func (l *listening) sleep(ctx context.Context, wake time.Time) error {
	l.wake = wake
	l.sleeps <- struct{}{}
	select {
	case <-l.ring:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *listening) close() {
	select {
	case <-l.gone:
	default:
		close(l.gone)
	}
}

// listens lets a client go on that stands idle afterwards, and says whether it
// does.
func (w *world) listens(c *Client, k *conn) bool {
	switch {
	case k.last == "subscribe":
		l := &listening{
			conn: k, reads: make(chan struct{}), sleeps: make(chan struct{}), heard: make(chan struct{}), ring: make(chan struct{}),
			gone: make(chan struct{}),
		}
		c.listen, k.listen = l, l
		c.resume <- proceed
		<-l.reads
		<-l.sleeps
	case k.last == "unwatch" && c.listen != nil && c.listen.conn.round == w.round:
		c.resume <- proceed
	default:
		return false
	}
	c.stop = stop{kind: atNotice, op: c.stop.op, wake: c.listen.wake}
	return true
}

// notify hands a message in, and waits for what the client does with it.
func (w *world) notify(c *Client, message string) {
	c.listen.conn.reply = []byte(message)
	c.listen.heard <- struct{}{}
	<-w.parked
	<-c.listen.reads
}

// collectNotices takes what has come to a subscription, message by message.
func (w *world) collectNotices(i int, c *Client) {
	k := c.listen.conn
	if k.round != w.round || k.lost || !k.remote.Pending() {
		return
	}
	w.step.woke = append(w.step.woke, i)
	for received := k.remote.Received(); len(received) > 0; {
		_, rest := parseReply(received)
		c.mail = append(c.mail, string(received[:len(received)-len(rest)]))
		received = rest
	}
}

// judgeAsleep looks for clients that wait while all is free and nothing is on
// its way to them.
func (w *world) judgeAsleep() {
	if !slices.Contains(w.algorithm.Promises, Woken) || !w.looking() {
		return
	}
	asleep := ""
	for _, c := range w.clients {
		switch {
		case c.stop.kind == atEnd, c.begins == 0:
		case c.stop.kind == atNotice && len(c.mail) == 0:
			asleep = c.Name
		default:
			return
		}
	}
	if asleep != "" && len(bulks(w.engine.Do("KEYS", "*"))) == 0 {
		w.accuse(Woken, "%s waits for a message that will not come, and nobody holds what it waits for", asleep)
	}
}

// deliver gives a client the first message of its inbox, or loses it.
func (w *world) deliver(c *Client, heard bool) {
	message := c.mail[0]
	c.mail = slices.Clone(c.mail[1:])
	w.said(c, message)
	if !heard {
		return
	}
	if c.life != nil {
		w.happens(c, 'm', message, func() { c.life.hear(message) })
		return
	}
	c.learn('m', []byte(message))
	w.notify(c, message)
}
