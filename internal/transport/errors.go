package transport

import (
	"errors"
	"regexp"
	"strings"
)

// An error is one of these, or one of the standard library's for what happens to connections: a *net.OpError, Op "dial"
// if it could not be opened; a net.Error with Timeout; io.EOF; the error of the context. A transport translates what its
// client library has of its own, and keeps it in the chain for those who look for it.
//
// An answer of a server and ErrUnsent say that the command was not run; an answer may also say that a script was stopped on
// its way. Of every other error nobody can know.

// ServerError is an answer that begins with a code, such as NOPERM: the server would not run the command.
type ServerError struct {
	Text string // as the server sent it
	Err  error  // the client library's own, nil if it has none
}

func (e *ServerError) Error() string {
	text := e.Text
	if e.Err != nil {
		text = e.Err.Error()
	}
	return inScript.ReplaceAllString(text, "")
}

// inScript is what a server says of where in a script it was: nothing that a reader of the error can mend.
var inScript = regexp.MustCompile(` script: \w+, on @user_(script|function):\d+\.?`)

// Unwrap gives the client library's own error.
func (e *ServerError) Unwrap() error { return e.Err }

// HasPrefix says whether err is an answer of a server that begins like that, with or without the code ERR before it.
func HasPrefix(err error, prefix string) bool {
	var answer *ServerError
	return errors.As(err, &answer) && strings.HasPrefix(strings.TrimPrefix(answer.Text, "ERR "), prefix)
}

var (
	// ErrUnsent: there was no server to send the command to.
	ErrUnsent = errors.New("not sent")
	// ErrClosed: the client was closed, so that trying again is no use.
	ErrClosed = errors.New("client closed")
)

// As marks an error of a client library as ErrUnsent or ErrClosed. Its text stays.
func As(kind, err error) error { return &marked{kind, err} }

type marked struct{ kind, err error }

func (m *marked) Error() string   { return m.err.Error() }
func (m *marked) Unwrap() []error { return []error{m.kind, m.err} }
