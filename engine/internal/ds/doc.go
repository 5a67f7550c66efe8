// Package ds holds the containers that the engine's values are made of. It knows
// nothing of commands, replies, clocks or expiry, and imports only the standard
// library, so each container can be read, tested and measured by itself.
//
//	Dict       string keys to values, with a cursor scan and uniform choice
//	Deque      a list of strings, cheap at both ends
//	SortedSet  members ordered by score, with ranks
//	Set        distinct strings
//	Hash       fields to string values
//	Stream     a log of entries under growing IDs, with consumer groups
//
// Dict is the base: SortedSet, Set and Hash keep their members in one when they are large.
// While they are small they are one packed row of bytes each (packed.go), and a list is
// rows at any size (dequechunk.go): most keys of most databases hold ten small things, and
// what a structure of pointers takes for them is five times the things themselves. The zero
// value of Dict is an empty container; for the others there are the New functions.
//
// A container belongs to whoever made it and is not safe for concurrent use. Member
// strings are shared, never copied, once they are inside: Clone copies the
// structure, not the bytes. A string that a packed row hands out lasts, as any string does,
// and holds up to a kilobyte of row; one that a list hands out lasts until the list changes,
// unless it was popped. Randomness comes in as a *rand.Rand, so that a run of
// the engine can be repeated from its seed; only the order of Scan differs between
// runs, because every Dict hashes with a secret of its own.
//
// To add a container: one file with the type, its design comment and its methods;
// an Encoding method if OBJECT ENCODING can meet it; a Clone; and a test that runs
// it against a plain Go map or slice (see dict_test.go for the pattern).
package ds
