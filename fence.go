package signalbox

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Fence guards a key of the server against holders that have lost their lease and do not know: a write comes with the
// fencing token of its lease, and is refused if a newer token has been seen. What checks and what writes is one step. The
// key may be any, with or without a lock of the same name; all who write it must go through the Fence. For other stores
// the same is a condition of theirs, such as UPDATE … WHERE token <= ?.
type Fence struct {
	box  *Box
	key  string
	keep time.Duration
}

// StaleError says that a write was refused. errors.Is(err, ErrStale) matches it.
type StaleError struct {
	Key           string
	Token, Newest int64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("write %q: stale token %d, %d has been seen: this holder has lost its lease; do not try again",
		e.Key, e.Token, e.Newest)
}

// Is makes errors.Is(err, ErrStale) hold.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// FenceOption changes a Fence.
type FenceOption func(*Fence)

// FenceKeep sets for how long the newest token is remembered after a write; the default is 30 days, which is how long
// a holder would have to be paused to do harm. 1 s to MaxTTL.
func FenceKeep(d time.Duration) FenceOption {
	return func(f *Fence) { f.keep = d.Truncate(time.Millisecond) }
}

// Fence returns the guard of a key. A bad key is reported by the first call.
func (b *Box) Fence(key string, options ...FenceOption) *Fence {
	f := &Fence{box: b, key: key, keep: 30 * 24 * time.Hour}
	for _, option := range options {
		option(f)
	}
	return f
}

// Do runs a command on the key: fence.Do(ctx, lease.Token(), "HSET", "status", "paid") is HSET key status paid. The
// arguments are strings, ints and int64s; the reply is an int64, a string, nil, or an []any of these. The command must be
// one that takes its only key first. A *StaleError means that it was not run. After another error it may have been.
func (f *Fence) Do(ctx context.Context, token int64, command string, args ...any) (any, error) {
	if command == "" {
		return nil, fmt.Errorf("write %q: %w: no command; Check runs none", f.key, ErrInvalid)
	}
	return f.run(ctx, token, command, args)
}

// Check tells whether a write with the token would go through, and refuses older tokens from now on.
func (f *Fence) Check(ctx context.Context, token int64) error {
	_, err := f.run(ctx, token, "", nil)
	return err
}

func (f *Fence) run(ctx context.Context, token int64, command string, args []any) (any, error) {
	switch {
	case f.key == "":
		return nil, fmt.Errorf("write: %w: the key of the fence is empty", ErrInvalid)
	case token < 1 || token >= 1<<53:
		return nil, fmt.Errorf("write %q: %w: token %d is none of a lease", f.key, ErrInvalid, token)
	case f.keep < time.Second || f.keep > MaxTTL:
		return nil, fmt.Errorf("write %q: %w: keep %v, must be 1s to %v", f.key, ErrInvalid, f.keep, MaxTTL)
	}
	for _, arg := range args {
		switch arg.(type) {
		case string, int, int64:
		default:
			return nil, fmt.Errorf("write %q: %w: an argument of type %T, must be string, int or int64", f.key, ErrInvalid, arg)
		}
	}
	if err := f.box.ready(ctx); err != nil {
		return nil, fmt.Errorf("write %q: %w", f.key, err)
	}
	reply, newest, err := f.box.ledger.Fence(ctx, &ledger.FenceRequest{
		Key: f.key, Token: token, Keep: f.keep, Command: command, Args: args,
	})
	switch {
	case err != nil && endOf(ctx) != nil:
		err = fmt.Errorf("write %q: %w", f.key, endOf(ctx))
	case newest > 0:
		err = &StaleError{f.key, token, newest}
	}
	return reply, err
}
