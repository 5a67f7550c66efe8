package server_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(_ int, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// attack is the body of a request that a web page has the browser send.
const attack = "SET stolen 1\r\nCONFIG SET requirepass mine\r\n*3\r\n$3\r\nSET\r\n$6\r\nstolen\r\n$1\r\n2\r\n"

func expectUntouched(t *testing.T, s *server.Server) {
	t.Helper()
	if got := do(t, s, "DBSIZE"); got.Int != 0 {
		t.Errorf("%d keys were made", got.Int)
	}
	if got := do(t, s, "CONFIG", "GET", "requirepass"); got.Elems[1].Str != "" {
		t.Errorf("the password is %q now", got.Elems[1].Str)
	}
}

func TestOtherProtocolsRunNothingAndGetNothing(t *testing.T) {
	for name, c := range map[string]struct{ sent, told string }{
		"POST":                  {"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + attack, "HTTP (POST)"},
		"POST after requests":   {"PING\r\nPOST / HTTP/1.1\r\nHost: x\r\n\r\n" + attack, "HTTP (POST)"},
		"GET":                   {"GET /?q=1 HTTP/1.1\r\nHost: x\r\n\r\n" + attack, "HTTP (GET)"},
		"HTTP/1.0 without Host": {"PUT / HTTP/1.0\r\n\r\n" + attack, "HTTP (PUT)"},
		"HTTP/2":                {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + attack, "HTTP (PRI)"},
		"a header alone":        {"Host: x\r\n" + attack, "HTTP (Host:)"},
		"POST as an array":      {"*1\r\n$4\r\nPOST\r\n" + attack, "HTTP (POST)"},
		"TLS":                   {"\x16\x03\x01\x00\xfa\x01\x00\x00\xf6\x03\x03\r\n" + attack, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			var log lines
			s := open(t, server.Options{Log: log.add})
			addr := listen(t, s)
			inMemory, err := s.Dial()
			if err != nil {
				t.Fatal(err)
			}
			socket, err := net.Dial(addr.Network(), addr.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, conn := range []net.Conn{socket, inMemory} {
				if _, err := io.WriteString(conn, c.sent); err != nil {
					t.Fatal(err)
				}
				if got, _ := io.ReadAll(conn); len(got) > 0 { // a reset is as good as an end
					t.Errorf("it was answered %q", got)
				}
				_ = conn.Close()
			}
			expectUntouched(t, s)
			told := log.take()
			if len(told) != 1 || !strings.Contains(told[0], c.told) || !strings.Contains(told[0], socket.LocalAddr().String()) {
				t.Errorf("the log says %q, want one line with %q and %v", told, c.told, socket.LocalAddr())
			}
		})
	}
}

func TestTheLogIsNotFloodedByOtherProtocols(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log lines
		s := server.New(server.Options{Log: log.add})
		knock := func(times int) {
			for range times {
				conn, err := s.Dial()
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\n\r\n") // closed meanwhile is as good
				_, _ = io.ReadAll(conn)
			}
		}
		knock(1000)
		if told := log.take(); len(told) != 1 {
			t.Errorf("%d lines for a thousand connections", len(told))
		}
		time.Sleep(time.Minute)
		knock(1)
		if told := log.take(); len(told) != 1 || !strings.Contains(told[0], "999 more") {
			t.Errorf("after a minute the log says %q", told)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnHTTPClientGetsNothing(t *testing.T) {
	s := open(t, server.Options{})
	url := "http://" + listen(t, s).String()
	for _, method := range []string{"GET", "POST", "PUT", "OPTIONS", "HEAD", "PATCH", "DELETE", "TRACE"} {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(attack))
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{DisableKeepAlives: true}
		if response, err := transport.RoundTrip(request); err == nil {
			t.Errorf("%s was answered %s", method, response.Status)
			_ = response.Body.Close()
		}
	}
	expectUntouched(t, s)
}
