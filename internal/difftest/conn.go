package difftest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Dial opens a connection to the server under test.
type Dial func() (net.Conn, error)

// replyPatience is how long a server may take over a request: the heaviest, such as an
// LCS, on a machine that has much else to do.
const replyPatience = time.Minute

// Conn is one RESP connection. Nothing on it waits longer than ten seconds. It
// is for one goroutine.
type Conn struct {
	conn net.Conn
	r    *bufio.Reader
	buf  []byte
}

// Connect dials.
func Connect(dial Dial) (*Conn, error) {
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, r: bufio.NewReader(conn)}, nil
}

// Close hangs up.
func (c *Conn) Close() error { return c.conn.Close() }

// Do sends a request and receives one reply.
func (c *Conn) Do(args ...string) (Value, error) {
	if err := c.Send(args...); err != nil {
		return Value{}, err
	}
	return c.Receive()
}

// Send sends a request and does not wait for its reply.
func (c *Conn) Send(args ...string) error {
	c.buf = appendRequest(c.buf[:0], args)
	return c.SendRaw(c.buf)
}

func appendRequest(buf []byte, args []string) []byte {
	buf = append(buf, '*')
	buf = strconv.AppendInt(buf, int64(len(args)), 10)
	for _, arg := range args {
		buf = append(buf, "\r\n$"...)
		buf = strconv.AppendInt(buf, int64(len(arg)), 10)
		buf = append(buf, "\r\n"...)
		buf = append(buf, arg...)
	}
	return append(buf, "\r\n"...)
}

// SendRaw sends bytes as they are.
func (c *Conn) SendRaw(b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(replyPatience)); err != nil {
		return err
	}
	_, err := c.conn.Write(b)
	return err
}

// Receive waits for one reply.
func (c *Conn) Receive() (Value, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(replyPatience)); err != nil {
		return Value{}, err
	}
	return c.readValue()
}

func (c *Conn) readValue() (Value, error) {
	line, err := c.readLine()
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: Kind(line[0]), Text: line[1:]}
	switch v.Kind {
	case SimpleString, Error, Integer, Double, BigNumber, Bool, Null:
		return v, nil
	case BulkString, Verbatim, Array, Set, Map, Push:
		return c.readSized(v)
	}
	return Value{}, fmt.Errorf("a reply begins with %q", line)
}

// readSized reads what follows a line that says how much follows.
func (c *Conn) readSized(v Value) (Value, error) {
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < -1 {
		return Value{}, fmt.Errorf("a reply has the length %q", v.Text)
	}
	v.Text = ""
	if n == -1 {
		v.Nil = true
		return v, nil
	}
	if v.Kind == BulkString || v.Kind == Verbatim {
		body := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, body); err != nil {
			return Value{}, err
		}
		v.Text = string(body[:n])
		return v, nil
	}
	if v.Kind == Map {
		n *= 2
	}
	for range n {
		elem, err := c.readValue()
		if err != nil {
			return Value{}, err
		}
		v.Elems = append(v.Elems, elem)
	}
	return v, nil
}

// readLine reads a line of at least one byte, without its end.
func (c *Conn) readLine() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return "", fmt.Errorf("a reply has the line %q", line)
	}
	return line[:len(line)-2], nil
}
