// Package autocomplete suggests entries by the beginning of their text, the
// heaviest first, on any Redis from 7.0, Valkey, a Redis Cluster, or the
// engine.
//
// A Dictionary holds entries: an id, a text, and a weight. Lookup answers the
// k heaviest entries whose text begins with a prefix, in one round trip and
// always exactly: not the heaviest that happened to be cached. Recent is the
// list of a user's latest contacts. Both are plain values over a client that
// stays the caller's; all state is on the server, and any number of goroutines
// and processes may use one dictionary, some to change it while others read.
//
// # What is stored
//
// A dictionary is a tree of prefixes. An entry's term, its folded text with its
// id behind, is a way down that tree, a byte a level. A leaf has all the
// entries below its prefix, at most 256. When one more comes, the leaf becomes
// an inner node with leaves below it, and keeps only its heaviest: all down to
// a bound, and always at least the 50 that a lookup may ask for. A node's rows
// lie in order of weight, so a lookup reads the first k rows of one node; where
// the prefix ends within a leaf it looks through the leaf.
//
// An inner node stays exact when weights change, because what it shows is
// defined by its bound and by nothing else: a change of an entry concerns just
// the nodes on its way whose bound it is within. A node that has become short
// (fewer than 50 rows) merges the first rows of its children, which are exact
// themselves; a node that is too long (more than 80) moves its bound up. Both
// leave 64 rows, so a node does neither again for a while. If all its children
// have fewer than 50 together, it is a leaf again, so nothing is left of a
// dictionary that has been emptied.
//
// Three keys, whatever the size, with the dictionary's name as their hash tag:
//
//	autocomplete:{name}:index    ZSET  the rows of all nodes, in byte order
//	autocomplete:{name}:nodes    HASH  the inner nodes and their bounds
//	autocomplete:{name}:entries  HASH  id, weight, folded text, text
//
// Every operation is one script that is handed these keys. So it happens at
// once or not at all, a reader sees no change half done, and a Cluster runs it.
// A dictionary is as large as one server of a Cluster can hold; several
// dictionaries spread.
//
// # What it costs
//
//	Lookup              1 round trip  O(prefix + log n + k), within a leaf up to 256 rows
//	Set, Increment      1             O(term + log n); now and then 256 rows are moved
//	Remove              1             O(term + log n); now and then 64 rows are merged
//	Get, Len            1             O(1)
//	Load                1 for 512     as Set, in scripts of 64 entries
//	Drop                1             O(1) for the server's clients: it frees in the background
//
// A split or a merge costs about a millisecond with usual texts. Each byte that
// more than 256 entries begin with in common is one more level with up to 80
// rows, so a long common beginning (of paths, say) costs up to a third of a row
// for each entry and byte, and makes its first split dearer; cut it off, or use
// a dictionary for each. docs/autocomplete.md has what was measured: about 250
// bytes for each entry with texts of 17 bytes.
//
// # Reading the source
//
//	dictionary.go   Dictionary: the calls
//	load.go         Load
//	tree.go         keys, scripts, how weights and entries are written down
//	functions.lua   the tree; set.lua, remove.lua, increment.lua, lookup.lua use it
//	fold.go         what texts are compared by
//	recent.go       Recent
//	check.go        errors, and what is refused
//
// To add an operation: a script that opens with its contract and changes
// entries by put and withdraw alone, a method, a line in the model test. Who
// changes what a row is must change the names of the keys.
package autocomplete
