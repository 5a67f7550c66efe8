package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// chunks are how many entries are written by one statement: a few numbers, so that drivers have few statements to remember.
// SQLite takes 32,766 parameters in one, and an entry has four.
var chunks = []int{500, 50, 5, 1}

// Append keeps entries, and returns when they are committed. When it fails, they are kept all or not at all; it may be called
// again in any case.
func (s *Sink) Append(ctx context.Context, queue string, entries []history.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if queue != s.queue {
		return s.fail("keep", fmt.Errorf("%w: these entries are of %q", history.ErrOtherQueue, queue))
	}
	now := s.seen
	for {
		fresh, err := sequence.Kept{Seen: s.seen.position, Position: now.position, Read: s.kept}.New(ctx, entries)
		if err != nil {
			return s.fail("keep", err)
		}
		if s.closed || len(fresh) == 0 {
			if _, err = s.state(ctx); err == nil {
				s.seen = now
			}
			return s.fail("keep", err)
		}
		after, err := s.write(ctx, now, fresh)
		if err == nil {
			s.seen = after
			return nil
		}
		if !errors.Is(err, errMoved) {
			return s.fail("keep", err)
		}
		// Somebody else has moved it: who loses has seen another one win.
		before := now
		if now, err = s.state(ctx); err == nil && now == before {
			err = errors.New("the row of its position cannot be updated (is there a rule or a right that hides it?)")
		}
		if err != nil {
			return s.fail("keep", err)
		}
	}
}

// errMoved: the position is another one.
var errMoved = errors.New("somebody else has moved the position")

// write adds entries, and moves the position, if it is where it is said to be.
func (s *Sink) write(ctx context.Context, now state, entries []history.Entry) (after state, err error) {
	last, err := sequence.Parse(entries[len(entries)-1].ID)
	if err != nil {
		return after, err
	}
	after = state{position: last, entries: now.entries + int64(len(entries))}
	tx, err := s.db.BeginTx(ctx, &s.options)
	if err != nil {
		return after, err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the error is known
		}
	}()
	if now.id == 0 {
		if _, err = tx.ExecContext(ctx, s.statement("insert into {queues} (queue, version, ms, seq, entries) values ($1, $2, 0, 0, 0) on conflict do nothing"),
			s.queue, version); err != nil {
			return after, err
		}
	}
	var durable sql.NullString
	err = tx.QueryRowContext(ctx, s.statement(`update {queues} set ms = $1, seq = $2, entries = $3
		where queue = $4 and version = $5 and ms = $6 and seq = $7 and entries = $8 returning id, {durable}`),
		int64(last.Ms), int64(last.Seq), after.entries, s.queue, version, int64(now.position.Ms), int64(now.position.Seq), now.entries).
		Scan(&after.id, &durable)
	if errors.Is(err, sql.ErrNoRows) {
		return after, errMoved
	}
	if err != nil {
		return after, err
	}
	if err = s.insertAll(ctx, tx, after.id, now.entries, entries); err != nil {
		return after, err
	}
	return after, tx.Commit()
}

func (s *Sink) insertAll(ctx context.Context, tx *sql.Tx, queue, number int64, entries []history.Entry) error {
	for _, chunk := range chunks {
		for len(entries) >= chunk {
			values := make([]any, 1, 4*chunk+1)
			values[0] = queue
			for _, entry := range entries[:chunk] {
				id, err := sequence.Parse(entry.ID)
				if err != nil {
					return err
				}
				number++
				data := entry.Data
				if data == nil {
					data = []byte{} // which is not null
				}
				values = append(values, int64(id.Ms), int64(id.Seq), number, data)
			}
			if _, err := tx.ExecContext(ctx, s.inserts[chunk], values...); err != nil {
				return err
			}
			entries = entries[chunk:]
		}
	}
	return nil
}
