package network_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// Connections that break: at any moment, and in the middle of a reply.

func TestConnectionsCut(t *testing.T) {
	s := start(t, false)
	cut := 0
	s.Repeat(5*time.Millisecond, 10, func() { cut += s.proxy.Cut() })
	if cut < 100 {
		t.Errorf("only %d connections were cut", cut)
	}
	s.Finish()
}

func TestCutInsideAReply(t *testing.T) {
	s := start(t, false)
	before := s.proxy.Opened()
	s.Repeat(200*time.Millisecond, 20, func() {
		s.proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{CutAfter: 200 + rand.Int64N(500)}})
	})
	s.proxy.Restore()
	if again := s.proxy.Opened() - before; again < 20 {
		t.Errorf("only %d connections were opened in the place of others", again)
	}
	s.Finish()
}
