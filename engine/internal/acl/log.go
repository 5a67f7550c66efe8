package acl

import "slices"

// Context is where a call was denied.
type Context string

// The contexts of ACL LOG.
const (
	AtTopLevel Context = "toplevel"
	InMulti    Context = "multi"
	InScript   Context = "lua"
)

// Entry is one line of ACL LOG: a denial, and how often it has happened.
type Entry struct {
	Count   int64
	Why     Denial
	Context Context
	Object  string // the command, key or channel
	User    string
	AtMs    int64 // of the last one
	Client  string
}

// Reason is the entry's reason, as ACL LOG names it.
func (e Entry) Reason() string {
	return [...]string{DeniedCommand: "command", DeniedKey: "key", DeniedAuth: "auth", DeniedChannel: "channel"}[e.Why]
}

// Log remembers the latest denials, the last one first.
type Log struct{ entries []Entry }

// maxObjectBytes bounds what the log keeps of a key that somebody was denied.
const maxObjectBytes = 4096

// Add notes a denial. One that is like one of the last ten, and not much later,
// is counted with it.
func (l *Log) Add(e Entry, most int64) {
	const alikeMs, lookedAt = 60_000, 10
	e.Count = 1
	e.Object = e.Object[:min(len(e.Object), maxObjectBytes)]
	for i, old := range l.entries[:min(len(l.entries), lookedAt)] {
		apart := max(e.AtMs-old.AtMs, old.AtMs-e.AtMs)
		if old.Why == e.Why && old.Context == e.Context && old.Object == e.Object && old.User == e.User && apart <= alikeMs {
			e.Count += old.Count
			l.entries = slices.Delete(l.entries, i, i+1)
			l.entries = slices.Insert(l.entries, 0, e)
			return
		}
	}
	l.entries = slices.Insert(l.entries, 0, e)
	l.entries = l.entries[:min(int64(len(l.entries)), most)]
}

// Latest returns up to n entries, the last one first.
func (l *Log) Latest(n int64) []Entry { return l.entries[:max(0, min(n, int64(len(l.entries))))] }

// Reset forgets everything.
func (l *Log) Reset() { l.entries = nil }
