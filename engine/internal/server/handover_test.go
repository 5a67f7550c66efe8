package server_test

import (
	"net"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// A script that runs for long takes its connection away from its loop. What happens to the
// connection, or to the engine, meanwhile is seen to.

const endless = "EVAL while(true)do(type)(1)end 0"

// scripted is a server whose scripts let others in at once, with peers on each loop.
func scripted(t *testing.T, parameters []string) (*server.Server, []*peer) {
	t.Helper()
	s := kept(t, disktest.New(), append([]string{"busy-reply-threshold", "1"}, parameters...)...)
	return s, peers(t, listen(t, s))
}

// awaitBusy asks until the script runs. What it sends is not the last request of p's.
func awaitBusy(p *peer) {
	p.t.Helper()
	for reply := "$-1"; !strings.HasPrefix(reply, "-BUSY"); reply = p.line() {
		if reply != "$-1" {
			p.t.Fatalf("%q while a script runs", reply)
		}
		p.send("GET none")
	}
}

// TestTwoLongScriptsAtOnce: one runs, the other one is told so.
func TestTwoLongScriptsAtOnce(t *testing.T) {
	for name, parameters := range withLog {
		t.Run(name, func(t *testing.T) {
			_, all := scripted(t, parameters)
			for round := range 10 {
				one, two, killer := all[0], all[1+round%3], all[len(all)-1]
				one.send(endless, "PING")
				two.send(endless, "PING")
				awaitBusy(killer)
				killed := make(chan string, 2)
				for _, p := range []*peer{one, two} {
					go func() { killed <- p.line() }()
				}
				if first := <-killed; !strings.HasPrefix(first, "-BUSY") {
					t.Fatalf("one of two scripts is answered %q while the other one runs", first)
				}
				killer.send("SCRIPT KILL")
				killer.expect("+OK")
				if second := <-killed; !strings.HasPrefix(second, "-ERR Script killed") {
					t.Fatalf("the other one is answered %q", second)
				}
				for _, p := range []*peer{one, two} {
					if reply := p.line(); reply != "+PONG" && !strings.HasPrefix(reply, "-BUSY") {
						t.Errorf("what came behind a script is answered %q", reply)
					}
				}
			}
		})
	}
}

// TestAPeerThatLeavesItsScript, in whatever way: the script goes on, and then the connection
// ends. What it has sent behind the script is run, as far as it has arrived.
func TestAPeerThatLeavesItsScript(t *testing.T) {
	leave := map[string]func(p *peer){
		"closes": func(p *peer) { _ = p.conn.Close() },
		"resets": func(p *peer) {
			_ = p.conn.(*net.TCPConn).SetLinger(0)
			_ = p.conn.Close()
		},
		"closes its half": func(p *peer) { _ = p.conn.(*net.TCPConn).CloseWrite() },
	}
	for name, parameters := range withLog {
		for how, leave := range leave {
			t.Run(name+", "+how, func(t *testing.T) {
				s, all := scripted(t, parameters)
				p, other, killer := all[0], all[1], all[2]
				p.send(endless, "SET behind 1")
				awaitBusy(other)
				leave(p)
				awaitBusy(other)
				killer.send("SCRIPT KILL")
				killer.expect("+OK")
				awaitConnections(t, s, len(all)-1)
				wantText(t, s, "1", "GET", "behind")
			})
		}
	}
}

// TestCloseEndsAScript, and the requests behind it find the engine closed.
func TestCloseEndsAScript(t *testing.T) {
	for name, parameters := range withLog {
		t.Run(name, func(t *testing.T) {
			s, all := scripted(t, parameters)
			all[0].send(endless, "PING")
			awaitBusy(all[1])
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
