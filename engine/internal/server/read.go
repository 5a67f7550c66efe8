package server

// awaiting reads from a connection, and asks for room only when there is something
// to read.
type awaiting interface {
	// AwaitRead returns what Read would, with what it read in the room.
	AwaitRead() (n int, err error)
}

// receive waits for bytes of the peer and gives them to the parser. Connections
// that are no sockets wait with a parser of their own.
func (c *conn) receive() (n int, err error) {
	if c.reader != nil {
		n, err = c.reader.AwaitRead()
	} else {
		n, err = c.nc.Read(c.room())
	}
	if n > 0 {
		c.requests.Advance(n)
	}
	return n, err
}

// room is where the next bytes go. Like all to do with the parser, it is the serving
// goroutine's.
func (c *conn) room() []byte {
	if c.requests == nil {
		c.requests = c.server.spares.parser()
	}
	return c.requests.Space()
}

// vacate gives the parser back if it holds nothing that was received.
func (c *conn) vacate() {
	if c.requests != nil && c.requests.Buffered() == 0 {
		c.requests.Forget()
		c.server.spares.returnParser(c.requests)
		c.requests = nil
	}
}

// next is the next request that has arrived.
func (c *conn) next() (args [][]byte, ok bool, err error) {
	if c.requests == nil {
		return nil, false, nil
	}
	c.requests.MaxBulkBytes = c.server.machine.MaxBulkBytes()
	c.requests.Trusted = c.session.Authenticated()
	return c.requests.Next()
}

// waiting is how many bytes have arrived and not been run.
func (c *conn) waiting() int {
	if c.requests == nil {
		return 0
	}
	return c.requests.Buffered()
}
