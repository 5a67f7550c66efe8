package move

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine/feed"
)

// A relay writes the stream of the source to the target, in its order, on one connection: one goroutine sends, another
// one reads the replies. It ends with the feed, with the wire, or with what cannot be written.
type relay struct {
	feed    *feed.Feed
	wire    *wire
	filter  *filter
	skew    time.Duration
	sent    chan sent
	working sync.WaitGroup

	mu       sync.Mutex
	applied  int64 // of the stream
	lastData time.Time
	suspects map[key]bool // may have ended at the target alone
	err      error
}

// sent is something whose reply is to come, or a place in the stream that has none.
type sent struct {
	offset  int64 // 0 within a transaction: half of one was not heard
	silent  bool  // no reply
	data    bool  // changes something
	name    string
	keys    []key
	firstMs int64
}

const (
	// window is how many requests may be under way.
	window = 16 << 10
	// slack is what is added to the doubt about when a key ends at the target.
	slack = 500 * time.Millisecond
)

func newRelay(from *feed.Feed, w *wire, f *filter, skew time.Duration) *relay {
	r := &relay{feed: from, wire: w, filter: f, skew: skew, sent: make(chan sent, window), applied: from.Offset(), suspects: map[key]bool{}}
	r.working.Go(func() {
		defer close(r.sent)
		r.fail(r.send())
		r.fail(w.w.Flush()) // what is to be answered
	})
	r.working.Go(func() {
		err := r.receive()
		r.fail(err)
		_ = from.Close()        // the sender has nothing to do any more
		for s := range r.sent { // all that was sent is answered: see dialWire
			if !s.silent && (err == nil || isAnswer(err)) {
				err = r.wire.reply()
			}
		}
	})
	return r
}

// fail notes the first error.
func (r *relay) fail(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// state is how far the target has heard the stream, and why it will hear no more.
func (r *relay) state() (applied int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied, r.err
}

// quiet is for how long nothing has been written to the keys that are meant.
func (r *relay) quiet() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.lastData)
}

func (r *relay) send() error {
	var opened [][]byte // a transaction of which nothing has been sent yet
	inside := false     // of a transaction that has been sent
	for {
		request, err := r.feed.Next(r.wire.w.Flush)
		if err != nil {
			return fmt.Errorf("follow the source: %w", err)
		}
		offset := r.feed.Offset()
		var v verdict
		if request != nil {
			if v, err = r.filter.judge(r.feed.DB(), request); err != nil {
				return err
			}
		}
		switch {
		case v.control && is(v.send[0], "MULTI"):
			opened = [][]byte{[]byte("MULTI")}
			continue // its offset counts with what follows
		case v.control && !inside: // the end of a transaction that had nothing for us
			opened, v.send = nil, nil
		}
		if v.send == nil {
			if !inside && opened == nil {
				err = r.note(sent{offset: offset, silent: true})
			}
		} else {
			if opened != nil {
				inside, opened = true, nil
				err = r.pass(sent{name: "MULTI"}, [][]byte{[]byte("MULTI")})
			}
			if err == nil {
				err = r.forward(v, offset, &inside)
			}
		}
		if err != nil {
			return err
		}
	}
}

// forward sends a request that was judged.
func (r *relay) forward(v verdict, offset int64, inside *bool) error {
	name := string(v.send[0])
	if *inside && !v.control {
		offset = 0
	}
	if v.control { // EXEC
		*inside = false
	}
	s := sent{offset: offset, data: !is(v.send[0], "PUBLISH"), name: name}
	if soon := time.Now().Add(time.Hour).UnixMilli(); v.firstMs < soon {
		s.keys, s.firstMs = v.keys, v.firstMs
	}
	return r.pass(s, v.send)
}

// pass sends a request where it belongs. A transaction keeps to a database, or has SELECT inside, as the stream had.
func (r *relay) pass(s sent, request [][]byte) error {
	if db := r.feed.DB(); db != r.wire.db {
		if _, err := r.wire.use(db); err != nil {
			return err
		}
		if err := r.note(sent{name: "SELECT"}); err != nil {
			return err
		}
	}
	if err := r.wire.send(request...); err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	return r.note(s)
}

// note has the receiver await a reply. Before it waits for room it lets go of what it has: or nobody would make room.
func (r *relay) note(s sent) error {
	select {
	case r.sent <- s:
		return nil
	default:
	}
	if err := r.wire.w.Flush(); err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	r.sent <- s // the receiver reads to the end
	return nil
}

func (r *relay) receive() error {
	var inside []key // of a transaction, whose replies come with EXEC
	firstMs := int64(math.MaxInt64)
	for s := range r.sent {
		var err error
		if !s.silent {
			if err = r.wire.reply(); err != nil && !isAnswer(err) {
				return fmt.Errorf("write to the target: %w", err)
			}
		}
		if len(s.keys) > 0 {
			inside, firstMs = append(inside, s.keys...), min(firstMs, s.firstMs)
		}
		doubtful := len(inside) > 0 && time.Now().Add(r.skew+slack).UnixMilli() >= firstMs
		if err != nil && !doubtful {
			return fmt.Errorf("move: %w: the target refuses %s of the stream: %w%s", ErrDiverged, strings.ToUpper(s.name), err, adviceOn(err))
		}
		r.mu.Lock()
		if doubtful {
			for _, k := range inside {
				r.suspects[k] = true
			}
		}
		if s.data {
			r.lastData = time.Now()
		}
		if s.offset > 0 {
			r.applied = s.offset
			r.feed.Applied(s.offset)
			inside, firstMs = inside[:0], math.MaxInt64
		}
		r.mu.Unlock()
	}
	return nil
}

func isAnswer(err error) bool {
	var a answer
	return errors.As(err, &a)
}

// repair copies the keys anew that may have ended at the target alone. Nothing changes meanwhile.
func (r *restoring) repair(ctx context.Context) (repaired int, err error) {
	r.relay.mu.Lock()
	byDB := map[int][]string{}
	for k := range r.relay.suspects {
		byDB[k.db] = append(byDB[k.db], k.name)
		repaired++
	}
	r.relay.mu.Unlock()
	for db, names := range byDB {
		if err := r.repairIn(ctx, db, names); err != nil {
			return repaired, fmt.Errorf("copy %d keys again whose time may be over: %w%s", len(names), err, adviceOn(err))
		}
	}
	return repaired, nil
}

func (r *restoring) repairIn(ctx context.Context, db int, names []string) (err error) {
	from, to := within(r.From.Client, db), within(r.To.Client, db)
	defer func() { err = errors.Join(err, from.Close(), to.Close()) }()
	values, err := dump(ctx, from, names)
	if err != nil {
		return err
	}
	_, err = to.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, name := range names {
			if values[i].payload == "" {
				pipe.Del(ctx, name)
				continue
			}
			pipe.Do(ctx, "RESTORE", name, max(0, values[i].expireAtMs), values[i].payload, "REPLACE", "ABSTTL")
		}
		return nil
	})
	return err
}
