//go:build !linux

package server

import "net"

// eventLoops are there on Linux only: elsewhere each connection has a goroutine.
type eventLoops struct{}

func (*eventLoops) adopt(_ *Server, nc net.Conn) net.Conn { return nc }

func (*eventLoops) stop() {}
