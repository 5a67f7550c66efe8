//go:build !unix

package server

import "net"

func newAwaiting(net.Conn, func() []byte, func()) awaiting { return nil }
