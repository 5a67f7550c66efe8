package feed_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/feed"
)

// primary answers a replica line by line, as far as the script goes.
func primary(t *testing.T, script ...string) net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		in := bufio.NewReader(theirs)
		for _, answer := range script {
			question, err := in.ReadString('\n')
			for err == nil && !strings.HasPrefix(question, "*") {
				question, err = in.ReadString('\n')
			}
			if err != nil {
				return
			}
			if _, err := io.WriteString(theirs, answer); err != nil {
				return
			}
		}
		if theirs, ok := theirs.(*net.TCPConn); ok {
			_ = theirs.CloseWrite() // that is all
		}
		_, _ = io.Copy(io.Discard, in) // until the replica has had enough
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		_ = theirs.Close()
		_ = ours.Close()
		<-done
	})
	return ours
}

const id = "0123456789012345678901234567890123456789"

// alone is what any server but the node of a Cluster answers to READONLY.
const alone = "-ERR This instance has cluster support disabled\r\n"

var nothing = feed.Visitor{
	Expect: func(int) error { return nil }, Key: func(feed.Key) error { return nil }, Library: func([]byte) error { return nil },
}

func TestSnapshotsThatCannotBeRead(t *testing.T) {
	for rdb, want := range map[string]string{
		"REDIS0099":                  "a file of version 99; versions 1 to 11 can be read",
		"GARBAGE99":                  "this is no RDB file",
		"REDIS0011\xff12345678x":     "checksum",
		"REDIS0010\x00\x01k\x01v":    "broke off", // and ends
		"REDIS0010\x07\x01k\x00\xff": "module",
	} {
		size := len(rdb)
		if want == "broke off" {
			size++
		}
		nc := primary(t, "+PONG\r\n", "+OK\r\n", "+OK\r\n", alone, "+FULLRESYNC "+id+" 7\r\n$"+itoa(size)+"\r\n"+rdb)
		f, err := feed.Open(context.Background(), nc, "", "")
		if err != nil {
			t.Fatal(err)
		}
		err = f.Snapshot(nothing)
		if err == nil || !strings.Contains(err.Error(), want) || want != "broke off" && !errors.Is(err, feed.ErrFormat) {
			t.Errorf("%q: %v", rdb, err)
		}
	}
}

func itoa(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }

func TestPrimariesThatRefuse(t *testing.T) {
	for last, want := range map[string]string{
		"-NOMASTERLINK no":     "not ready",
		"-ERR unknown command": "answers PSYNC with",
		"-NOPERM not for you":  "answers PSYNC with",
	} {
		nc := primary(t, "+PONG\r\n", "+OK\r\n", "+OK\r\n", alone, last+"\r\n")
		if _, err := feed.Open(context.Background(), nc, "", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", last, err)
		}
	}
}
