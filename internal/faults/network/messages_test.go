package network_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// TestMessagesLost: grants are messages, and messages are hints. Without them everybody gets his turn by his heartbeat.
func TestMessagesLost(t *testing.T) {
	s := start(t, true)
	inboxes, err := s.server.PubSubChannels(t.Context(), "signalbox:inbox:*").Result()
	if err != nil || len(inboxes) == 0 {
		t.Fatalf("%d inboxes are open, %v: there is nothing to lose", len(inboxes), err)
	}
	nothing := faultproxy.Direction{Drop: true}
	s.proxy.Set(faultproxy.Fault{Requests: nothing, Replies: nothing, Only: "subscribe"})
	s.Turns(3)
	s.proxy.Restore()
	s.Finish()
}
