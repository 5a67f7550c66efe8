package command

import (
	"iter"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// sortElement is an element on its way into the reply. Its strings are shared
// with the collection.
type sortElement struct {
	text   string
	score  float64 // unless ALPHA
	weight string  // what ALPHA compares with BY
	known  bool    // there is such a weight
}

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

// allElements takes out everything, in the order of the collection.
func allElements(source any) []sortElement {
	switch source := source.(type) {
	case *ds.Deque:
		elements := make([]sortElement, 0, source.Len())
		for _, text := range source.Range(0, source.Len()-1) {
			elements = append(elements, sortElement{text: text})
		}
		return elements
	case *ds.Set:
		elements := make([]sortElement, 0, source.Len())
		for text := range source.All() {
			elements = append(elements, sortElement{text: text})
		}
		return elements
	case *ds.SortedSet:
		return firstMembers(source.Ascend(0), source.Len())
	default:
		return nil
	}
}

// takeUnsorted returns the elements of the window in the collection's own
// order, or from its end if DESC. It looks at no others, except in a set, which
// has no positions, and no order that DESC could turn around.
func (c *Ctx) takeUnsorted(source any, r *sortRequest) []sortElement {
	switch source := source.(type) {
	case *ds.Deque:
		from, to := r.window(source.Len())
		walk, first, last := source.Range, from, to-1
		if r.descending {
			walk, first, last = source.Backward, source.Len()-to, source.Len()-1-from
		}
		elements := make([]sortElement, 0, to-from)
		for _, text := range walk(first, last) {
			elements = append(elements, sortElement{text: text})
		}
		return elements
	case *ds.SortedSet:
		from, to := r.window(source.Len())
		if from == to {
			return nil
		}
		if r.descending {
			return firstMembers(source.Descend(source.Len()-1-from), to-from)
		}
		return firstMembers(source.Ascend(from), to-from)
	default:
		elements := allElements(source)
		from, to := r.window(len(elements))
		return elements[from:to]
	}
}

// firstMembers takes the first n members of a walk.
func firstMembers(walk iter.Seq2[string, float64], n int) []sortElement {
	elements := make([]sortElement, 0, n)
	for member := range walk {
		if len(elements) == n {
			break
		}
		elements = append(elements, sortElement{text: member})
	}
	return elements
}
