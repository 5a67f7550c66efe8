// Package transport is the seam between Signalbox and the client library that carries it to the servers. The ledger and
// the Box say what they need of a client here, in plain Go values; one package for each client library gives it to them:
// internal/transport/goredis, rueidisbox.
//
// The seam is narrow on purpose. A transport keeps connections, finds the server that has a key, and follows a Cluster
// when keys move. It does not know what the commands mean, does not repeat one that may have run, and starts nothing that
// outlives a call. It does not own its client either: who made the client closes it.
//
// What matters most is errors.go. Whether a lock is safe after a failure hangs on knowing if a request may have run, so
// an error that is told wrongly here breaks promises far away. That is why this package is internal: a transport is right
// if conformance.ExerciseOver says so, and the seam may still grow.
//
// To add a client library: a package with a type that has these methods, a test that runs conformance over it, and a table
// test of what becomes of the library's errors.
package transport

import (
	"context"
	"time"
)

// Command is one request.
type Command struct {
	// Words are the name, in small letters, and the arguments. Each is a string, an int or an int64.
	Words []any
	// Key is where in Words the key stands that says which server of a Cluster is asked; 0: any primary will do.
	Key int
}

// Reply is the answer to one of several commands: its value, which Doer describes, or what went wrong.
type Reply struct {
	Value any
	Err   error
}

// Failed is n replies with the same error.
func Failed(n int, err error) []Reply {
	replies := make([]Reply, n)
	for i := range replies {
		replies[i].Err = err
	}
	return replies
}

// Doer sends one command and returns its reply: an int64, a string, nil, or an []any of these. It gives up when ctx ends,
// if its client was made to. Errors are those of errors.go.
type Doer interface {
	Do(ctx context.Context, command Command) (any, error)
}

// Transport reaches one server, a Sentinel group or a Cluster. It may be used by any number of goroutines.
type Transport interface {
	Doer

	// Pipeline sends commands without waiting for replies in between. They may go to several servers and are not run
	// as one. The replies stand in the order of the commands.
	Pipeline(ctx context.Context, commands []Command) []Reply

	// Together sends commands over one connection, in order, to the server that has the key of the first: for those
	// that mean something only behind one another, as WAIT does. The replies stand in their order.
	Together(ctx context.Context, commands []Command) []Reply

	// Listen subscribes to channels over a connection of its own and calls hear with what comes, one call after the
	// other, until ctx ends or the connection is lost; the error says what ended it. It never resumes by itself: a
	// caller who is to know that messages went by calls it again. A connection on which nothing comes for Silence is
	// asked for a sign of life, and counts as lost if none comes for as long again.
	Listen(ctx context.Context, channels []string, hear func(Event)) error

	// EachPrimary calls visit for every server that has keys of its own, one after the other, until one call fails.
	EachPrimary(ctx context.Context, visit func(context.Context, Doer) error) error
}

// Event is what Listen hears.
type Event struct {
	Channel    string
	Payload    string
	Subscribed bool // no message: from here on those of Channel are heard, and those before may have gone by
}

// Silence is how long Listen takes a connection to be alive on which nothing comes.
const Silence = 30 * time.Second
