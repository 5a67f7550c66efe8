package move

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
)

// The cut-over:
//
//	announce   the new URL is left in the source
//	pause      CLIENT PAUSE WRITE: callers who write wait, nothing expires
//	finish     the target has heard all, and is a server of its own
//	close      the source becomes a replica of itself: it keeps what it has, and answers READONLY to who writes
//	unpause    callers are told so, look for the announcement, and go on at the target
//
// Up to close everything can be taken back, and is if something fails. Close is one transaction, which tells the offset at
// which it took place: had the pause ended before it, and somebody written, the source is opened again.

const (
	closedHost = "127.0.0.1"
	// markKey is in a target that is being written to by RESTORE.
	markKey = "signalbox:move"
	// cleanUp is how long may be tried to leave things as they were.
	cleanUp  = 10 * time.Second
	cutTries = 3
	// quietFor is for how long nobody may have used the keys that are moved out of a source which stays open: holders
	// renew within that, and waiters show that they are there.
	quietFor = 10 * time.Second
)

// errUnknown is for a source that may have been closed.
var errUnknown = errors.New("it is not known whether the source was closed")

func (m *mover) cutOver(ctx context.Context) error {
	if err := m.announce(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		if err := m.approach(ctx, nil); err != nil {
			return err
		}
		err := m.tryCut(ctx)
		if err == nil || !errors.Is(err, ErrTooSlow) || try == cutTries {
			return err
		}
		m.note("%v: once more", err)
	}
}

// announce leaves the new URL in the source. Nobody looks for it while the source takes writes.
func (m *mover) announce(ctx context.Context) error {
	if m.Announce == "" || m.LeaveOpen {
		return nil
	}
	m.announced = true
	err := m.From.Client.Set(ctx, address.MovedKey, m.Announce, 0).Err()
	if err != nil && strings.HasPrefix(err.Error(), "OOM") { // which may be why it is left
		err = m.From.Client.Eval(ctx, "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], ARGV[1])", []string{address.MovedKey}, m.Announce).Err()
	}
	if err != nil {
		return fmt.Errorf("leave the new URL in the source: %w", err)
	}
	return nil
}

// tryCut pauses writes and closes the source, or takes all back.
func (m *mover) tryCut(ctx context.Context) error {
	began := time.Now()
	within, done := context.WithTimeout(ctx, m.Pause)
	defer done()
	m.paused = true
	// The pause ends by itself long after we have given up.
	if err := m.From.Client.Do(within, "CLIENT", "PAUSE", (2*m.Pause).Milliseconds()+1000, "WRITE").Err(); err != nil {
		return errors.Join(fmt.Errorf("pause writes on the source: %w%s", err, adviceOn(err)), m.resume())
	}
	repaired, err := m.makeEqual(within)
	if err == nil && within.Err() == nil {
		if m.LeaveOpen {
			err = m.resume()
		} else {
			err = m.close(ctx, began)
		}
	}
	switch {
	case errors.Is(err, errUnknown):
		return err
	case err == nil && within.Err() == nil, m.closed:
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), m.resume())
	case within.Err() != nil:
		err = fmt.Errorf("cut over: %w: it was not done within --pause %v", ErrTooSlow, m.Pause)
		return errors.Join(err, m.resume())
	default:
		return errors.Join(err, m.resume())
	}
	m.afterwards(began, repaired)
	return nil
}

// makeEqual returns when the target has everything and stands on its own.
func (m *mover) makeEqual(ctx context.Context) (repaired int, err error) {
	m.cutOffset, err = m.offset(ctx)
	if err != nil {
		return 0, err
	}
	if r, ok := m.copying.(*restoring); ok && m.LeaveOpen && r.relay.quiet() < quietFor {
		return 0, refused("the keys that are moved were written to %v ago: with --leave-open their users must have been stopped, %v ago at least",
			r.relay.quiet().Round(time.Millisecond), quietFor)
	}
	if repaired, err = m.copying.finish(ctx, m.cutOffset); err != nil {
		return repaired, err
	}
	if err := m.compareRestless(ctx); err != nil {
		return repaired, err
	}
	return repaired, m.compareCounts(ctx)
}

// compareCounts: the target has as many keys as the source. It may have removed some whose time was over.
func (m *mover) compareCounts(ctx context.Context) error {
	if m.Match != "" {
		return nil
	}
	from, err := ask(ctx, m.From.Client, "keyspace")
	if err != nil {
		return err
	}
	to, err := ask(ctx, m.To.Client, "keyspace")
	if err != nil {
		return err
	}
	if have, want := to.keys(), from.keys(); have > want || have < want-from.expiring() {
		return fmt.Errorf("compare: %w: the source has %d keys, the target %d: does somebody else write to the target?", ErrDiverged, want, have)
	}
	return nil
}

// close closes the source, and opens it again if somebody wrote to it after it was found equal.
func (m *mover) close(ctx context.Context, began time.Time) error {
	if time.Since(began) > m.Pause {
		return context.DeadlineExceeded
	}
	ctx = context.WithoutCancel(ctx) // now it is to be known how it ends
	before, after, err := m.closing(ctx, true)
	if err != nil && strings.HasPrefix(err.Error(), "EXECABORT") { // CONFIG is refused
		before, after, err = m.closing(ctx, false)
	}
	if err != nil {
		return m.closedAfterAll(ctx, err)
	}
	was, is := facts{}, facts{}
	was.read(before)
	is.read(after)
	switch late := was.number("master_repl_offset") - m.cutOffset; {
	case late%pingBytes != 0 || late < 0 || late > 100*pingBytes:
		err = fmt.Errorf("cut over: %w: the source took writes after the pause was over", ErrTooSlow)
	case is["slave_read_only"] == "0":
		err = refused("the source would take writes as a replica, too: CONFIG SET replica-read-only yes")
	default:
		m.closed = true
		return nil
	}
	return errors.Join(fmt.Errorf("%w; the move is taken back", err), m.From.Client.ReplicaOf(ctx, "NO", "ONE").Err())
}

// closing makes the source a replica of itself, for good if its configuration can be written, and says what INFO replication
// was before and after.
func (m *mover) closing(ctx context.Context, forGood bool) (before, after string, err error) {
	var first, second *redis.StringCmd
	var closed *redis.Cmd
	var kept *redis.StatusCmd
	_, err = m.From.Client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		first = pipe.Info(ctx, "replication")
		closed = pipe.Do(ctx, "REPLICAOF", closedHost, closedPort(m.from))
		second = pipe.Info(ctx, "replication")
		if forGood {
			kept = pipe.ConfigRewrite(ctx)
		}
		return nil
	})
	if kept != nil && kept.Err() != nil && closed.Err() == nil {
		m.keepsOpen, err = kept.Err(), nil
	}
	return first.Val(), second.Val(), errors.Join(err, closed.Err())
}

// pingBytes is how long a PING of a stream is: that comes in a pause, too.
const pingBytes = int64(len("*1\r\n$4\r\nPING\r\n"))

// closedAfterAll finds out whether the source was closed, when the answer to that failed.
func (m *mover) closedAfterAll(ctx context.Context, why error) error {
	ctx, done := context.WithTimeout(ctx, cleanUp)
	defer done()
	told, err := ask(ctx, m.From.Client, "replication", "server")
	switch {
	case err != nil:
		return fmt.Errorf("close the source: %w: %w; the target has everything and stands on its own. When the source can be reached again, "+
			"see what ROLE says there: slave, and the move is done; master, and it goes on as if nothing had been, and the target is to be emptied",
			errUnknown, why)
	case isClosed(told):
		m.closed = true
		return nil
	}
	return fmt.Errorf("close the source: %w%s", why, adviceOn(why))
}

// resume lets callers write to the source again.
func (m *mover) resume() error {
	ctx, done := context.WithTimeout(context.Background(), cleanUp)
	defer done()
	if err := m.From.Client.Do(ctx, "CLIENT", "UNPAUSE").Err(); err != nil {
		return fmt.Errorf("end the pause of writes, which ends by itself %v after it began: %w", 2*m.Pause+time.Second, err)
	}
	m.paused = false
	return nil
}

// afterwards does what can be done when all is decided. What fails here is only told.
func (m *mover) afterwards(began time.Time, repaired int) {
	if m.paused {
		if err := m.resume(); err != nil {
			m.note("%v", err)
		}
	}
	pause := time.Since(began)
	ctx, done := context.WithTimeout(context.Background(), cleanUp)
	defer done()
	m.tell(Event{Step: StepCutOver, PauseMs: float64(pause.Microseconds()) / 1000, Repaired: repaired})
	if err := m.To.Client.Del(ctx, address.MovedKey).Err(); err != nil {
		m.note("the key %s is left in the target, and does no harm: %v", address.MovedKey, err)
	}
	if m.keepsOpen != nil {
		m.note("a source that is started again takes writes again (CONFIG REWRITE: %v): shut it down when its callers have gone", m.keepsOpen)
	}
}

// keepRole has a target that was a replica before be none when it is started again. What was lent to it (follow.go) must be
// taken back by then, or the source's password would stay in its configuration file.
func (m *mover) keepRole() {
	if m.to["role"] == "master" {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), cleanUp)
	defer done()
	if err := m.To.Client.ConfigRewrite(ctx).Err(); err != nil {
		m.note("the target was a replica, and is one again if its configuration says so when it is started again (CONFIG REWRITE: %v)", err)
	}
}

func closedPort(f facts) string {
	if port := f["tcp_port"]; port != "" && port != "0" {
		return port
	}
	return "1"
}

// expiring is how many keys have a time to live.
func (f facts) expiring() (n int64) {
	for _, db := range f.databases() {
		var keys, expires int64
		if _, err := fmt.Sscanf(f["db"+strconv.Itoa(db)], "keys=%d,expires=%d", &keys, &expires); err == nil {
			n += expires
		}
	}
	return n
}
