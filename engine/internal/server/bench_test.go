package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// roundTrip is a connection over TCP that sends the same batch again and again.
type roundTrip struct {
	conn  net.Conn
	batch []byte
	reply []byte
}

// newRoundTrip serves a new engine with some data in it.
func newRoundTrip(tb testing.TB, pipeline int, request ...string) *roundTrip {
	tb.Helper()
	s := server.New(server.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(conn.Close(), s.Close(), <-served); err != nil {
			tb.Error(err)
		}
	})
	setUp(tb, s)
	value, err := s.Do(context.Background(), args(request...))
	if err != nil || value.Kind == resp.Error {
		tb.Fatalf("%q: %v, %v", request, value, err)
	}
	t := &roundTrip{conn: conn}
	for range pipeline {
		t.batch = resp.AppendCommand(t.batch, request...)
	}
	t.reply = make([]byte, 1<<20)
	t.reply = t.reply[:t.measure(tb)]
	return t
}

// setUp makes the keys that the requests of benchmarks read.
func setUp(tb testing.TB, s *server.Server) {
	tb.Helper()
	list := []string{"RPUSH", "list"}
	for i := range 600 {
		list = append(list, fmt.Sprintf("%064d", i))
	}
	for _, request := range [][]string{list, {"SET", "key", strings.Repeat("v", 64)}} {
		if _, err := s.Do(context.Background(), args(request...)); err != nil {
			tb.Fatal(err)
		}
	}
}

// measure returns how long the replies to the batch are. What comes after them
// shows where they end.
func (t *roundTrip) measure(tb testing.TB) (bytes int) {
	tb.Helper()
	const end = "$3\r\nend\r\n"
	if _, err := t.conn.Write(resp.AppendCommand(t.batch[:len(t.batch):len(t.batch)], "ECHO", "end")); err != nil {
		tb.Fatal(err)
	}
	for !strings.HasSuffix(string(t.reply[:bytes]), end) {
		n, err := t.conn.Read(t.reply[bytes:])
		if err != nil {
			tb.Fatal(err)
		}
		bytes += n
	}
	return bytes - len(end)
}

func (t *roundTrip) run(tb testing.TB) {
	if _, err := t.conn.Write(t.batch); err != nil {
		tb.Fatal(err)
	}
	if _, err := io.ReadFull(t.conn, t.reply); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkRoundTrip is one client over loopback, whose work is in the figures.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name    string
		request []string
	}{
		{"PING", []string{"PING"}},
		{"GET", []string{"GET", "key"}},
		{"SET", []string{"SET", "key", strings.Repeat("v", 64)}},
		{"LRANGE_100", []string{"LRANGE", "list", "0", "99"}},
	} {
		for _, pipeline := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/P%d", c.name, pipeline), func(b *testing.B) {
				t := newRoundTrip(b, pipeline, c.request...)
				b.ReportAllocs()
				for b.Loop() {
					t.run(b)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pipeline), "ns/request")
			})
		}
	}
}

// BenchmarkDo is calls in process, by one goroutine and by one for each core.
func BenchmarkDo(b *testing.B) {
	for _, request := range [][]string{{"GET", "key"}, {"SET", "key", strings.Repeat("v", 64)}} {
		s := server.New(server.Options{})
		setUp(b, s)
		ctx, words := context.Background(), args(request...)
		b.Run(request[0]+"/one", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Do(ctx, words); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(request[0]+"/all", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Do(ctx, words); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
