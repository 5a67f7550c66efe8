package move

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/engine/feed"
)

// restoring writes to the target what the source tells it as a replica: the snapshot by some connections at once, the
// stream by one.
type restoring struct {
	*mover
	feed   *feed.Feed
	filter *filter
	relay  *relay
	cancel context.CancelFunc
}

const (
	writers    = 3
	batchKeys  = 256
	batchBytes = 256 << 10
)

func (r *restoring) start(ctx context.Context) error {
	if err := r.To.Client.Set(ctx, markKey, r.From.Place+" "+r.Match, 0).Err(); err != nil {
		return fmt.Errorf("write to the target: %w%s", err, adviceOn(err))
	}
	nc, err := dial(ctx, r.From.Client)
	if err != nil {
		return err
	}
	ctx, r.cancel = context.WithCancel(ctx)
	options := r.From.Client.Options()
	if r.feed, err = feed.Open(ctx, nc, options.Username, options.Password); err != nil {
		return fmt.Errorf("follow the source: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = r.feed.Close() }) // its reader sees that
	r.filter = newFilter(r.Match)
	if err := r.load(ctx); err != nil {
		return err
	}
	wire, err := dialWire(ctx, r.To.Client)
	if err != nil {
		return err
	}
	r.relay = newRelay(r.feed, wire, r.filter, r.skew)
	return nil
}

// load writes the snapshot.
func (r *restoring) load(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan []feed.Key, writers)
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			if err := r.write(ctx, batches); err != nil {
				cancel(fmt.Errorf("write the snapshot to the target: %w%s", err, adviceOn(err)))
				_ = r.feed.Close() // who reads it has nothing to do any more
			}
		})
	}
	err := r.read(ctx, batches)
	close(batches)
	working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, feed.ErrFormat) {
		return fmt.Errorf("copy the source: %w; what this program cannot read, it can only move by REPLICAOF, to a target as new as the source", err)
	}
	if err != nil {
		return fmt.Errorf("copy the source: %w", err)
	}
	return nil
}

// read hands the keys of the snapshot to the writers.
func (r *restoring) read(ctx context.Context, batches chan<- []feed.Key) error {
	var batch []feed.Key
	var keys, all, bytes, held int64
	hand := func() error {
		select {
		case batches <- batch:
			batch, held = make([]feed.Key, 0, batchKeys), 0
			r.tell(Event{Step: StepCopy, By: ByRestore, Keys: keys, Of: all, Bytes: bytes})
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	left := 0
	err := r.feed.Snapshot(feed.Visitor{
		Expect: func(n int) error {
			all += int64(n)
			return nil
		},
		Library: func(code []byte) error {
			if r.Match != "" {
				left++
				return nil
			}
			return r.To.Client.FunctionLoadReplace(ctx, string(code)).Err()
		},
		Key: func(key feed.Key) error {
			if !strings.HasPrefix(string(key.Name), r.Match) {
				return nil
			}
			keys, bytes, held = keys+1, bytes+key.Bytes, held+key.Bytes
			r.filter.expires(key.DB, key.Name, key.ExpireAtMs)
			if batch = append(batch, key); len(batch) < batchKeys && held < batchBytes {
				return nil
			}
			return hand()
		},
	})
	if err == nil && len(batch) > 0 {
		err = hand()
	}
	if left > 0 {
		r.note("--match moves keys: the source's %d libraries of functions stay behind", left)
	}
	return err
}

// write writes batches to the target, one ahead of the replies.
func (r *restoring) write(ctx context.Context, batches <-chan []feed.Key) (err error) {
	w, err := dialWire(ctx, r.To.Client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	unread := 0
	var refused error
	read := func() error { // all that was sent is answered, whatever is refused: see dialWire
		for ; unread > 0; unread-- {
			err := w.reply()
			if err != nil && !isAnswer(err) {
				return err
			}
			if refused == nil {
				refused = err
			}
		}
		return refused
	}
	for batch := range batches {
		sent, err := w.restore(batch)
		if err != nil {
			return err
		}
		err = read()
		unread = sent
		if err != nil {
			break
		}
	}
	return read()
}

var (
	wordRestore = []byte("RESTORE")
	wordReplace = []byte("REPLACE")
	wordAbsTTL  = []byte("ABSTTL")
	wordIdle    = []byte("IDLETIME")
	wordFreq    = []byte("FREQ")
)

// restore sends a batch, and says how many replies will come.
func (w *wire) restore(batch []feed.Key) (replies int, err error) {
	var payload, ttl, use []byte
	args := make([][]byte, 0, 8)
	for i := range batch {
		key := &batch[i]
		if payload, err = key.AppendPayload(payload[:0]); err != nil {
			return replies, err
		}
		ttl = strconv.AppendInt(ttl[:0], key.ExpireAtMs, 10)
		args = append(args[:0], wordRestore, key.Name, ttl, payload, wordReplace, wordAbsTTL)
		switch {
		case key.HasFreq:
			use = strconv.AppendUint(use[:0], uint64(key.Freq), 10)
			args = append(args, wordFreq, use)
		case key.IdleSec > 0:
			use = strconv.AppendUint(use[:0], key.IdleSec, 10)
			args = append(args, wordIdle, use)
		}
		selects, err := w.use(key.DB)
		if err != nil {
			return replies, err
		}
		if selects {
			replies++
		}
		if err := w.send(args...); err != nil {
			return replies, err
		}
		replies++
	}
	return replies, w.w.Flush()
}

func (r *restoring) lag(_ context.Context, offset int64) (int64, error) {
	applied, err := r.relay.state()
	return max(0, offset-applied), err
}

func (r *restoring) finish(ctx context.Context, offset int64) (repaired int, err error) {
	for {
		switch lag, err := r.lag(ctx, offset); {
		case err != nil:
			return 0, err
		case lag == 0:
			if repaired, err = r.repair(ctx); err != nil {
				return 0, err
			}
			return repaired, r.To.Client.Del(ctx, markKey).Err()
		}
		if err := pass(ctx, 200*time.Microsecond); err != nil {
			return 0, err
		}
	}
}

func (r *restoring) stop() error {
	if r.cancel != nil {
		r.cancel()
	}
	if r.relay == nil {
		return nil
	}
	r.relay.working.Wait()
	return r.relay.wire.close()
}

// adviceOn says what to do about what a target answers.
func adviceOn(err error) string {
	for begin, text := range map[string]string{
		"OOM":                       "; the target is full: give it more memory (maxmemory), and run the command again",
		"READONLY":                  "; the target is a replica: give its primary, or make it one with REPLICAOF NO ONE",
		"NOREPLICAS":                "; the target wants replicas for a write (min-replicas-to-write): start them, or lower it for the move",
		"NOPERM":                    "; the account needs the rights of an operator (docs/move.md)",
		"MOVED":                     "; the target is a node of a Cluster: move to one server, or use the Cluster's own tools",
		"MISCONF":                   "; the target cannot save to its disk: see to that, and run the command again",
		"ERR unknown command":       "; the target does not know what the source uses: take one as new as the source",
		"ERR DUMP payload":          "; the target is too old for the source's values: take Redis 7.0 or newer, or Valkey",
		"ERR Bad data format":       "; the target is too old for the source's values: take Redis 7.0 or newer, or Valkey",
		"ERR DB index":              "; the target has fewer databases than the source: set `databases` there",
		"ERR SELECT is not allowed": "; the target has fewer databases than the source",
	} {
		if strings.HasPrefix(err.Error(), begin) {
			return text
		}
	}
	return ""
}
