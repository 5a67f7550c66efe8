package autocomplete

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Entry is what a dictionary holds.
type Entry struct {
	// ID tells entries apart: 1 to MaxIDBytes bytes of UTF-8 without NUL. Two entries may have the same text.
	ID string
	// Text is what is looked up, compared as Fold says, and answered as it was given: up to MaxTextBytes bytes of UTF-8.
	Text string
	// Weight is any finite number; the heaviest come first. Entries of one weight come in the order of their folded
	// texts, then of their ids, by bytes.
	Weight float64
}

// Dictionary is a set of entries to be looked up by prefix. Make one with New. It may be used by any number of goroutines.
type Dictionary struct {
	client  redis.UniversalClient
	name    string
	keys    []string
	scripts *scripts
}

// New returns the dictionary of that name, which needs no other preparation, over a client that stays the caller's. Every
// string of 1 to MaxNameBytes bytes of UTF-8 is a name; others are refused by the calls. A client that reads from
// replicas looks up there, and sees changes as late as they do.
func New(client redis.UniversalClient, name string) *Dictionary {
	return &Dictionary{client: client, name: name, keys: treeKeys(name), scripts: usual}
}

// Set adds an entry, or gives the one with its ID another text and weight. To do it again changes nothing.
func (d *Dictionary) Set(ctx context.Context, e Entry) error {
	value, err := valueOf(e)
	if err == nil {
		err = checkName(d.name)
	}
	if err == nil {
		err = d.scripts.set.Run(ctx, d.client, d.keys, e.ID, value).Err()
	}
	return d.failed("set", err)
}

// Increment adds to the weight of an entry, which may become lighter by it, and returns the new weight. It answers
// ErrNotFound if there is no such entry, and ErrInvalidWeight if the sum is infinite. Unlike Set it counts twice if it is
// done twice, by a client that repeats what it had no answer to (MaxRetries), say.
func (d *Dictionary) Increment(ctx context.Context, id string, by float64) (float64, error) {
	if err := errors.Join(checkName(d.name), checkID(id), checkWeight(by)); err != nil {
		return 0, d.failed("increment", err)
	}
	answer, err := d.scripts.increment.Run(ctx, d.client, d.keys, id, strconv.FormatFloat(by, 'g', -1, 64)).Result()
	switch sink, ok := answer.(string); {
	case errors.Is(err, redis.Nil):
		err = fmt.Errorf("entry %q: %w", id, ErrNotFound)
	case err == nil && ok:
		return weightOf(sink), nil
	case err == nil:
		err = fmt.Errorf("entry %q: %w: the sum is infinite", id, ErrInvalidWeight)
	}
	return 0, d.failed("increment", err)
}

// Remove removes an entry, and reports whether it was there.
func (d *Dictionary) Remove(ctx context.Context, id string) (bool, error) {
	if err := errors.Join(checkName(d.name), checkID(id)); err != nil {
		return false, d.failed("remove", err)
	}
	removed, err := d.scripts.remove.Run(ctx, d.client, d.keys, id).Int()
	return removed > 0, d.failed("remove", err)
}

// Lookup returns the k heaviest entries whose text begins with a prefix, or all if they are fewer; none is no error. The
// empty prefix finds the heaviest of all. k is from 1 to MaxK. It is one round trip, and the answer is exact for one
// moment between call and return.
func (d *Dictionary) Lookup(ctx context.Context, prefix string, k int) ([]Entry, error) {
	folded, err := foldPrefix(prefix)
	if err := errors.Join(checkName(d.name), err, checkCount(k, d.scripts.most)); err != nil {
		return nil, d.failed("lookup", err)
	}
	words, err := d.scripts.lookup.RunRO(ctx, d.client, d.keys, folded, k).StringSlice()
	if err != nil {
		return nil, d.failed("lookup", err)
	}
	entries := make([]Entry, len(words)/2)
	for i := range entries {
		if entries[i], err = entryOf(words[2*i], words[2*i+1]); err != nil {
			return nil, d.failed("lookup", err)
		}
	}
	return entries, nil
}

// Get returns an entry by its id, or ErrNotFound.
func (d *Dictionary) Get(ctx context.Context, id string) (Entry, error) {
	if err := errors.Join(checkName(d.name), checkID(id)); err != nil {
		return Entry{}, d.failed("get", err)
	}
	value, err := d.client.HGet(ctx, d.keys[2], id).Result()
	if errors.Is(err, redis.Nil) {
		err = fmt.Errorf("entry %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return Entry{}, d.failed("get", err)
	}
	e, err := entryOf(id, value)
	return e, d.failed("get", err)
}

// Len returns how many entries there are.
func (d *Dictionary) Len(ctx context.Context) (int64, error) {
	if err := checkName(d.name); err != nil {
		return 0, d.failed("len", err)
	}
	n, err := d.client.HLen(ctx, d.keys[2]).Result()
	return n, d.failed("len", err)
}

// Drop removes all entries at once. The server forgets the keys in one short command and frees them in the background, so
// its clients do not wait for it, however many there are.
func (d *Dictionary) Drop(ctx context.Context) error {
	if err := checkName(d.name); err != nil {
		return d.failed("drop", err)
	}
	return d.failed("drop", d.client.Unlink(ctx, d.keys...).Err())
}

// failed says which dictionary an error is of. Nil stays nil.
func (d *Dictionary) failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("autocomplete: %s in %.40q: %w", verb, d.name, err)
}
