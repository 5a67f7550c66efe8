//go:build !linux

package server

import "net"

// eventLoop is there on Linux only: elsewhere each connection has a goroutine.
type eventLoop struct{}

func (*Server) adopt(nc net.Conn) net.Conn { return nc }

func (*eventLoop) stop() {}
