package command

// Error is an error that a client sees, as its text: the code, then what is
// wrong. The texts are those of Redis 7.0; clients depend on the codes.
type Error string

func (e Error) Error() string { return string(e) }

// Errors that several families share.
const (
	ErrWrongType   Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrSyntax      Error = "ERR syntax error"
	ErrNotInteger  Error = "ERR value is not an integer or out of range"
	ErrNotFloat    Error = "ERR value is not a valid float"
	ErrOutOfRange  Error = "ERR value is out of range"
	ErrPositive    Error = "ERR value is out of range, must be positive"
	ErrIndex       Error = "ERR index out of range"
	ErrNoSuchKey   Error = "ERR no such key"
	ErrMinMaxFloat Error = "ERR min or max is not a float"
	ErrMinMaxLex   Error = "ERR min or max not valid string range item"
	ErrOverflow    Error = "ERR increment or decrement would overflow"
	ErrTooLong     Error = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrCursor      Error = "ERR invalid cursor"
	ErrTimeout     Error = "ERR timeout is not a float or out of range"
	ErrNegative    Error = "ERR timeout is negative"
)
