package autocomplete

import "github.com/redis/go-redis/v9"

// NewSmall returns a dictionary whose nodes are so small that a few entries make a tree: lookups may ask for 3, a leaf has
// 6 entries. Its tree is not one of New's.
func NewSmall(client redis.UniversalClient, name string) *Dictionary {
	d := New(client, name)
	d.scripts = small
	return d
}

// SmallShape is low, high and leaf of NewSmall.
var SmallShape = [3]int{3, 6, 6}

var small = newScripts(shape{low: 3, fill: 4, high: 6, leaf: 6})

// Keys are index, nodes, entries.
func (d *Dictionary) Keys() []string { return d.keys }

// Sink is how a weight is written down.
var Sink, Weight = sinkOf, weightOf
