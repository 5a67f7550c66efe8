//go:build unix

package jobs_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// What a network does. No worker loses its lease by it, so no job runs twice, whatever was asked again.

func startBehindProxy(t *testing.T) (*load, *faultproxy.Proxy) {
	t.Helper()
	faults.Begin(t)
	s := difftest.Redis(t)
	proxy := faultproxy.Start(t, s.Addr)
	return start(t, faults.WithOption("redis://"+proxy.Addr(), "read_timeout=200ms"), s.Addr), proxy
}

func TestJobsConnectionsCut(t *testing.T) {
	l, proxy := startBehindProxy(t)
	cut := 0
	l.Repeat(40, 10, func() { cut += proxy.Cut() })
	if cut < 40 {
		t.Errorf("only %d connections were cut", cut)
	}
	l.Finish()
}

func TestJobsRepliesLost(t *testing.T) {
	l, proxy := startBehindProxy(t)
	l.suffer(proxy, faultproxy.Fault{Replies: faultproxy.Direction{Drop: true}})
	l.Finish()
}

func TestJobsRequestsLate(t *testing.T) {
	l, proxy := startBehindProxy(t)
	l.suffer(proxy, faultproxy.Fault{Requests: faultproxy.Direction{Hold: true}})
	l.Finish()
}

func TestJobsMessagesLost(t *testing.T) {
	l, proxy := startBehindProxy(t)
	proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Drop: true}, Only: "subscribe"})
	l.Done(30)
	proxy.Restore()
	l.Finish()
}

// suffer has a fault felt several times, with a good moment between.
func (l *load) suffer(proxy *faultproxy.Proxy, fault faultproxy.Fault) {
	l.t.Helper()
	for range 3 {
		proxy.Set(fault)
		l.Failures(3)
		proxy.Restore()
		l.Done(30)
	}
}
