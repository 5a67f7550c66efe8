package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// Pages are read whole before the first of their entries is given, so that who reads may use the same connection. The next
// one has as many entries as fill pageBytes if they are as large as those before.
const (
	pageBytes   = 4 << 20
	pageEntries = 5000
)

// Missing is a hole: entries that somebody has deleted. It is an error, which wraps history.ErrDamaged.
type Missing struct {
	Queue         string
	After, Before string // the IDs of the entries around it, "" if there is none
	Lost          int64  // how many entries
}

func (m *Missing) Error() string {
	return fmt.Sprintf("%s: of queue %q %d entries after %q and before %q are missing (put them back from a copy; or open it with "+
		"sqlsink.Salvage to read what is left)", history.ErrDamaged, m.Queue, m.Lost, m.After, m.Before)
}

func (m *Missing) Unwrap() error { return history.ErrDamaged }

// Read gives the entries after the one with that ID, "" for all, in order, as they were when it began. It ends with the first
// error; with Salvage missing entries are none.
func (s *Sink) Read(ctx context.Context, after string) iter.Seq2[history.Entry, error] {
	return func(yield func(history.Entry, error) bool) {
		s.mu.Lock()
		now, err := s.state(ctx)
		s.mu.Unlock()
		s.follow(ctx, now, err, after, yield)
	}
}

// kept is Read for the writer, who holds mu.
func (s *Sink) kept(ctx context.Context, after string) iter.Seq2[history.Entry, error] {
	return func(yield func(history.Entry, error) bool) {
		now, err := s.state(ctx)
		s.follow(ctx, now, err, after, yield)
	}
}

func (s *Sink) follow(ctx context.Context, now state, err error, after string, yield func(history.Entry, error) bool) {
	if err == nil {
		err = s.pages(ctx, now, after, yield)
	}
	if err != nil && !errors.Is(err, errEnough) {
		yield(history.Entry{}, s.fail("read", err))
	}
}

// errEnough: the reader wants no more.
var errEnough = errors.New("the reader has stopped")

// row is an entry with its number.
type row struct {
	id     sequence.ID
	number int64
	data   []byte
}

func (s *Sink) pages(ctx context.Context, now state, after string, yield func(history.Entry, error) bool) error {
	from, err := sequence.ParseAfter(after)
	if err != nil {
		return err
	}
	if !now.position.After(from) {
		return nil
	}
	number, err := s.numberAt(ctx, now.id, from)
	if err != nil {
		return err
	}
	for rows, limit := []row(nil), 100; number < now.entries; {
		if rows, err = s.page(ctx, now.id, from, limit); err != nil {
			return err
		}
		if len(rows) == 0 {
			return s.missing(from, sequence.ID{}, now.entries-number)
		}
		size := 1
		for _, r := range rows {
			if r.number > now.entries {
				return s.missing(from, sequence.ID{}, now.entries-number) // it was kept since
			}
			if r.number != number+1 {
				if err := s.missing(from, r.id, r.number-number-1); err != nil {
					return err
				}
			}
			if !yield(history.Entry{ID: r.id.String(), Data: r.data}, nil) {
				return errEnough
			}
			number, from, size = r.number, r.id, size+len(r.data)
		}
		limit = min(max(1, pageBytes/(size/len(rows)+1)), pageEntries)
	}
	return nil
}

// missing tells of a hole.
func (s *Sink) missing(after, before sequence.ID, lost int64) error {
	if lost <= 0 {
		return nil
	}
	hole := &Missing{s.queue, after.String(), before.String(), lost}
	if s.salvage == nil {
		return hole
	}
	s.salvage(hole)
	return nil
}

// numberAt is how many entries there are up to an ID.
func (s *Sink) numberAt(ctx context.Context, queue int64, id sequence.ID) (number int64, err error) {
	err = s.db.QueryRowContext(ctx, s.statement(`select number from {entries} where queue = $1 and (ms, seq) <= ($2, $3)
		order by ms desc, seq desc limit 1`), queue, int64(id.Ms), int64(id.Seq)).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return number, err
}

func (s *Sink) page(ctx context.Context, queue int64, after sequence.ID, limit int) (page []row, err error) {
	rows, err := s.db.QueryContext(ctx, s.statement(`select ms, seq, number, data from {entries}
		where queue = $1 and (ms, seq) > ($2, $3) order by ms, seq limit $4`), queue, int64(after.Ms), int64(after.Seq), limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	page = make([]row, 0, limit)
	for rows.Next() {
		var r row
		var ms, seq int64
		if err := rows.Scan(&ms, &seq, &r.number, &r.data); err != nil {
			return nil, err
		}
		r.id = sequence.ID{Ms: uint64(ms), Seq: uint64(seq)}
		page = append(page, r)
	}
	return page, rows.Err()
}
