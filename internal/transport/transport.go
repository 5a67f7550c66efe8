// Package transport is the seam between Signalbox and the client library that carries it to the servers. The ledger and
// the Box say what they need of a client here, in plain Go values; one package for each client library gives it to them:
// internal/transport/goredis, rueidisbox.
//
// The seam is narrow on purpose. A transport keeps connections, finds the server that has a key, and follows a Cluster
// when keys move. It does not know what the commands mean, does not repeat one that may have run, and starts nothing that
// outlives a call. It does not own its client either: who made the client closes it.
//
// Lanes (lanes.go) go over any transport and bound how much is on its way at once.
//
// What matters most is errors.go. Whether a lock is safe after a failure hangs on knowing if a request may have run, so
// an error that is told wrongly here breaks promises far away. That is why this package is internal: a transport is right
// if conformance.ExerciseOver says so, and the seam may still grow.
//
// To add a client library: a package with a type that has these methods, a test that runs conformance over it, and a table
// test of what becomes of the library's errors. internal/transport/over makes the Box.
package transport

import (
	"context"
	"time"
)

// Command is one request.
type Command struct {
	// Words are the name, in small letters, and the arguments. Each is a string, an int or an int64. They stay as they
	// are: a command may be on its way when its caller has given up.
	Words []any
	// Key is where in Words the key stands that says which server of a Cluster is asked; 0: any primary will do.
	Key int
	// Within is how long the answer may take once the command is on its way; 0: as the client and ctx allow.
	Within time.Duration
	// Precedence says who goes first where not all can.
	Precedence Precedence
	// Waited, unless it is nil, is set to how long the command stood in a queue of this process before it was sent, by the
	// time that Do or Pipeline returns.
	Waited *time.Duration
}

// Precedence is a rank: as long as the server cannot take all, those of a lower one go first.
type Precedence uint8

// The ranks. What frees permits lets others go on, what keeps a place spares the server asking for it anew, and what is not
// begun yet costs nothing where it is.
const (
	First  Precedence = iota // frees permits or keeps them; and whatever is asked for seldom
	Second                   // keeps a place in a queue
	Last                     // wants permits, or a place
	precedences
)

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

	// Server names what the client knows of the server that has a key. Commands with the same answer go to the same
	// server and may share a pipeline; different answers never wait for each other. It asks nobody: a client that has
	// one server, or does not know yet, answers "".
	Server(key string) string

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
	Gone       bool // no message: those of a sharded Channel are not heard any more
}

// Silence is how long Listen takes a connection to be alive on which nothing comes.
const Silence = 30 * time.Second

// NewBox is package signalbox's func(Transport, ...signalbox.Option) *signalbox.Box, which internal/transport/over gives its
// type back: signalbox imports this package, so this one cannot name what is signalbox's.
var NewBox any
