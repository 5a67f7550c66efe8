package server

// nonBlocking writes what a connection takes at once, and no more.
type nonBlocking interface {
	// TryWrite returns how much was taken; an error means the connection is
	// of no more use.
	TryWrite(b []byte) (n int, err error)
}

// never leaves all writing to the goroutine: for connections of other kinds.
type never struct{}

func (never) TryWrite([]byte) (int, error) { return 0, nil }
