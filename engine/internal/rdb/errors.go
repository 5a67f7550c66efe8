package rdb

import "fmt"

// Error says that an input cannot be read as RDB, and where.
type Error struct {
	// Offset is the position, in bytes from the start of the input, at which the
	// item begins that is wrong, or at which the input ends if it is too short.
	Offset int64
	// Reason is what is wrong there.
	Reason string
	// Err is the error of the underlying reader, io.ErrUnexpectedEOF if the input
	// ends too early, and nil if the bytes themselves are wrong.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("rdb: at byte %d: %s: %v", e.Offset, e.Reason, e.Err)
	}
	return fmt.Sprintf("rdb: at byte %d: %s", e.Offset, e.Reason)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
