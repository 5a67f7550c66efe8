package autocomplete

import (
	"context"
	"fmt"
	"iter"

	"github.com/redis/go-redis/v9"
)

// How entries are loaded: a script with a few, because other clients wait for as long as it takes, and several scripts in
// one round trip.
const (
	scriptEntries = 64
	roundScripts  = 8
)

// Load sets many entries, as Set does, 512 to a round trip. Others read and write in between. After each round trip
// progress, unless it is nil, is told how many have been loaded so far. Load stops at the first entry that is refused and
// at the first error of the server, and returns how many were loaded for certain; to load all again is safe.
func (d *Dictionary) Load(ctx context.Context, entries iter.Seq[Entry], progress func(loaded int)) (int, error) {
	if err := checkName(d.name); err != nil {
		return 0, d.failed("load", err)
	}
	if entries == nil {
		return 0, nil
	}
	l := loading{dictionary: d, progress: progress}
	for e := range entries {
		value, err := valueOf(e)
		if err == nil {
			err = l.add(ctx, e.ID, value)
		}
		if err != nil {
			return l.loaded, d.failed("load", fmt.Errorf("after %d entries: %w", l.loaded, err))
		}
	}
	return l.loaded, d.failed("load", l.flush(ctx))
}

// loading is a load under way.
type loading struct {
	dictionary *Dictionary
	progress   func(loaded int)
	loaded     int
	words      []any // id, value, and so on, of a round trip
}

func (l *loading) add(ctx context.Context, id, value string) error {
	if l.words = append(l.words, id, value); len(l.words) < 2*scriptEntries*roundScripts {
		return nil
	}
	return l.flush(ctx)
}

// flush sends what has come together.
func (l *loading) flush(ctx context.Context) error {
	if len(l.words) == 0 {
		return nil
	}
	d, script := l.dictionary, l.dictionary.scripts.set
	batches := batched(l.words, 2*scriptEntries)
	answers, _ := d.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, batch := range batches {
			script.EvalSha(ctx, pipe, d.keys, batch...)
		}
		return nil
	})
	for i, answer := range answers { // each has its own error
		err := answer.Err()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			err = script.Run(ctx, d.client, d.keys, batches[i]...).Err()
		}
		if err != nil {
			return err
		}
		l.loaded += len(batches[i]) / 2
	}
	l.words = l.words[:0]
	if l.progress != nil {
		l.progress(l.loaded)
	}
	return nil
}

// batched cuts words into pieces of so many.
func batched(words []any, most int) (batches [][]any) {
	for len(words) > most {
		batches, words = append(batches, words[:most:most]), words[most:]
	}
	return append(batches, words)
}
