package server

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"time"
)

// The errors of MIGRATE are Redis's.
var (
	errWriting = errors.New("IOERR error or timeout writing to target instance")
	errReading = errors.New("IOERR error or timeout reading to target instance")
)

// exchange sends requests to another server and reads so many replies of one line each. The
// machine waits for it, as everybody does on Redis.
func exchange(host, port string, timeoutMs int64, requests []byte, replies int) (lines [][]byte, err error) {
	const longest = int64(time.Duration(1<<63-1) / time.Millisecond)
	timeout := time.Duration(min(timeoutMs, longest)) * time.Millisecond
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), timeout)
	if err != nil {
		return nil, errWriting
	}
	defer func() { _ = conn.Close() }() // all replies have come, or none will
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, errWriting
	}
	if _, err := conn.Write(requests); err != nil {
		return nil, errWriting
	}
	read := bufio.NewReader(conn)
	for len(lines) < replies {
		line, err := read.ReadBytes('\n')
		if err != nil {
			return lines, errReading
		}
		lines = append(lines, bytes.TrimRight(line, "\r\n"))
	}
	return lines, nil
}
