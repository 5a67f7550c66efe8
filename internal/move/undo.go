package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
)

// giveUp leaves both as they were: the source takes writes, the target has nothing of the copy. A target that had been
// following the source before goes on with that.
func (m *mover) giveUp() error {
	ctx, done := context.WithTimeout(context.Background(), cleanUp)
	defer done()
	var err error
	if m.announced {
		err = m.From.Client.Del(ctx, address.MovedKey).Err()
	}
	if m.paused {
		err = errors.Join(err, m.resume())
	}
	if err != nil {
		err = fmt.Errorf("leave the source as it was: %w", err)
	}
	if m.copying == nil {
		return err
	}
	err = errors.Join(err, m.copying.stop())
	if m.followed {
		return err
	}
	if empty := m.empty(ctx); empty != nil {
		err = errors.Join(err, fmt.Errorf("remove the copy that was not finished; --undo does it: %w", empty))
	}
	return err
}

// unfinished reports whether the target has what a move from this source has left there.
func (m *mover) unfinished(ctx context.Context) (bool, error) {
	mark, err := m.To.Client.Get(ctx, markKey).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look into the target: %w%s", err, adviceOn(err))
	}
	return mark == m.From.Place+" "+m.Match, nil
}

// empty deletes from the target what is in the way of the move, or came by it.
func (m *mover) empty(ctx context.Context) error {
	if m.Match == "" {
		if err := m.To.Client.FlushAllAsync(ctx).Err(); err != nil {
			return fmt.Errorf("empty the target: %w%s", err, adviceOn(err))
		}
		// A server that has no functions answers with an error.
		_ = m.To.Client.FunctionFlush(ctx).Err()
		return nil
	}
	told, err := ask(ctx, m.To.Client, "keyspace")
	if err != nil {
		return err
	}
	err = m.scan(ctx, m.To, told, func(ctx context.Context, in *redis.Client, _ int, keys []string) error {
		return in.Unlink(ctx, keys...).Err()
	})
	return errors.Join(err, m.To.Client.Del(ctx, markKey).Err())
}

// Undo takes back a move that was killed before its cut-over: the target is emptied of the copy.
func Undo(ctx context.Context, o Options) error {
	m := &mover{Options: o, began: time.Now()}
	var err error
	if m.from, err = ask(ctx, o.From.Client, "server", "replication"); err != nil {
		return unreachable("source", o.From.Place, err)
	}
	if m.to, err = ask(ctx, o.To.Client, "server", "replication", "keyspace"); err != nil {
		return unreachable("target", o.To.Place, err)
	}
	if isClosed(m.from) {
		return refused("the move from %s came to its end, the source is closed. To go back: signalbox move --from %s --to %s --replace",
			o.From.Place, o.To.Place, o.From.Place)
	}
	follows := m.to["role"] == "slave" && m.to["master_replid"] == m.from["master_replid"]
	left, err := m.unfinished(ctx)
	if err != nil {
		return err
	}
	if !follows && !left {
		return refused("the target %s has nothing of an unfinished move from %s%s", o.To.Place, o.From.Place, m.ofMatch())
	}
	err = errors.Join(o.From.Client.Del(ctx, address.MovedKey).Err(), o.From.Client.Do(ctx, "CLIENT", "UNPAUSE").Err())
	if err != nil {
		return fmt.Errorf("leave the source as it was: %w", err)
	}
	if follows {
		if err := o.To.Client.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
			return fmt.Errorf("make the target a primary: %w", err)
		}
	}
	return m.empty(ctx)
}
