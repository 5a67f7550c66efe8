package classic

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// syncKey is the sorted set of the tokens that clients wait for.
const syncKey = "sync:wait"

const (
	// diskPatience is how long the replica may take to write to disk: with
	// appendfsync everysec about a second.
	diskPatience = 1010 * time.Millisecond
	// tokensLast is for how long a token that nobody removed is kept.
	tokensLast = 900 * time.Second
)

var (
	// ErrNotReplica is returned by WaitForSync for a server that follows none.
	ErrNotReplica = errors.New("the server is no replica")
	// ErrNoAppendOnly is returned by WaitForSync for a replica without an
	// append-only file: it writes nothing to disk that could be waited for.
	ErrNoAppendOnly = errors.New("the replica keeps no append-only file")
)

// WaitForSync returns when what the primary had acknowledged before has reached
// the replica, and is probably on its disk, Redis in Action, 4.2.
//
// It adds a token to the sorted set "sync:wait" of the primary, waits until the
// replica says master_link_status:up, until the token is there (ZSCORE), and up
// to a second for aof_pending_bio_fsync:0, asking every millisecond. Then it
// removes the token, and all that are older than 15 minutes. The listing in the
// book has a negation too many and waits while the link is up; what its text
// says is done here. Its waits end with the context, too.
//
// It promises that all that was written on the primary before the call is in
// this replica's memory when it returns nil.
//
// It breaks:
//
//   - It says nothing of another replica: if that one is promoted, the writes
//     are gone.
//   - No fsync is pending as well when the next one has not been begun. Within
//     the second of everysec, the last writes may be in memory only.
//   - After the second it answers as if the data were on disk.
//   - A client whose clock is ahead by more than 15 minutes removes the tokens
//     of others before they have reached the replica. These wait for ever.
func WaitForSync(ctx context.Context, primary Client, replica redis.UniversalClient) (err error) {
	if err := primary.check("sync", syncKey); err != nil {
		return err
	}
	if replica == nil {
		return invalid("sync %q: no replica is given", syncKey)
	}
	clock, token := primary.clock(), primary.newID()
	if err := primary.Redis.ZAdd(ctx, syncKey, redis.Z{Score: score(clock.Now()), Member: token}).Err(); err != nil {
		return failed("sync", syncKey, err)
	}
	defer func() {
		end := context.WithoutCancel(ctx)
		err = failed("sync", syncKey, errors.Join(err,
			primary.Redis.ZRem(end, syncKey, token).Err(),
			primary.Redis.ZRemRangeByScore(end, syncKey, "0", bound(clock.Now().Add(-tokensLast))).Err()))
	}()
	if err := untilLinked(ctx, clock, replica); err != nil {
		return err
	}
	if err := untilThere(ctx, clock, replica, token); err != nil {
		return err
	}
	return untilOnDisk(ctx, clock, replica)
}

// untilLinked waits until the replica is connected to its primary.
func untilLinked(ctx context.Context, clock Clock, replica redis.UniversalClient) error {
	for {
		info, err := replica.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		status, follows := infoField(info, "master_link_status")
		if !follows {
			return ErrNotReplica
		}
		if status == "up" {
			return nil
		}
		if err := clock.Sleep(ctx, pollPause); err != nil {
			return err
		}
	}
}

// untilThere waits until the replica has the token.
func untilThere(ctx context.Context, clock Clock, replica redis.UniversalClient, token string) error {
	for {
		err := replica.ZScore(ctx, syncKey, token).Err()
		if !errors.Is(err, redis.Nil) {
			return err
		}
		if err := clock.Sleep(ctx, pollPause); err != nil {
			return err
		}
	}
}

// untilOnDisk waits until no fsync of the append-only file is pending, or for a
// second.
func untilOnDisk(ctx context.Context, clock Clock, replica redis.UniversalClient) error {
	for end := clock.Now().Add(diskPatience); clock.Now().Before(end); {
		info, err := replica.Info(ctx, "persistence").Result()
		if err != nil {
			return err
		}
		pending, writes := infoField(info, "aof_pending_bio_fsync")
		if !writes {
			return ErrNoAppendOnly
		}
		if pending == "0" {
			return nil
		}
		if err := clock.Sleep(ctx, pollPause); err != nil {
			return err
		}
	}
	return nil
}

// infoField finds a field in what INFO says.
func infoField(info, name string) (value string, found bool) {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
