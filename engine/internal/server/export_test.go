package server

// BoundWaiting makes the bound on requests that cannot be run yet small enough
// for a test. It must be called before there are connections.
func (s *Server) BoundWaiting(bytes int) { s.machine.SetQueryBufferLimit(int64(bytes)) }

// Sessions is how many clients the machine knows, calls in process included.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bySession)
}
