package ds

import (
	"slices"
	"sort"
)

// A rankTree is a B+tree whose inner nodes count what is below each child, so that
// ranks are found on the way down.
//
//	leaf   items are the elements, in order
//	inner  items[i] bounds kids[i]: above all elements of the kids before it, and not
//	       above any of its own. counts[i] is the number of elements below kids[i].
//	       items[0] is not looked at: whatever is below items[1] goes to kids[0].
//
// A bound may be an element that has been removed since; it is still a bound.
//
// Nodes hold up to nodeMax items. A full node splits in halves, but near one of its
// ends where the new item goes to that end: times and sequence numbers, which are
// what most scores are, then fill nodes to seven eighths instead of one half. A node
// that falls under nodeMin is merged or evened out with a neighbour.

const (
	nodeMax = 74 // with 24 bytes an item, this fills one of the allocator's sizes (1792)
	nodeMin = nodeMax / 4
	endPart = nodeMax / 8 // the smaller part of a split near an end
)

// ranked is an element of a sorted set.
type ranked struct {
	score  float64
	member string
}

func (a *ranked) less(b *ranked) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return a.member < b.member
}

type rankTree struct {
	root *node // nil if empty
}

type node struct {
	items  []ranked
	kids   []*node // nil in a leaf
	counts []int   // nil in a leaf
}

// size returns the number of elements below n.
func (n *node) size() int {
	if n.kids == nil {
		return len(n.items)
	}
	total := 0
	for _, count := range n.counts {
		total += count
	}
	return total
}

// lower returns the index of the first item that is not less than r.
func (n *node) lower(r *ranked) int {
	low, high := 0, len(n.items)
	for low < high {
		middle := int(uint(low+high) / 2)
		if n.items[middle].less(r) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// kidFor returns which kid r is in, or belongs in.
func (n *node) kidFor(r *ranked) int {
	low, high := 1, len(n.items)
	for low < high {
		middle := int(uint(low+high) / 2)
		if r.less(&n.items[middle]) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low - 1
}

// kidAt returns which kid the element with this rank is in, and its rank there.
func (n *node) kidAt(rank int) (kid, rankThere int) {
	for rank >= n.counts[kid] {
		rank -= n.counts[kid]
		kid++
	}
	return kid, rank
}

// insert adds r, which must not be there.
func (t *rankTree) insert(r ranked) {
	if t.root == nil {
		t.root = &node{}
	}
	right := t.root.insert(&r)
	if right == nil {
		return
	}
	left := t.root
	root := newInner()
	root.items = append(root.items, left.items[0], right.items[0])
	root.kids = append(root.kids, left, right)
	root.counts = append(root.counts, left.size(), right.size())
	t.root = root
}

func newInner() *node {
	return &node{
		items:  make([]ranked, 0, nodeMax),
		kids:   make([]*node, 0, nodeMax),
		counts: make([]int, 0, nodeMax),
	}
}

// insert adds r below n. If n was full it keeps the lower part, and the node with the
// upper part is returned, whose items[0] bounds it.
func (n *node) insert(r *ranked) (right *node) {
	if n.kids == nil {
		i := n.lower(r)
		n, i, right = n.makeRoom(i)
		n.items = slices.Insert(n.items, i, *r)
		n.fit()
		return right
	}
	kid := n.kidFor(r)
	added := n.kids[kid].insert(r)
	if added == nil {
		n.counts[kid]++
		return nil
	}
	n.counts[kid] = n.kids[kid].size()
	kid++
	n, kid, right = n.makeRoom(kid)
	n.items = slices.Insert(n.items, kid, added.items[0])
	n.kids = slices.Insert(n.kids, kid, added)
	n.counts = slices.Insert(n.counts, kid, added.size())
	return right
}

// makeRoom splits n if it is full. It returns the part in which place i now is, that
// place, and the new part, if any. Both parts are never empty, and place i is never
// the first of the new part, whose first item is already known as its bound.
func (n *node) makeRoom(i int) (part *node, place int, right *node) {
	if len(n.items) < nodeMax {
		return n, i, nil
	}
	cut := nodeMax / 2
	switch i {
	case 0:
		cut = endPart
	case nodeMax:
		cut = nodeMax - endPart
	}
	right = n.split(cut)
	if i > cut {
		return right, i - cut, right
	}
	return n, i, right
}

// split moves the items from cut on to a new node.
func (n *node) split(cut int) (right *node) {
	if n.kids == nil {
		right = &node{items: make([]ranked, 0, nodeMax)}
	} else {
		right = newInner()
		right.kids = append(right.kids, n.kids[cut:]...)
		right.counts = append(right.counts, n.counts[cut:]...)
		n.kids = slices.Delete(n.kids, cut, len(n.kids))
		n.counts = slices.Delete(n.counts, cut, len(n.counts))
	}
	right.items = append(right.items, n.items[cut:]...)
	n.items = slices.Delete(n.items, cut, len(n.items))
	n.fit()
	return right
}

// remove takes out r, which must be there, and returns it as it was held.
func (t *rankTree) remove(r ranked) ranked {
	removed := t.root.remove(&r)
	t.shrink()
	return removed
}

// removeAt takes out the element with this rank, which must exist.
func (t *rankTree) removeAt(rank int) ranked {
	removed := t.root.removeAt(rank)
	t.shrink()
	return removed
}

// shrink drops a root that has become superfluous.
func (t *rankTree) shrink() {
	switch {
	case len(t.root.items) == 0:
		t.root = nil
	case len(t.root.kids) == 1:
		t.root = t.root.kids[0]
	}
}

func (n *node) remove(r *ranked) ranked {
	if n.kids == nil {
		return n.takeItem(n.lower(r))
	}
	kid := n.kidFor(r)
	removed := n.kids[kid].remove(r)
	n.removedFrom(kid)
	return removed
}

func (n *node) removeAt(rank int) ranked {
	if n.kids == nil {
		return n.takeItem(rank)
	}
	kid, rank := n.kidAt(rank)
	removed := n.kids[kid].removeAt(rank)
	n.removedFrom(kid)
	return removed
}

func (n *node) takeItem(i int) ranked {
	removed := n.items[i]
	n.items = slices.Delete(n.items, i, i+1)
	return removed
}

// removedFrom restores the order of things after one element left a kid.
func (n *node) removedFrom(kid int) {
	n.counts[kid]--
	if len(n.kids[kid].items) >= nodeMin || len(n.kids) == 1 {
		return
	}
	left := max(kid-1, 0)
	n.rebalance(left)
}

// rebalance merges the kids left and left+1, or evens them out if they do not fit in
// one node with room to spare.
func (n *node) rebalance(left int) {
	a, b := n.kids[left], n.kids[left+1]
	if b.kids != nil {
		b.items[0] = n.items[left+1] // nobody kept it up to date; now it will be looked at
	}
	a.items = append(a.items, b.items...)
	a.kids = append(a.kids, b.kids...)
	a.counts = append(a.counts, b.counts...)
	if len(a.items) <= nodeMax-nodeMin {
		n.items = slices.Delete(n.items, left+1, left+2)
		n.kids = slices.Delete(n.kids, left+1, left+2)
		n.counts = slices.Delete(n.counts, left+1, left+2)
		n.counts[left] = a.size()
		a.fit()
		return
	}
	b = a.split(len(a.items) / 2)
	n.kids[left+1] = b
	n.items[left+1] = b.items[0]
	n.counts[left], n.counts[left+1] = a.size(), b.size()
}

// fit takes back the room that a node was given beyond nodeMax.
func (n *node) fit() {
	if cap(n.items) > nodeMax {
		n.items = append(make([]ranked, 0, nodeMax), n.items...)
	}
	if cap(n.kids) > nodeMax {
		n.kids = append(make([]*node, 0, nodeMax), n.kids...)
		n.counts = append(make([]int, 0, nodeMax), n.counts...)
	}
}

// at returns the element with this rank, which must exist.
func (t *rankTree) at(rank int) ranked {
	n := t.root
	for n.kids != nil {
		var kid int
		kid, rank = n.kidAt(rank)
		n = n.kids[kid]
	}
	return n.items[rank]
}

// countBelow returns how many elements are less than r. The tree must not be empty.
func (t *rankTree) countBelow(r ranked) int {
	n, count := t.root, 0
	for n.kids != nil {
		kid := n.kidFor(&r)
		for _, c := range n.counts[:kid] {
			count += c
		}
		n = n.kids[kid]
	}
	return count + n.lower(&r)
}

func (t *rankTree) countScoreBelow(score float64, orEqual bool) int {
	if orEqual {
		return t.countWhile(func(x *ranked) bool { return x.score <= score })
	}
	return t.countWhile(func(x *ranked) bool { return x.score < score })
}

func (t *rankTree) countMemberBelow(member string, orEqual bool) int {
	if orEqual {
		return t.countWhile(func(x *ranked) bool { return x.member <= member })
	}
	return t.countWhile(func(x *ranked) bool { return x.member < member })
}

// countWhile returns the number of elements for which below is true; it must be true
// for the first so many in order, and for no others.
func (t *rankTree) countWhile(below func(*ranked) bool) (count int) {
	n := t.root
	if n == nil {
		return 0
	}
	for n.kids != nil {
		kid := sort.Search(len(n.kids)-1, func(i int) bool { return !below(&n.items[i+1]) })
		for _, c := range n.counts[:kid] {
			count += c
		}
		n = n.kids[kid]
	}
	return count + sort.Search(len(n.items), func(i int) bool { return !below(&n.items[i]) })
}

func (t *rankTree) ascend(fromRank int, yield func(string, float64) bool) {
	t.root.ascend(fromRank, yield)
}

func (n *node) ascend(skip int, yield func(string, float64) bool) bool {
	if n.kids == nil {
		for i := skip; i < len(n.items); i++ {
			if !yield(n.items[i].member, n.items[i].score) {
				return false
			}
		}
		return true
	}
	first, skip := n.kidAt(skip)
	for _, kid := range n.kids[first:] {
		if !kid.ascend(skip, yield) {
			return false
		}
		skip = 0
	}
	return true
}

func (t *rankTree) descend(fromRank int, yield func(string, float64) bool) {
	t.root.descend(fromRank, yield)
}

func (n *node) descend(from int, yield func(string, float64) bool) bool {
	if n.kids == nil {
		for i := from; i >= 0; i-- {
			if !yield(n.items[i].member, n.items[i].score) {
				return false
			}
		}
		return true
	}
	last, from := n.kidAt(from)
	for i := last; i >= 0; i-- {
		if i < last {
			from = n.counts[i] - 1
		}
		if !n.kids[i].descend(from, yield) {
			return false
		}
	}
	return true
}

func (t *rankTree) clone() rankTree {
	if t.root == nil {
		return rankTree{}
	}
	return rankTree{root: t.root.clone()}
}

func (n *node) clone() *node {
	if n.kids == nil {
		room := nodeMax
		if len(n.items) < nodeMin {
			room = len(n.items) // most sorted sets are small and are not copied to be changed
		}
		return &node{items: append(make([]ranked, 0, room), n.items...)}
	}
	c := newInner()
	c.items = append(c.items, n.items...)
	c.counts = append(c.counts, n.counts...)
	for _, kid := range n.kids {
		c.kids = append(c.kids, kid.clone())
	}
	return c
}
