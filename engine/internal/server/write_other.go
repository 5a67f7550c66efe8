//go:build !unix

package server

import "net"

func newNonBlocking(nc net.Conn) nonBlocking {
	if w, ok := nc.(nonBlocking); ok {
		return w
	}
	return never{}
}
