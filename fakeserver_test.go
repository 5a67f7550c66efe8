package signalbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fakeServer answers HELLO with an error, INFO with `info`, and all else with `reply`.
type fakeServer struct {
	info, reply string
	asked       atomic.Int64 // how often `reply` was given
}

// start returns the address. The server ends with the test.
func (f *fakeServer) start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() { // before this one, clients were closed
		must(t, listener.Close())
		serving.Wait()
	})
	return listener.Addr().String()
}

func (f *fakeServer) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		answer := f.reply
		switch strings.ToUpper(command) {
		case "HELLO":
			answer = "-ERR unknown command 'HELLO'"
		case "CLIENT":
			answer = "+OK"
		case "INFO":
			answer = fmt.Sprintf("$%d\r\n%s", len(f.info), f.info)
		default:
			f.asked.Add(1)
		}
		if _, err := io.WriteString(conn, answer+"\r\n"); err != nil {
			return
		}
	}
}

// readCommand reads a request and returns its first word.
func readCommand(in *bufio.Reader) (command string, err error) {
	number := func(kind string) int {
		line, failed := in.ReadString('\n')
		n, wrong := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, kind)))
		err = errors.Join(err, failed, wrong)
		return n
	}
	for i := range number("*") {
		word := make([]byte, number("$")+2)
		if err != nil {
			return "", err
		}
		if _, err := io.ReadFull(in, word); err != nil {
			return "", err
		}
		if i == 0 {
			command = string(word[:len(word)-2])
		}
	}
	return command, err
}
