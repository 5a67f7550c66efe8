package server

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Peers that speak another protocol: a web page that has a browser send requests to this
// port (resp/foreign.go), or somebody at the wrong door. They get no answer, and whoever
// reads the log is told, but not for each of them: a page can send thousands.

// strangers is what has been told of them. The engine's lock guards it.
type strangers struct {
	toldUs int64 // when the last line was written; 0 for never
	untold int   // since then
}

const tellStrangersEveryUs = 60e6

// giveUp ends a connection whose bytes are no requests. The lock is held.
func (c *conn) giveUp(why error) {
	var foreign resp.ForeignError
	if !errors.As(why, &foreign) {
		c.session.Out.Error("ERR Protocol error: " + why.Error())
		c.finish()
		return
	}
	hint := "It wants TLS: is it to use the tls-port?"
	if foreign.Protocol == "HTTP" {
		hint = "Possible SECURITY ATTACK: this is what a web page does that wants to run commands here by way of a browser."
	}
	c.reportForeign(fmt.Sprintf("sent %v instead of requests. %s", foreign, hint))
	c.lose()
}

// reportPlain reports a peer that does not speak TLS where that is spoken.
func (c *conn) reportPlain(err error) {
	var header tls.RecordHeaderError
	if c.secured == nil || !errors.As(err, &header) {
		return
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.reportForeign(fmt.Sprintf("does not speak TLS, but this is the port for it. It began with %q.", header.RecordHeader[:]))
}

// reportForeign writes a line about a peer to the log, at most once a minute. The lock is held.
func (c *conn) reportForeign(what string) {
	known, now := &c.server.strangers, nowUs()
	if known.toldUs != 0 && now-known.toldUs < tellStrangersEveryUs {
		known.untold++
		return
	}
	more := ""
	if known.untold > 0 {
		more = fmt.Sprintf(" %d more of the kind since the last such line.", known.untold)
	}
	*known = strangers{toldUs: now}
	c.server.warn("%s %s The connection was closed, and nothing of it was run.%s", c.session.Addr, what, more)
}
