package command

import (
	"math/bits"
	"slices"
)

// partSorter puts the elements at from to to of a sequence in their places, and
// leaves the others anywhere on their side. It is the quicksort of Bentley and
// McIlroy ("Engineering a sort function"), which does not go into parts that
// are not wanted.
//
// The choice of pivots and the order of swaps decide which of several equal
// elements come first, and they are those of Redis: so a page of a list sorted
// BY ... ALPHA LIMIT is the same page. Any other way of sorting would be as
// right, and one more difference.
type partSorter[T any] struct {
	ranks    []T
	compare  func(a, b T) int
	from, to int
}

func sortPart[T any](ranks []T, compare func(a, b T) int, from, to int) {
	s := partSorter[T]{ranks, compare, from, to}
	s.sort(0, len(ranks), 2*bits.Len(uint(len(ranks))))
}

func (s *partSorter[T]) order(i, j int) int { return s.compare(s.ranks[i], s.ranks[j]) }

func (s *partSorter[T]) swap(i, j int) {
	s.ranks[i], s.ranks[j] = s.ranks[j], s.ranks[i]
}

// sort orders the n elements at low. Pivots that are bad again and again use up
// depth: then they are sorted in another way, lest somebody who knows how they
// are chosen makes it take time in proportion to the square of n.
func (s *partSorter[T]) sort(low, n, depth int) {
	for n >= 7 {
		if depth--; depth < 0 {
			slices.SortStableFunc(s.ranks[low:low+n], s.compare)
			return
		}
		smaller, larger := s.partition(low, n)
		if s.wants(low, smaller) {
			s.sort(low, smaller, depth)
		}
		low, n = low+n-larger, larger
		if !s.wants(low, n) {
			return
		}
	}
	for i := low + 1; i < low+n; i++ {
		for j := i; j > low && s.order(j-1, j) > 0; j-- {
			s.swap(j, j-1)
		}
	}
}

// wants reports whether any of n elements at low is to be put in its place.
func (s *partSorter[T]) wants(low, n int) bool {
	return n > 1 && s.from < low+n && s.to >= low
}

// partition moves what is smaller than a pivot to the front of the n elements
// at low, what is larger to the back, and returns how many these are.
func (s *partSorter[T]) partition(low, n int) (smaller, larger int) {
	s.swap(low, s.pivot(low, n))
	end := low + n
	// Equal ones gather at both ends first: up to equalLow, and from equalHigh on.
	equalLow, up := low+1, low+1
	equalHigh, down := end-1, end-1
	for {
		for ; up <= down; up++ {
			order := s.order(up, low)
			if order > 0 {
				break
			}
			if order == 0 {
				s.swap(equalLow, up)
				equalLow++
			}
		}
		for ; up <= down; down-- {
			order := s.order(down, low)
			if order < 0 {
				break
			}
			if order == 0 {
				s.swap(down, equalHigh)
				equalHigh--
			}
		}
		if up > down {
			break
		}
		s.swap(up, down)
		up++
		down--
	}
	smaller, larger = up-equalLow, equalHigh-down
	s.exchange(low, up, min(equalLow-low, smaller))
	s.exchange(up, end, min(larger, end-1-equalHigh))
	return smaller, larger
}

// exchange swaps the n elements at low with the n that end before end.
func (s *partSorter[T]) exchange(low, end, n int) {
	for i := range n {
		s.swap(low+i, end-n+i)
	}
}

// pivot is the middle element, the median of three, or that of three medians,
// as the number of elements goes up.
func (s *partSorter[T]) pivot(low, n int) int {
	middle, high := low+n/2, low+n-1
	if n == 7 {
		return middle
	}
	if n > 40 {
		step := n / 8
		low = s.median(low, low+step, low+2*step)
		middle = s.median(middle-step, middle, middle+step)
		high = s.median(high-2*step, high-step, high)
	}
	return s.median(low, middle, high)
}

func (s *partSorter[T]) median(i, j, k int) int {
	if s.order(i, j) < 0 {
		switch {
		case s.order(j, k) < 0:
			return j
		case s.order(i, k) < 0:
			return k
		default:
			return i
		}
	}
	switch {
	case s.order(j, k) > 0:
		return j
	case s.order(i, k) < 0:
		return i
	default:
		return k
	}
}
