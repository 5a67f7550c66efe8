package exec

import (
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// A snapshot says at which place of which stream its moment is, so that a replica that starts again can go on
// from there, and a primary that does can be gone on from.

const (
	auxStreamDB     = "repl-stream-db"
	auxStreamID     = "repl-id"
	auxStreamOffset = "repl-offset"
)

// streamPlace is the place of this moment; none if nobody could go on from it.
func (m *Machine) streamPlace() []rdb.Aux {
	r := &m.repl
	db := 0
	switch {
	case r.link != nil && r.link.session != nil:
		db = r.link.session.db.Index
	case r.link != nil && r.link.offers:
		db = r.link.db
	case r.feeding:
		db = m.journal.DB()
	default:
		return nil
	}
	return []rdb.Aux{
		{Name: auxStreamDB, Value: strconv.Itoa(db)},
		{Name: auxStreamID, Value: r.history.ID},
		{Name: auxStreamOffset, Value: strconv.FormatInt(r.history.Offset, 10)},
	}
}

// place is what a snapshot says of its place.
type place struct {
	id           string
	offset       int64
	db           int
	hasDB, valid bool
}

// hear takes a remark of a snapshot.
func (p *place) hear(aux rdb.Aux) {
	switch aux.Name {
	case auxStreamDB:
		if n, err := strconv.Atoi(aux.Value); err == nil && n >= 0 && n < keyspace.Databases {
			p.db, p.hasDB = n, true
		}
	case auxStreamID:
		p.id = aux.Value
	case auxStreamOffset:
		if n, err := strconv.ParseInt(aux.Value, 10, 64); err == nil && n >= 0 {
			p.offset, p.valid = n, true
		}
	}
}

// whole reports whether it is a place.
func (p *place) whole() bool { return p.valid && p.hasDB && len(p.id) == idBytes }

const idBytes = 40

// GoOnFrom tells the place of the snapshot that was loaded at the start. A replica asks its primary for what
// comes after it (Follow); a primary makes a stream of its own, and lets go on who had heard that one up to there.
func (m *Machine) GoOnFrom(l *Loader) {
	p := &l.place
	if !p.whole() {
		return
	}
	r := &m.repl
	r.history.Adopt(p.id, p.offset)
	m.restored = *p
	if m.settings.Text("replicaof") == "" {
		r.history.Fork(m.newID())
		r.history.Keep(m.settings.Int("repl-backlog-size"))
		r.aloneUs = m.nowUs
		m.adjustStream()
	}
}
