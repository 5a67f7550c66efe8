// Package history is what a store of a queue's history promises: entries in the order in which the queue's server wrote them,
// each kept exactly once, whatever fails in between. Queue.Record of package queue fills one, Queue.Rebuild makes a queue again
// from it.
//
// The stores are beside: queue/history/files keeps segment files, queue/history/sqlsink tables of an SQL database, and
// queue/history/historytest is what both are tested with.
package history

import (
	"context"
	"errors"
	"iter"
)

// Entry is what one transition of a queue changed, as the server wrote it.
type Entry struct {
	ID   string // "ms-seq", as the stream numbers it: strictly increasing, by the milliseconds first
	Data []byte // opaque to a sink
}

// Sink keeps entries for good. Its position moves in the same step as its data, which is what makes a follower exact: the
// one truth about what was taken is where it was taken to.
//
// A Sink is used by one follower at a time.
type Sink interface {
	// Queue is the queue whose history it keeps, "" for a new one.
	Queue(ctx context.Context) (string, error)
	// Position is the ID of the last entry kept, "" if there is none.
	Position(ctx context.Context) (string, error)
	// Append keeps entries, durably when it returns. It refuses entries of another queue than the one it keeps with
	// ErrOtherQueue, and those that do not follow what it has with ErrGap. The same entries again are no error, and kept once.
	Append(ctx context.Context, queue string, entries []Entry) error
	// Read gives the entries after the one with that ID, "" for all, in order; it ends with the first error.
	Read(ctx context.Context, after string) iter.Seq2[Entry, error]
	Close() error
}

// What goes wrong, to be tested with errors.Is.
var (
	// ErrOtherQueue: the sink keeps the history of another queue.
	ErrOtherQueue = errors.New("the history of another queue")
	// ErrOtherVersion: the entry, or what keeps it, has a version that this program does not know.
	ErrOtherVersion = errors.New("a history of another version")
	// ErrGap: entries are missing between the last one kept and the next one.
	ErrGap = errors.New("the history has a hole")
	// ErrDamaged: what was kept is not what is read.
	ErrDamaged = errors.New("the history is damaged")
	// ErrUnavailable: what keeps it is out of reach, as a database is that is started again. The same call may work later.
	ErrUnavailable = errors.New("what keeps the history is out of reach")
)
