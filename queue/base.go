package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/queue/history"
)

// A history grows for as long as there is one. What makes its beginning superfluous is a base: a stretch of entries in which the
// queue says all that it has, while it goes on. Each history begins with one; HistoryBase adds another. Behind a base a queue can
// be made from what follows alone, so what is before it can be pruned: Prunable says up to which entry, and the sink removes
// them.

// HistoryBase has the queue say in its history all that it has, while it goes on: an entry for some fifty jobs. Prunable finds it.
// Call it now and then, while Record runs: what no sink takes counts towards HistoryKeep.
func (q *Queue) HistoryBase(ctx context.Context) error {
	state, err := q.store.HistoryState(ctx)
	if err == nil && !state.On {
		err = fmt.Errorf("queue %q: %w: it has no history: record it first", q.name, ErrInvalid)
	}
	if err == nil {
		_, err = q.store.BeginHistory(ctx, state.Keep)
	}
	return err
}

// Prunable returns the ID of the last entry in a sink that is not needed to make the queue as it was at any time since, and how
// many entries there are up to it: those before the newest base that was whole by then. "" and 0 if all are needed. It reads the
// whole history.
//
//	upto, _, err := queue.Prunable(ctx, sink, time.Now().AddDate(0, 0, -30))
//	if err == nil && upto != "" {
//		err = files.Prune(folder, upto) // or the Prune of an sqlsink.Sink
//	}
func Prunable(ctx context.Context, sink history.Sink, since time.Time) (upto string, entries int, err error) {
	p := &pruning{begun: map[string]base{}}
	for e, err := range sink.Read(ctx, "") {
		if err == nil {
			err = p.take(e, since)
		}
		if err != nil {
			return "", 0, fmt.Errorf("look for a base in a history: %w", err)
		}
	}
	if len(p.whole) == 0 {
		return "", 0, nil
	}
	newest := p.whole[len(p.whole)-1]
	return newest.upto, newest.entries, nil
}

// base is what is before one.
type base struct {
	upto    string // the ID of the last entry before it
	entries int    // how many there are
	end     string // the ID of the entry with which it was whole
}

// pruning looks for bases.
type pruning struct {
	last  string // the ID of the last entry
	read  int
	begun map[string]base // by the number of the entry that begins it
	whole []base          // in order
}

func (p *pruning) take(e history.Entry, since time.Time) error {
	came, version, err := store.Parse(e.Data)
	if err != nil || came == nil {
		return unreadable(e.ID, version, err)
	}
	if came.BaseBegins() {
		p.begun[strconv.FormatInt(came.Number, 10)] = base{upto: p.last, entries: p.read}
	} else if b, is := p.begun[came.BaseEnds()]; is && !timeOf(e.ID).After(since) {
		b.end = e.ID
		p.whole = append(p.whole, b)
	} else if was := came.RebuiltAs(); was != "" { // what the queue was made from then stays
		p.whole = slices.DeleteFunc(p.whole, func(b base) bool { return behind(b.end, was) })
		clear(p.begun)
	}
	p.last, p.read = e.ID, p.read+1
	return nil
}
