package network_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// What gets lost on one way: requests that are executed and nobody hears of it, and requests that never arrive.

func TestRepliesLost(t *testing.T) {
	s := start(t, false)
	s.suffer(faultproxy.Fault{Replies: faultproxy.Direction{Drop: true}})
	s.Finish()
}

func TestRequestsLost(t *testing.T) {
	s := start(t, false)
	s.suffer(faultproxy.Fault{Requests: faultproxy.Direction{Drop: true}})
	s.Finish()
}
