//go:build unix

package server

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// newAwaiting returns nil for what is not a socket itself.
func newAwaiting(nc net.Conn, room func() []byte, vacate func()) awaiting {
	var sc syscall.Conn
	switch nc := nc.(type) { // not what embeds one of them, and has a Read of its own
	case *net.TCPConn:
		sc = nc
	case *net.UnixConn:
		sc = nc
	default:
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil // closed already
	}
	r := &socketReader{raw: raw, room: room, vacate: vacate}
	r.attempt = r.read
	return r
}

// socketReader calls read(2) on the socket, and waits for it to be readable without
// a buffer in its hands.
type socketReader struct {
	raw     syscall.RawConn
	room    func() []byte
	vacate  func()
	attempt func(fd uintptr) bool // r.read, bound once
	n       int
	err     error
}

func (r *socketReader) AwaitRead() (int, error) {
	r.n, r.err = 0, nil
	if err := r.raw.Read(r.attempt); err != nil {
		return 0, err
	}
	return r.n, r.err
}

func (r *socketReader) read(fd uintptr) (done bool) {
	room := r.room()
	for {
		n, err := readNow(int(fd), room)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			r.vacate()
			return false
		case err != nil:
			r.err = err
		case n == 0:
			r.err = io.EOF
		default:
			r.n = n
		}
		return true
	}
}
