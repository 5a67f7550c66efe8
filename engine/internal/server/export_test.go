package server

// BoundWaiting makes the bound on requests that cannot be run yet small enough
// for a test. It must be called before there are connections.
func (s *Server) BoundWaiting(bytes int) { s.machine.SetQueryBufferLimit(int64(bytes)) }
