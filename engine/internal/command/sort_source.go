package command

import (
	"iter"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// readSortSource is the list, set or sorted set under key; of a missing key it
// is an empty list. A sorted set leaves its small encoding for good, as in
// Redis, which wants to walk its table.
func readSortSource(c *Ctx, key []byte) (any, error) {
	c.Space.Reading = true // with STORE, too
	o := c.DB.Lookup(key, c.NowMs())
	if o == nil {
		return ds.NewDeque(), nil
	}
	switch value := o.Value().(type) {
	case *ds.SortedSet:
		value.Enlarge()
	case *ds.Deque, *ds.Set:
	default:
		return nil, ErrWrongType
	}
	return o.Value(), nil
}

// walkSortSource is everything, in the order of the collection, and how much that is.
func walkSortSource(source any) (elements iter.Seq[string], n int) {
	switch source := source.(type) {
	case *ds.Deque:
		return second(source.Range(0, source.Len()-1)), source.Len()
	case *ds.Set:
		return source.All(), source.Len()
	case *ds.SortedSet:
		return first(source.Ascend(0)), source.Len()
	default:
		return func(func(string) bool) {}, 0
	}
}

// first and second are one side of a walk over pairs.
func first[T any](walk iter.Seq2[string, T]) iter.Seq[string] {
	return func(yield func(string) bool) {
		walk(func(text string, _ T) bool { return yield(text) })
	}
}

func second[T any](walk iter.Seq2[T, string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		walk(func(_ T, text string) bool { return yield(text) })
	}
}

// takeUnsorted returns the elements of the window in the collection's own
// order, or from its end if DESC. It looks at no others, except in a set, which
// has no positions, and no order that DESC could turn around.
func takeUnsorted(source any, r *sortRequest) []string {
	walk, n := walkSortSource(source)
	from, to := r.window(n)
	skip := 0
	switch source := source.(type) {
	case *ds.Deque:
		walk = second(source.Range(from, to-1))
		if r.descending {
			walk = second(source.Backward(n-to, n-1-from))
		}
	case *ds.SortedSet:
		if from == to {
			return nil
		}
		walk = first(source.Ascend(from))
		if r.descending {
			walk = first(source.Descend(n - 1 - from))
		}
	default:
		skip = from
	}
	return takeTexts(walk, skip, to-from)
}

// takeTexts takes n texts of a walk, after some that it skips.
func takeTexts(walk iter.Seq[string], skip, n int) []string {
	texts := make([]string, 0, n)
	for text := range walk {
		if skip > 0 {
			skip--
			continue
		}
		if len(texts) == n {
			break
		}
		texts = append(texts, text)
	}
	return texts
}
