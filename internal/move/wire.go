package move

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// wire is a connection of our own: for more requests than a client library takes, in the order in which they are sent,
// some of which one sends while another goroutine reads the replies.
type wire struct {
	nc     net.Conn
	w      *bufio.Writer
	r      *bufio.Reader
	db     int
	closed context.CancelFunc
}

// answer is an error that the server replied with.
type answer string

func (a answer) Error() string { return string(a) }

// dial opens a connection as a client would, and says who we are.
func dial(ctx context.Context, client *redis.Client) (net.Conn, error) {
	options := client.Options()
	nc, err := options.Dialer(ctx, options.Network, options.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", options.Addr, err)
	}
	return nc, nil
}

// silence is how long a target may take nothing, or owe an answer.
const silence = time.Minute

// impatient is a connection whose other side must not hang.
type impatient struct{ net.Conn }

func (c impatient) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c impatient) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// dialWire opens one. When ctx has ended, who uses it has some time left to read the replies to what was sent: what is not
// answered yet might be done after the target was emptied.
func dialWire(ctx context.Context, client *redis.Client) (*wire, error) {
	nc, err := dial(ctx, client)
	if err != nil {
		return nil, err
	}
	nc = impatient{nc}
	open, closed := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if pass(open, cleanUp) == nil {
			_ = nc.Close() // who reads or writes it sees that
		}
	})
	w := &wire{closed: closed, nc: nc, w: bufio.NewWriterSize(nc, 64<<10), r: bufio.NewReaderSize(nc, 32<<10)}
	options := client.Options()
	switch { // as the client does
	case options.Password == "":
	case options.Username == "":
		err = w.call("AUTH", options.Password)
	default:
		err = w.call("AUTH", options.Username, options.Password)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// call sends one request and waits for its reply.
func (w *wire) call(words ...string) error {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	if err := w.send(args...); err != nil {
		return err
	}
	if err := w.w.Flush(); err != nil {
		return err
	}
	return w.reply()
}

// send puts a request into the buffer. The errors of a bufio.Writer stay: the last one tells of all.
func (w *wire) send(args ...[]byte) error {
	w.head('*', len(args))
	for _, arg := range args {
		w.head('$', len(arg))
		_, _ = w.w.Write(arg)
		_, _ = w.w.WriteString("\r\n")
	}
	_, err := w.w.Write(nil)
	return err
}

func (w *wire) head(kind byte, n int) {
	var line [24]byte
	b := strconv.AppendInt(append(line[:0], kind), int64(n), 10)
	_, _ = w.w.Write(append(b, '\r', '\n'))
}

// use selects a database; inOrder is told of one more reply that comes.
func (w *wire) use(db int) (sent bool, err error) {
	if w.db == db {
		return false, nil
	}
	w.db = db
	return true, w.send([]byte("SELECT"), []byte(strconv.Itoa(db)))
}

// reply reads one reply. The error is an answer if it is one, or has one inside.
func (w *wire) reply() error {
	line, err := w.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 3 {
		return fmt.Errorf("the target replies %q: is it a Redis at all?", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '-':
		return answer(text)
	case '+', ':':
		return nil
	}
	n, err := strconv.Atoi(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("the target replies %q: is it a Redis at all?", line)
	case n < 0:
		return nil
	case kind == '$':
		_, err := io.CopyN(io.Discard, w.r, int64(n)+2)
		return err
	}
	var first error
	for range n {
		err := w.reply()
		var inside answer
		if err != nil && !errors.As(err, &inside) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (w *wire) close() error {
	w.closed()
	if err := w.nc.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
