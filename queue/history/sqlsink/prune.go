package sqlsink

import (
	"context"
	"fmt"

	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// Prune removes the entries up to the one with that ID for good, in one transaction: queue.Prunable says which nobody needs any
// more. Somebody else may write meanwhile; who reads entries that are removed is told that they are missing, and reads again.
//
// In their place is a row before all others, with the number of the last one that was removed. So the numbers have no hole,
// and an entry that is missing behind it is missed as before.
func (s *Sink) Prune(ctx context.Context, upto string) error {
	return s.fail("prune", s.prune(ctx, upto))
}

func (s *Sink) prune(ctx context.Context, upto string) (err error) {
	id, err := sequence.Parse(upto)
	if err != nil {
		return err
	}
	s.mu.Lock()
	now, err := s.state(ctx)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if id.After(now.position) {
		return fmt.Errorf("there is no entry %s: the last one is %q", id, now.position)
	}
	number, err := s.numberAt(ctx, now.id, id)
	if err != nil || number == 0 {
		return err // nothing is before it
	}
	tx, err := s.db.BeginTx(ctx, &s.options)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the error is known
		}
	}()
	if _, err = tx.ExecContext(ctx, s.statement(`insert into {entries} as kept (queue, ms, seq, number, data) values ($1, 0, 0, $2, $3)
		on conflict (queue, ms, seq) do update set number = excluded.number where kept.number < excluded.number`),
		now.id, number, []byte{}); err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, s.statement(`delete from {entries} where queue = $1 and (ms, seq) > (0, 0) and (ms, seq) <= ($2, $3)`),
		now.id, int64(id.Ms), int64(id.Seq)); err != nil {
		return err
	}
	return tx.Commit()
}
