package server

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

// BenchmarkReplica is a replica that hears SETs as fast as it can take them.
func BenchmarkReplica(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	settings := conf.New()
	settings.Overrule("replicaof", "127.0.0.1 "+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	s := New(Options{Settings: settings})
	defer s.Close()
	s.Follow()
	conn, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	const empty = "REDIS0010\xff\x00\x00\x00\x00\x00\x00\x00\x00"
	answers := "+PONG\r\n+OK\r\n+OK\r\n+FULLRESYNC " + strings.Repeat("a", 40) + " 0\r\n$" + strconv.Itoa(len(empty)) + "\r\n" + empty
	if _, err := conn.Write([]byte(answers)); err != nil {
		b.Fatal(err)
	}
	go func() { _, _ = bytes.NewBuffer(nil).ReadFrom(conn) }()
	var stream []byte
	const keys = 10_000
	for i := range keys {
		stream = replication.AppendRequest(stream, "SET", fmt.Sprintf("key:%012d", i*7919%keys), strings.Repeat("x", 64))
	}
	b.ReportAllocs()
	b.ResetTimer()
	var sent int64
	for n := 0; n < b.N; n += keys {
		m, err := conn.Write(stream)
		if err != nil {
			b.Fatal(err)
		}
		sent += int64(m)
	}
	for offset := int64(0); offset < sent; {
		s.mu.Lock()
		offset = s.machine.Link().Offset()
		s.mu.Unlock()
	}
}
