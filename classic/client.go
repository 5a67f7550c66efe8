package classic

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrBusy is returned when something could not be had: a lock within the
	// acquire timeout, a semaphore at once, a trade for all its retries.
	ErrBusy = errors.New("not acquired")
	// ErrLost is returned for what the caller does not hold, or not any more.
	ErrLost = errors.New("not held any more")
	// ErrInvalid is returned for an argument that no call could succeed with.
	// Nothing has been sent then.
	ErrInvalid = errors.New("invalid argument")
)

// pollPause is how long the sources sleep between two attempts.
const pollPause = time.Millisecond

// Client is one client of an algorithm: all that it reaches outside itself.
type Client struct {
	// Redis is the server. Required.
	Redis redis.UniversalClient
	// Clock is what the client believes to be the time; nil for the system's.
	// The algorithms send it to the server and compare it with what other
	// clients have sent, which is one of their weaknesses.
	Clock Clock
	// NewID makes an identifier for each acquisition that nobody else makes;
	// nil for 128 random bits or more, as text.
	NewID func() string
}

// Clock tells the time and passes it.
type Clock interface {
	Now() time.Time
	// Sleep returns nil after d, or the cause when ctx ends before.
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock is the clock of this machine.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c Client) clock() Clock {
	if c.Clock == nil {
		return systemClock{}
	}
	return c.Clock
}

func (c Client) newID() string {
	if c.NewID == nil {
		return rand.Text()
	}
	return c.NewID()
}

// score is the time as the sources put it into sorted sets: seconds since 1970
// as a floating-point number.
func score(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// bound is a score as the argument of a range.
func bound(t time.Time) string { return fmt.Sprintf("%.7f", score(t)) }

// poll tries until it is done, until an attempt fails, or until the timeout has
// passed on the client's clock, sleeping between attempts. It answers ErrBusy
// when the time is up.
func (c Client) poll(ctx context.Context, timeout, pause time.Duration, try func() (done bool, err error)) error {
	clock := c.clock()
	for end := clock.Now().Add(timeout); clock.Now().Before(end); {
		done, err := try()
		if done || err != nil {
			return err
		}
		if err := clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return ErrBusy
}

// setNX is SETNX, which go-redis's own method has replaced by SET NX.
func (c Client) setNX(ctx context.Context, key, value string) (bool, error) {
	cmd := redis.NewBoolCmd(ctx, "setnx", key, value)
	err := c.Redis.Process(ctx, cmd)
	return cmd.Val(), err
}

// optimistic runs a transaction again until nobody disturbs it or the timeout
// has passed on the client's clock; 0 is no timeout. It answers ErrBusy then.
func (c Client) optimistic(ctx context.Context, timeout time.Duration, attempt func(*redis.Tx) error, keys ...string) error {
	clock := c.clock()
	for end := clock.Now().Add(timeout); timeout == 0 || clock.Now().Before(end); {
		if err := c.Redis.Watch(ctx, attempt, keys...); !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
	return ErrBusy
}

// check refuses what no call can do without.
func (c Client) check(kind, name string) error {
	switch {
	case c.Redis == nil:
		return invalid("%s %q: no Redis client is given", kind, name)
	case name == "":
		return invalid("%s: the name is empty", kind)
	}
	return nil
}

// wholeSeconds rounds a timeout up to what EXPIRE and BLPOP take in the sources.
func wholeSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func invalid(format string, args ...any) error {
	return fmt.Errorf("classic: "+format+": %w", append(args, ErrInvalid)...)
}

// failed says which algorithm an error is of. Nil stays nil.
func failed(kind, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("classic: %s %q: %w", kind, name, err)
}

// get reads a string; "" if there is none, which no algorithm here stores.
func get(ctx context.Context, server redis.Cmdable, key string) (string, error) {
	value, err := server.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}
