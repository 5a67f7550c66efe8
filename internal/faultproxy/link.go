package faultproxy

import (
	"net"
	"sync"
)

// rememberedBytes bounds what a link remembers of what its client said, for Fault.Only. What tells a connection for
// messages from others comes early.
const rememberedBytes = 1024

// link is one connection of a client and the one to the server that belongs to it.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	gone           chan struct{} // closed when the link is cut
	once           sync.Once
	words          []byte // the first that the client said; guarded by proxy.mu
}

// run passes bytes both ways until either side ends, or the link is cut.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go((&direction{link: l, from: l.client, to: l.server, requests: true}).run)
	both.Go((&direction{link: l, from: l.server, to: l.client}).run)
	both.Wait()
}

// cut ends both connections at once.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.gone)
		// A connection that fails to close has broken already.
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

func (l *link) remember(said []byte) {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if room := rememberedBytes - len(l.words); room > 0 {
		l.words = append(l.words, said[:min(room, len(said))]...)
	}
}
