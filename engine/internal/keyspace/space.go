package keyspace

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// Databases is how many numbered databases there are.
const Databases = 16

// Space is the sixteen databases and what they share.
type Space struct {
	// Dirty counts changes since the start: the engine compares it before and
	// after a command to learn whether the command changed anything.
	Dirty uint64
	// Expired counts the keys that expiry removed, lazily or actively.
	Expired uint64
	// Limits are the sizes up to which collections are compact. What is put
	// into a database follows them from then on.
	Limits ds.Limits
	// Waiters is how many clients block on keys.
	Waiters int

	dbs   [Databases]*DB
	ready []readyKey
}

// NewSpace returns sixteen empty databases.
func NewSpace() *Space {
	s := &Space{Limits: ds.DefaultLimits()}
	for i := range s.dbs {
		s.dbs[i] = newDB(s, i)
	}
	return s
}

// DB returns the database with the given number, or nil when there is none.
func (s *Space) DB(index int) *DB {
	if index < 0 || index >= Databases {
		return nil
	}
	return s.dbs[index]
}
