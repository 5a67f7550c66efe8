package exec

import (
	"errors"
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

// classLetters are the classes in the order in which Redis writes them.
var classLetters = []struct {
	letter byte
	class  keyspace.Class
}{
	{'g', keyspace.ClassGeneric},
	{'$', keyspace.ClassString},
	{'l', keyspace.ClassList},
	{'s', keyspace.ClassSet},
	{'h', keyspace.ClassHash},
	{'z', keyspace.ClassSortedSet},
	{'x', keyspace.ClassExpired},
	{'e', keyspace.ClassEvicted},
	{'t', keyspace.ClassStream},
	{'d', keyspace.ClassModule},
	{'n', keyspace.ClassNew},
	{'m', keyspace.ClassMiss},
}

// usualClasses is the letter A: all but those that come with every read and
// every key.
const usualClasses = keyspace.ClassGeneric | keyspace.ClassString | keyspace.ClassList | keyspace.ClassSet |
	keyspace.ClassHash | keyspace.ClassSortedSet | keyspace.ClassExpired | keyspace.ClassEvicted |
	keyspace.ClassStream | keyspace.ClassModule

func parseNotifications(text string) (notifications, error) {
	var n notifications
	for i := range len(text) {
		switch letter := text[i]; letter {
		case 'A':
			n.classes |= usualClasses
		case 'K':
			n.byKey = true
		case 'E':
			n.byEvent = true
		default:
			class := classOf(letter)
			if class == 0 {
				return n, errors.New("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.") //nolint:staticcheck // the text is Redis's
			}
			n.classes |= class
		}
	}
	return n, nil
}

func classOf(letter byte) keyspace.Class {
	for _, c := range classLetters {
		if c.letter == letter {
			return c.class
		}
	}
	return 0
}

// String writes the letters as CONFIG GET does: A stands for the usual ones,
// and then n is not mentioned.
func (n notifications) String() string {
	var text strings.Builder
	usual := n.classes&usualClasses == usualClasses
	if usual {
		text.WriteByte('A')
	}
	for _, c := range classLetters {
		if n.classes&c.class != 0 && !usual && c.class != keyspace.ClassMiss {
			text.WriteByte(c.letter)
		}
	}
	if n.byKey {
		text.WriteByte('K')
	}
	if n.byEvent {
		text.WriteByte('E')
	}
	if n.classes&keyspace.ClassMiss != 0 {
		text.WriteByte('m')
	}
	return text.String()
}

// SetNotifications chooses which events are published, in the letters of
// notify-keyspace-events; "" is none.
func (m *Machine) SetNotifications(letters string) error {
	n, err := parseNotifications(letters)
	if err != nil {
		return err
	}
	m.notifications = n
	if !n.byKey && !n.byEvent {
		n.classes = 0
	}
	m.space.Listen(n.classes, m.publishEvent)
	return nil
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
