//go:build unix

package quorum_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// TestQuorumServerKilled: the server is the one at which all queue, and does not come back.
func TestQuorumServerKilled(t *testing.T) {
	s := start(t)
	held := s.hold()
	s.whole(held)
	s.servers[0].Kill()
	s.outlast(held)
	must(t, held.Release(faults.Patient(t)))
	must(t, s.hold().Release(faults.Patient(t)))
}

func TestQuorumServerHung(t *testing.T) {
	s := start(t)
	s.eachAway(func(i int) { s.servers[i].Pause() }, func(i int) { s.servers[i].Resume() })
}

func TestQuorumServerCut(t *testing.T) {
	s := start(t)
	s.eachAway(s.cut, func(i int) { s.proxies[i].Restore() })
}

// TestQuorumServersInTurn: a lease outlives any number of failures, as long as no two come at once.
func TestQuorumServersInTurn(t *testing.T) {
	s := start(t)
	held := s.hold()
	for i := range s.servers {
		s.whole(held)
		s.cut(i)
		s.outlast(held)
		s.proxies[i].Restore()
	}
	s.outlast(held)
	must(t, held.Release(faults.Patient(t)))
}

// cut makes a server a black hole, and new connections too.
func (s *site) cut(i int) {
	nothing := faultproxy.Direction{Drop: true}
	s.proxies[i].Set(faultproxy.Fault{Requests: nothing, Replies: nothing})
}
