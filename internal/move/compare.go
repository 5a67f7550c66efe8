package move

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine/feed"
)

// Both servers are compared key by key while the source goes on: DUMP and PEXPIRETIME of each, where they differ again
// after a moment, until they are alike or have been different for too long. A key that changes all the time is never
// seen alike: it is looked at in the pause.

const (
	wholeUpTo  = 1_000_000
	sampleKeys = 100_000
	// again is how often keys are looked at that differ.
	again      = 20
	againAfter = 25 * time.Millisecond
	// restless is how many keys may change so often that they are looked at in the pause.
	restless = 1000
)

// dumped is what a server has under a key; payload is "" if there is nothing.
type dumped struct {
	payload    string
	expireAtMs int64 // below 0: never
}

// dump reads keys.
func dump(ctx context.Context, client *redis.Client, names []string) ([]dumped, error) {
	payloads, ends := make([]*redis.StringCmd, len(names)), make([]*redis.DurationCmd, len(names))
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, name := range names {
			payloads[i], ends[i] = pipe.Dump(ctx, name), pipe.PExpireTime(ctx, name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	found := make([]dumped, len(names))
	for i := range names {
		payload, err := payloads[i].Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
		if found[i].payload = payload; payload != "" {
			found[i].expireAtMs = int64(ends[i].Val() / time.Millisecond)
			if ends[i].Val() < 0 {
				found[i].expireAtMs = -1
			}
		}
	}
	return found, nil
}

// differing returns those of the keys that are not alike.
func differing(ctx context.Context, from, to *redis.Client, names []string) (differ []string, err error) {
	var a, b []dumped
	var errA, errB error
	var reading sync.WaitGroup
	reading.Go(func() { a, errA = dump(ctx, from, names) })
	b, errB = dump(ctx, to, names)
	reading.Wait()
	if errA != nil {
		return nil, fmt.Errorf("read the source: %w", errA)
	}
	if errB != nil {
		return nil, fmt.Errorf("read the target: %w", errB)
	}
	for i, name := range names {
		alike := a[i] == b[i]
		if !alike && a[i].payload != "" && b[i].payload != "" && a[i].expireAtMs == b[i].expireAtMs {
			if alike, err = feed.Same([]byte(a[i].payload), []byte(b[i].payload)); err != nil {
				return nil, fmt.Errorf("compare %q: %w", name, err)
			}
		}
		if !alike {
			differ = append(differ, name)
		}
	}
	return differ, nil
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// compare compares what is to be compared before the pause.
func (m *mover) compare(ctx context.Context) error {
	told, err := ask(ctx, m.From.Client, "keyspace")
	if err != nil {
		return err
	}
	total := told.keys()
	most := total
	if m.Check == CheckSample || m.Check == CheckAuto && total > wholeUpTo {
		most = sampleKeys
	}
	if m.Check == CheckNone {
		return nil
	}
	seen := int64(0)
	err = m.scan(ctx, m.From, told, func(ctx context.Context, from *redis.Client, db int, keys []string) error {
		if err := m.compareSome(ctx, from, db, keys); err != nil {
			return err
		}
		seen += int64(len(keys))
		m.tell(Event{Step: StepCheck, Keys: seen, Of: max(most, seen)})
		if seen >= most && most < total {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		m.note("a sample of %d of %d keys was compared (--check all compares all)", seen, total)
		return nil
	}
	return err
}

func (m *mover) compareSome(ctx context.Context, from *redis.Client, db int, keys []string) (err error) {
	to := m.targetIn(db)
	for range again {
		if keys, err = differing(ctx, from, to, keys); err != nil || len(keys) == 0 {
			return err
		}
		if err := pass(ctx, againAfter); err != nil {
			return err
		}
	}
	for _, name := range keys {
		m.restless = append(m.restless, key{db, name})
	}
	if len(m.restless) > restless {
		return fmt.Errorf("compare: %w: %d keys differ and stay so, such as %q in database %d: run the command again; if it says so again, "+
			"something else writes to the target", ErrDiverged, len(m.restless), m.restless[0].name, m.restless[0].db)
	}
	return nil
}

// targetIn is a client of the target for one database, which is kept.
func (m *mover) targetIn(db int) *redis.Client {
	if m.targets == nil {
		m.targets = map[int]*redis.Client{}
	}
	if m.targets[db] == nil {
		m.targets[db] = within(m.To.Client, db)
	}
	return m.targets[db]
}

// compareRestless looks at the keys that changed all the time, in the pause.
func (m *mover) compareRestless(ctx context.Context) (err error) {
	byDB := map[int][]string{}
	for _, k := range m.restless {
		byDB[k.db] = append(byDB[k.db], k.name)
	}
	for db, names := range byDB {
		from := within(m.From.Client, db)
		differ, err := differing(ctx, from, m.targetIn(db), names)
		if err = errors.Join(err, from.Close()); err != nil {
			return err
		}
		if len(differ) > 0 {
			return fmt.Errorf("compare: %w: %d keys differ though nothing changes, such as %q in database %d", ErrDiverged, len(differ), differ[0], db)
		}
	}
	return nil
}
