package exec

import (
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// Client-side caching: the machine remembers who may hold a copy of a key, and
// calls the copies back when the key changes.
//
//   - By default a session is remembered for the keys that its reading commands
//     name, once for each key: what has been called back is forgotten, until it
//     is read again. Such a key is in keys, with the ids of its readers. An id
//     stays there when its session ends, and is passed over later: to look for
//     it everywhere would cost more.
//   - In broadcast mode nothing is remembered. The session hears of every key
//     that begins with one of its prefixes; changes are gathered while a batch
//     of requests runs and sent at its end, in one message for each prefix.
//
// Both come from one place, DB.Touch, which every change goes through, expiry
// and eviction included. While no session tracks, it has no listener: one test.
//
// The table is bounded (tracking-table-max-keys): above the bound keys are
// called back at random, though they have not changed.

// tracking is what CLIENT TRACKING has asked of a session.
type tracking struct {
	redirect      int64 // whom the messages go to; 0 is the session itself
	broadcast     bool
	optIn, optOut bool
	caching       bool // CLIENT CACHING was said: the next command is the exception
	noLoop        bool // its own changes are no news to it
	broken        bool // the session that messages went to is gone
	prefixes      []string
}

// tracker knows who is to be told of which keys.
type tracker struct {
	sessions int // that have tracking on
	maxKeys  int64
	keys     *ds.Dict[map[int64]struct{}] // readers by id
	items    int                          // readers of all keys together
	prefixes map[string]*watchedPrefix
	later    []string // keys that the caller is to be told of after its reply
	flushed  bool     // the caller is to be told that everything is gone
}

type watchedPrefix struct {
	sessions []*Session
	changed  map[string]*Session // since the last message; by whom
}

func newTracker() *tracker {
	return &tracker{keys: ds.NewDict[map[int64]struct{}](), prefixes: map[string]*watchedPrefix{}}
}

// track starts tracking, or changes what is asked of it.
func (m *Machine) track(s *Session, wanted tracking) {
	if s.tracking == nil {
		m.tracker.sessions++
		m.space.OnChange(m.keyChanged, m.allGone)
	} else {
		wanted.prefixes = append(s.tracking.prefixes, wanted.prefixes...)
	}
	s.tracking = &wanted
	for _, prefix := range wanted.prefixes {
		p := m.tracker.prefixes[prefix]
		if p == nil {
			p = &watchedPrefix{changed: map[string]*Session{}}
			m.tracker.prefixes[prefix] = p
		}
		if !slices.Contains(p.sessions, s) {
			p.sessions = append(p.sessions, s)
		}
	}
}

// untrack ends tracking. Its keys are left to be found stale.
func (m *Machine) untrack(s *Session) {
	if s.tracking == nil {
		return
	}
	for _, prefix := range s.tracking.prefixes {
		p := m.tracker.prefixes[prefix]
		if i := slices.Index(p.sessions, s); i >= 0 {
			p.sessions = slices.Delete(p.sessions, i, i+1)
		}
		if len(p.sessions) == 0 {
			delete(m.tracker.prefixes, prefix)
		}
	}
	s.tracking = nil
	if m.tracker.sessions--; m.tracker.sessions == 0 {
		m.tracker.keys.Clear()
		m.tracker.items = 0
		m.space.OnChange(nil, nil)
	}
}

// remember notes that a reading command, or a script with one, has told the
// session of its keys. It is called only while somebody tracks.
func (m *Machine) remember(s *Session, spec *command.Spec, args [][]byte) {
	t := s.tracking
	if t == nil || t.broadcast || spec.Flags&command.PubSub != 0 || (t.optIn && !t.caching) || (t.optOut && t.caching) {
		return
	}
	for _, i := range spec.KeyPositions(args) {
		readers, _ := m.tracker.keys.Get(args[i])
		if readers == nil {
			readers = map[int64]struct{}{}
			m.tracker.keys.SetBytes(args[i], readers)
		}
		before := len(readers)
		readers[s.ID] = struct{}{}
		m.tracker.items += len(readers) - before
	}
}

// hasRead is told of every reading command while anybody tracks. A script that
// reads has read all the keys that it was given.
func (m *Machine) hasRead(s *Session, spec *command.Spec, args [][]byte) {
	switch {
	case spec.Group == "scripting": // EVAL_RO and its like: their commands count
	case s == m.script:
		if m.current != nil {
			m.remember(m.current, m.callSpec, m.callArgs)
		}
	default:
		m.remember(s, spec, args)
	}
}

// boundTracking calls keys back at random while there are too many.
func (m *Machine) boundTracking() {
	t := m.tracker
	for t.maxKeys > 0 && int64(t.keys.Len()) > t.maxKeys {
		key, _, _ := t.keys.Random(m.rand)
		m.callBack([]byte(key))
	}
}

// keyChanged is told of every change while anybody tracks.
func (m *Machine) keyChanged(key []byte) {
	for prefix, p := range m.tracker.prefixes {
		if len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix {
			p.changed[string(key)] = m.current
		}
	}
	m.callBack(key)
}

// callBack tells the readers of key that their copies are no longer good.
func (m *Machine) callBack(key []byte) {
	readers, ok := m.tracker.keys.Delete(key)
	if !ok {
		return
	}
	m.tracker.items -= len(readers)
	for _, id := range slices.Sorted(readersOf(readers)) {
		s := m.sessions[id]
		switch {
		case s == nil || s.tracking == nil || s.tracking.broadcast:
		case s != m.current:
			m.invalidate(s, string(key))
		case !s.tracking.noLoop:
			m.tracker.later = append(m.tracker.later, string(key))
		}
	}
}

func readersOf(readers map[int64]struct{}) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for id := range readers {
			if !yield(id) {
				return
			}
		}
	}
}

// allGone is told when databases are emptied: every copy is called back.
func (m *Machine) allGone() {
	m.each(func(s *Session) {
		switch {
		case s.tracking == nil:
		case s == m.current:
			m.tracker.flushed = true
		default:
			m.invalidate(s)
		}
	})
	m.tracker.keys.Clear()
	m.tracker.items = 0
}

// tellCaller sends the caller what came up while its command ran. It comes
// after the reply, so that the client first learns what it has to forget.
func (m *Machine) tellCaller(s *Session) {
	if m.tracker.flushed {
		m.tracker.flushed = false
		m.invalidate(s)
	}
	for _, key := range m.tracker.later {
		m.invalidate(s, key)
	}
	m.tracker.later = m.tracker.later[:0]
}

// tellPrefixes sends what has changed under each prefix since the last call.
func (m *Machine) tellPrefixes() {
	for _, prefix := range sortedKeys(m.tracker.prefixes) {
		p := m.tracker.prefixes[prefix]
		if len(p.changed) == 0 {
			continue
		}
		all := sortedKeys(p.changed)
		for _, s := range p.sessions {
			keys := all
			if s.tracking.noLoop {
				keys = slices.DeleteFunc(slices.Clone(all), func(key string) bool { return p.changed[key] == s })
			}
			if len(keys) > 0 {
				m.invalidate(s, keys...)
			}
		}
		clear(p.changed)
	}
}

func sortedKeys[V any](of map[string]V) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// invalidationChannel is where messages go under RESP2.
const invalidationChannel = "__redis__:invalidate"

// invalidate sends one message to the session, or to whom it redirects: these
// keys are no longer good, or without keys, none is. Under RESP2 only somebody
// else who subscribes can get it.
func (m *Machine) invalidate(s *Session, keys ...string) {
	to := s
	if id := s.tracking.redirect; id != 0 {
		if to = m.sessions[id]; to == nil {
			m.redirectBroken(s, id)
			return
		}
	}
	if to.Out.Proto != 3 && (to == s || !to.Subscriber()) {
		return
	}
	out := m.pushTo(to)
	if out.Proto == 3 {
		out.Push(2)
		out.BulkString("invalidate")
	} else {
		out.Push(3)
		out.BulkString("message")
		out.BulkString(invalidationChannel)
	}
	if len(keys) == 0 {
		out.Null()
		return
	}
	out.Array(len(keys))
	for _, key := range keys {
		out.BulkString(key)
	}
}

// redirectBroken tells the session that nobody gets its messages any more.
func (m *Machine) redirectBroken(s *Session, id int64) {
	s.tracking.broken = true
	if s.Out.Proto != 3 {
		return
	}
	out := m.pushTo(s)
	out.Push(2)
	out.BulkString("tracking-redir-broken")
	out.Int(id)
}

// overlap reports whether one of two prefixes is a prefix of the other.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
