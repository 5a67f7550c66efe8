package classic

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// permitsMax bounds what one RPUSH writes.
const permitsMax = 100_000

// ListSemaphore is the counting semaphore of the EuroPython talk: a list of
// permits, from which an acquire pops and to which a release pushes. Permits
// are the numbers from 1 to the limit, so that each can stand for something,
// such as a telephone line. Keys: "permits:" and the name for the list, that
// with ":ready" for the mark that it was filled. The talk's own code was not at
// hand: it is told from its description.
//
// Init sets the mark by SETNX and, if that was it, fills the list by RPUSH.
// Acquire is one BLPOP: Redis queues those who wait, first come, first served.
// Release is one RPUSH; ReleaseCount a script that says how many permits are
// left, for whoever hands out work. Restore puts back what a crash has
// swallowed: it reads the list by LRANGE and pushes each permit that is neither
// there nor, as the application's own records say, held.
//
// It promises that nobody gets a permit that was not pushed, that waiting is
// fair and costs nothing, and that no clock plays a part.
//
// It breaks:
//
//   - A client crashes between SETNX and RPUSH of Init: the list is marked as
//     filled, and empty. All wait for ever.
//   - A holder crashes, or the reply to BLPOP is lost: the permit is gone until
//     somebody restores.
//   - A permit is released twice: it is in the list twice, and two may hold it.
//   - Two clients restore at the same time: both read before either pushes, and
//     each missing permit comes back twice. Or one restores from records that do
//     not show an acquire of a moment ago.
//   - What ReleaseCount says was true before those who wait have popped.
type ListSemaphore struct {
	Client
	// Name is what the permits are for. Required.
	Name string
	// Limit is how many permits there are, from 1 to 100,000.
	Limit int
}

var releasePermitScript = redis.NewScript(`
-- KEYS[1] the list, ARGV[1] the permit. Returns how many permits are left.
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('LLEN', KEYS[1])
`)

// Init fills the list unless that was done before, and reports whether it did.
func (s ListSemaphore) Init(ctx context.Context) (filled bool, err error) {
	if err := s.check(); err != nil {
		return false, err
	}
	first, err := s.setNX(ctx, s.key()+":ready", "1")
	if err == nil && first {
		err = s.Redis.RPush(ctx, s.key(), s.permits(nil)...).Err()
	}
	return first && err == nil, failed("semaphore", s.Name, err)
}

// Acquire waits for a permit and returns it. It answers ErrBusy after wait,
// which is rounded up to whole seconds. A context that ends is heard when the
// pop ends: to turn away from a pop is to lose what it pops.
func (s ListSemaphore) Acquire(ctx context.Context, wait time.Duration) (permit string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	if err := checkTimeouts("semaphore", s.Name, 0, wait); err != nil {
		return "", err
	}
	popped, err := s.Redis.BLPop(ctx, time.Duration(wholeSeconds(wait))*time.Second, s.key()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", failed("semaphore", s.Name, ErrBusy)
	case err != nil:
		return "", failed("semaphore", s.Name, err)
	}
	return popped[1], nil
}

// Release puts a permit back. That it was held is not checked.
func (s ListSemaphore) Release(ctx context.Context, permit string) error {
	if err := s.checkPermit(permit); err != nil {
		return err
	}
	return failed("semaphore", s.Name, s.Redis.RPush(ctx, s.key(), permit).Err())
}

// ReleaseCount is Release that tells how many permits are in the list then.
func (s ListSemaphore) ReleaseCount(ctx context.Context, permit string) (left int, err error) {
	if err := s.checkPermit(permit); err != nil {
		return 0, err
	}
	left, err = releasePermitScript.Run(ctx, s.Redis, []string{s.key()}, permit).Int()
	return left, failed("semaphore", s.Name, err)
}

// Restore puts back the permits that are neither free nor among held, which is
// what the application has recorded elsewhere. It returns how many it put back.
func (s ListSemaphore) Restore(ctx context.Context, held ...string) (restored int, err error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	for _, permit := range held {
		if err := s.checkPermit(permit); err != nil {
			return 0, err
		}
	}
	free, err := s.Redis.LRange(ctx, s.key(), 0, -1).Result()
	if err != nil {
		return 0, failed("semaphore", s.Name, err)
	}
	missing := s.permits(append(free, held...))
	if len(missing) == 0 {
		return 0, nil
	}
	err = s.Redis.RPush(ctx, s.key(), missing...).Err()
	if err != nil {
		return 0, failed("semaphore", s.Name, err)
	}
	return len(missing), nil
}

// permits are all permits without those.
func (s ListSemaphore) permits(without []string) []any {
	slices.Sort(without)
	var permits []any
	for i := range s.Limit {
		permit := strconv.Itoa(i + 1)
		if _, found := slices.BinarySearch(without, permit); !found {
			permits = append(permits, permit)
		}
	}
	return permits
}

func (s ListSemaphore) key() string { return "permits:" + s.Name }

func (s ListSemaphore) check() error {
	if err := s.Client.check("semaphore", s.Name); err != nil {
		return err
	}
	if s.Limit < 1 || s.Limit > permitsMax {
		return invalid("semaphore %q: the limit is %d: give 1 to %d", s.Name, s.Limit, permitsMax)
	}
	return nil
}

func (s ListSemaphore) checkPermit(permit string) error {
	if err := s.check(); err != nil {
		return err
	}
	n, err := strconv.Atoi(permit)
	if err != nil || n < 1 || n > s.Limit || strconv.Itoa(n) != permit {
		return invalid("semaphore %q: there is no permit %q: they are 1 to %d", s.Name, permit, s.Limit)
	}
	return nil
}
