package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// Sink keeps the history of one queue. It may be used by several goroutines at once.
type Sink struct {
	config
	db      *sql.DB
	queue   string
	inserts map[int]string // statements, by the number of entries

	mu     sync.Mutex // of the writer; never held by Read
	seen   state      // as of the last call that said so
	closed bool
}

var _ history.Sink = (*Sink)(nil)

// state is a queue's row.
type state struct {
	id       int64 // 0: there is none
	position sequence.ID
	entries  int64
}

// Open opens the history of a queue; if there is none, the first entries begin it. The database stays the caller's: Close does
// not close it.
func Open(ctx context.Context, db *sql.DB, dialect Dialect, queue string, options ...Option) (*Sink, error) {
	c, err := configure(dialect, options)
	if err == nil && queue == "" {
		err = errors.New("a queue has a name")
	}
	if err != nil {
		return nil, fmt.Errorf("open the history of queue %q: %w", queue, err)
	}
	s := &Sink{config: c, db: db, queue: queue, inserts: map[int]string{}}
	for _, n := range chunks {
		s.inserts[n] = c.insert(n)
	}
	if s.seen, err = s.state(ctx); err == nil { // the other table, too
		var none int
		err = db.QueryRowContext(ctx, s.statement("select 1 from {entries} where queue = $1 and number = 0"), s.seen.id).Scan(&none)
		if errors.Is(err, sql.ErrNoRows) {
			return s, nil
		}
	}
	return nil, s.fail("open", err)
}

// Queues are the names of the queues that have a history in a database, in order.
func Queues(ctx context.Context, db *sql.DB, dialect Dialect, options ...Option) (names []string, err error) {
	c, err := configure(dialect, options)
	if err == nil {
		names, err = c.queues(ctx, db)
	}
	if err != nil {
		return nil, fmt.Errorf("list the histories in %s: %w", c.name, c.explain(err))
	}
	return names, nil
}

func (c config) queues(ctx context.Context, db *sql.DB) (names []string, err error) {
	rows, err := db.QueryContext(ctx, c.statement("select queue from {queues} order by queue"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

func (s *Sink) fail(do string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s the history of queue %q in %s: %w", do, s.queue, s.name, s.explain(err))
}

// Queue is the queue whose history it keeps, "" for a new one.
func (s *Sink) Queue(ctx context.Context) (string, error) {
	now, err := s.look(ctx)
	if err != nil || now.id == 0 {
		return "", err
	}
	return s.queue, nil
}

// Position is the ID of the last entry kept, "" if there is none.
func (s *Sink) Position(ctx context.Context) (string, error) {
	now, err := s.look(ctx)
	return now.position.String(), err
}

func (s *Sink) look(ctx context.Context) (state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.state(ctx)
	if err != nil {
		return state{}, s.fail("look where it ends:", err)
	}
	s.seen = now
	return now, nil
}

// state reads the queue's row.
func (s *Sink) state(ctx context.Context) (now state, err error) {
	if s.closed {
		return now, os.ErrClosed
	}
	var version_, ms, seq int64
	err = s.db.QueryRowContext(ctx, s.statement("select id, version, ms, seq, entries from {queues} where queue = $1"), s.queue).
		Scan(&now.id, &version_, &ms, &seq, &now.entries)
	if errors.Is(err, sql.ErrNoRows) {
		return state{}, nil
	}
	if err == nil && version_ != version {
		err = fmt.Errorf("%w: it has version %d, this program knows %d (use the program that wrote it, or a newer one)",
			history.ErrOtherVersion, version_, version)
	}
	now.position = sequence.ID{Ms: uint64(ms), Seq: uint64(seq)}
	return now, err
}

// Close ends the use of the sink. The database stays open.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
