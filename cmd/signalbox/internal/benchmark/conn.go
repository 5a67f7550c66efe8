package benchmark

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// conn is a connection without anything on it: what a client library costs is not measured with it. Replies are read
// over, errors are not.
type conn struct {
	socket net.Conn
	in     *bufio.Reader
}

// replyWithin is how long a server may take to answer a batch.
const replyWithin = 30 * time.Second

// longestReply and deepestReply bound what is taken for a reply. No command of a run has a larger one.
const (
	longestReply = 512 << 20
	deepestReply = 8
)

func newConn(socket net.Conn) *conn {
	return &conn{socket, bufio.NewReaderSize(socket, 64<<10)}
}

func (c *conn) close() error { return c.socket.Close() }

// do sends one command and waits for its reply.
func (c *conn) do(words ...string) error { return c.roundTrip(request(words...), 1) }

// roundTrip sends a batch of requests and reads that many replies.
func (c *conn) roundTrip(batch []byte, replies int) error {
	if err := c.socket.SetDeadline(time.Now().Add(replyWithin)); err != nil {
		return err
	}
	if _, err := c.socket.Write(batch); err != nil {
		return err
	}
	for range replies {
		if err := c.skipReply(deepestReply); err != nil {
			return err
		}
	}
	return nil
}

// request is a command as bytes.
func request(words ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
	}
	return out
}

// errReply is an error that the server answered.
type errReply string

func (e errReply) Error() string { return "the server says: " + string(e) }

var errProtocol = errors.New("what the server says is not Redis's protocol")

// skipReply reads one reply. An error in it, at any depth, is returned.
func (c *conn) skipReply(depth int) error {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 3 || depth == 0 {
		return errProtocol
	}
	switch body := line[1 : len(line)-2]; line[0] {
	case '+', ':':
		return nil
	case '-':
		return errReply(body)
	case '$', '*':
		n, err := strconv.Atoi(string(body))
		if err != nil || n > longestReply {
			return errProtocol
		}
		if line[0] == '*' {
			return c.skipElements(n, depth)
		}
		if n >= 0 {
			_, err = io.CopyN(io.Discard, c.in, int64(n)+2)
		}
		return err
	}
	return errProtocol
}

func (c *conn) skipElements(n, depth int) error {
	for range n {
		if err := c.skipReply(depth - 1); err != nil {
			return err
		}
	}
	return nil
}
