package exec

import (
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Keyspace notifications: events on keys, published as messages.
//
// The keyspace tells its listener of the events whose class is wanted (see
// keyspace.Event); here they become messages on two channels, the one named
// after the key and the one named after the event. Nobody wants any unless
// notify-keyspace-events says so, and then the whole of it is one test of a
// mask for each change.

// notifications is what notify-keyspace-events asks for.
type notifications struct {
	classes keyspace.Class
	byKey   bool // K: __keyspace@<db>__:<key> with the event
	byEvent bool // E: __keyevent@<db>__:<event> with the key
}

// classLetters are the letters of the classes.
var classLetters = map[rune]keyspace.Class{
	'g': keyspace.ClassGeneric, '$': keyspace.ClassString, 'l': keyspace.ClassList, 's': keyspace.ClassSet,
	'h': keyspace.ClassHash, 'z': keyspace.ClassSortedSet, 'x': keyspace.ClassExpired, 'e': keyspace.ClassEvicted,
	't': keyspace.ClassStream, 'd': keyspace.ClassModule, 'n': keyspace.ClassNew, 'm': keyspace.ClassMiss,
	'A': usualClasses,
}

// usualClasses is the letter A: all but those that come with every read and
// every key.
const usualClasses = keyspace.ClassGeneric | keyspace.ClassString | keyspace.ClassList | keyspace.ClassSet |
	keyspace.ClassHash | keyspace.ClassSortedSet | keyspace.ClassExpired | keyspace.ClassEvicted |
	keyspace.ClassStream | keyspace.ClassModule

// listen chooses which events are published, in the letters of
// notify-keyspace-events; "" is none.
func (m *Machine) listen(letters string) {
	n := notifications{byKey: strings.Contains(letters, "K"), byEvent: strings.Contains(letters, "E")}
	for _, letter := range letters {
		n.classes |= classLetters[letter]
	}
	if !n.byKey && !n.byEvent {
		n.classes = 0
	}
	m.notifications = n
	m.space.Listen(n.classes, m.publishEvent)
}

// publishEvent is the keyspace's listener.
func (m *Machine) publishEvent(event keyspace.Event, db *keyspace.DB, key []byte) {
	if m.broker.silent() {
		return
	}
	number := strconv.Itoa(db.Index)
	if m.notifications.byKey {
		m.broadcast(append([]byte("__keyspace@"+number+"__:"), key...), []byte(event.Name))
	}
	if m.notifications.byEvent {
		m.broadcast([]byte("__keyevent@"+number+"__:"+event.Name), key)
	}
}
