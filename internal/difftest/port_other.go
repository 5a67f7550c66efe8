//go:build !linux

package difftest

import (
	"net"
	"strconv"
)

// reserve asks the system for a port that nobody listens on just now. Somebody
// else may take it.
func reserve() (port string, release func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	return port, func() error { return nil }, listener.Close()
}
