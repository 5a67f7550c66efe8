// Package sequence is the order of a history's entries, and what may be kept after what: the part of a Sink's promises that
// does not depend on where it keeps them.
package sequence

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/queue/history"
)

// ID is an entry's, as numbers. The zero ID is before all entries.
type ID struct{ Ms, Seq uint64 }

// last is the largest number of either part: what SQL databases and servers' clocks have room for.
const last = math.MaxInt64

// Parse reads an ID in the one form that servers write: both numbers in full, without leading zeros.
func Parse(text string) (ID, error) {
	ms, seq, _ := strings.Cut(text, "-")
	id := ID{number(ms), number(seq)}
	if id == (ID{}) || id.String() != text {
		return ID{}, fmt.Errorf("%w: an entry has the ID %.50q, which is not milliseconds-number (nothing of this call was kept)", history.ErrDamaged, text)
	}
	return id, nil
}

// number is 0 for what is none.
func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > last {
		return 0
	}
	return n
}

// ParseAfter is Parse for a place to read on from, which may be the beginning.
func ParseAfter(text string) (ID, error) {
	if text == "" {
		return ID{}, nil
	}
	return Parse(text)
}

// String is the ID as the server writes it, "" if it is zero.
func (id ID) String() string {
	if id == (ID{}) {
		return ""
	}
	return strconv.FormatUint(id.Ms, 10) + "-" + strconv.FormatUint(id.Seq, 10)
}

// After reports whether id comes after another.
func (id ID) After(other ID) bool {
	return id.Ms > other.Ms || id.Ms == other.Ms && id.Seq > other.Seq
}

// before is the ID after which id is the next possible one.
func (id ID) before() ID {
	if id.Seq > 0 {
		return ID{id.Ms, id.Seq - 1}
	}
	return ID{id.Ms - 1, last}
}

// Kept is a sink as it is asked what it has.
type Kept struct {
	// Seen is the last entry that the writer knows to be kept; Position is the one that is. They differ when somebody else
	// has written, or has taken entries away.
	Seen, Position ID
	Read           func(ctx context.Context, after string) iter.Seq2[history.Entry, error]
}

// New returns the entries of a call that are not kept yet. It fails if they are not in order, or do not follow what is kept:
// what of them is kept must be their beginning, entry for entry.
func (k Kept) New(ctx context.Context, entries []history.Entry) ([]history.Entry, error) {
	ids, err := inOrder(entries)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	first := ids[0]
	switch {
	case k.Seen.After(k.Position):
		return nil, fmt.Errorf("%w: it was kept up to %s, and now ends at %q: somebody has put an older one in its place "+
			"(ask for the position and go on from there)", history.ErrGap, k.Seen, k.Position)
	case first.After(k.Position) && k.Position.After(k.Seen):
		return nil, fmt.Errorf("%w: another writer has gone on from %q to %s, and the next entry here is %s (have one follower; "+
			"ask for the position and go on from there)", history.ErrGap, k.Seen, k.Position, first)
	case first.After(k.Position):
		return entries, nil
	}
	known := 0
	for kept, err := range k.Read(ctx, first.before().String()) {
		if err != nil {
			return nil, fmt.Errorf("compare with what is kept: %w", err)
		}
		if known == len(entries) {
			break
		}
		if entry := entries[known]; entry.ID != kept.ID || string(entry.Data) != string(kept.Data) {
			return nil, fmt.Errorf("%w: where entry %s is kept, the call has %s with other data or in another place (these are two histories; "+
				"keep each in a place of its own)", history.ErrGap, kept.ID, entry.ID)
		}
		known++
	}
	if rest := ids[known:]; len(rest) > 0 && !rest[0].After(k.Position) {
		return nil, fmt.Errorf("%w: entry %s is not kept, and the one at %s is (these are two histories; keep each in a place of its own)",
			history.ErrGap, rest[0], k.Position)
	}
	return entries[known:], nil
}

// inOrder are the entries' IDs, each after the one before.
func inOrder(entries []history.Entry) ([]ID, error) {
	ids := make([]ID, len(entries))
	for i, entry := range entries {
		id, err := Parse(entry.ID)
		if err != nil {
			return nil, err
		}
		if ids[i] = id; i > 0 && !id.After(ids[i-1]) {
			return nil, fmt.Errorf("%w: in one call entry %s comes after %s (nothing of it was kept)", history.ErrGap, id, ids[i-1])
		}
	}
	return ids, nil
}
