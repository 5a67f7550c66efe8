package keyspace

// Keyspace events: what happened to a key, for clients that have asked to be
// told (CONFIG SET notify-keyspace-events).
//
// A handler names the event with the change it reports (Touch), so that there
// is no change without its event. Whether anybody listens is one test of a
// mask: no name is built, nothing is allocated, unless the class is wanted.
// Who is told, and how, is the business of package exec: it sets the listener.

// Class says what kind of thing an event is about. Clients choose by class.
type Class uint16

// The classes, each with its letter in notify-keyspace-events.
const (
	ClassGeneric   Class = 1 << iota // g
	ClassString                      // $
	ClassList                        // l
	ClassSet                         // s
	ClassHash                        // h
	ClassSortedSet                   // z
	ClassExpired                     // x
	ClassEvicted                     // e
	ClassStream                      // t
	ClassModule                      // d
	ClassMiss                        // m: a read that found nothing
	ClassNew                         // n: a key that was not there before
)

// Event is one thing that can happen to a key.
type Event struct {
	Class Class
	Name  string
}

// The events that the keyspace itself reports.
var (
	eventExpired = Event{ClassExpired, "expired"}
	eventEvicted = Event{ClassEvicted, "evicted"}
	eventMiss    = Event{ClassMiss, "keymiss"}
	eventNew     = Event{ClassNew, "new"}
)

// Listen makes the space tell events of the given classes to hear, which must
// not change the keyspace nor keep the key. The zero classes are silence.
func (s *Space) Listen(classes Class, hear func(event Event, db *DB, key []byte)) {
	s.wanted, s.hear = classes, hear
}

// Notify tells an event to the listener, if it wants to know.
func (db *DB) Notify(event Event, key []byte) {
	if db.space.wanted&event.Class != 0 {
		db.space.hear(event, db, key)
	}
}
