//go:build unix

package server

import (
	"errors"
	"net"
	"syscall"
)

func newNonBlocking(nc net.Conn) nonBlocking {
	if w, ok := nc.(nonBlocking); ok {
		return w
	}
	var sc syscall.Conn
	switch nc := nc.(type) { // not what embeds one of them, and has a Write of its own
	case *net.TCPConn:
		sc = nc
	case *net.UnixConn:
		sc = nc
	default:
		return never{}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return never{} // closed already
	}
	w := &socketWriter{raw: raw}
	w.attempt = w.write
	return w
}

// socketWriter calls write(2) on the socket, which the runtime keeps in
// non-blocking mode.
type socketWriter struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool // w.write, bound once
	buffer  []byte
	n       int
	err     error
}

func (w *socketWriter) TryWrite(b []byte) (int, error) {
	w.buffer, w.n, w.err = b, 0, nil
	if err := w.raw.Write(w.attempt); err != nil {
		w.buffer = nil
		return 0, err
	}
	w.buffer = nil
	return w.n, w.err
}

func (w *socketWriter) write(fd uintptr) bool {
	for {
		n, err := writeNow(int(fd), w.buffer)
		switch {
		case err == nil:
			w.n = n
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EAGAIN):
			w.err = err
		}
		return true // never wait: what is left goes on in a goroutine
	}
}
