// Package rdb turns the data of an engine into the bytes of Redis's RDB format,
// and back. The format is the common tongue of Redis servers: snapshots on disk,
// the first part of an append-only file, what a replica is sent when it begins,
// and what DUMP and RESTORE carry from one server to another.
//
// There are three ways in and three ways out:
//
//	AppendPayload, DecodePayload       one value, as DUMP and RESTORE have it
//	AppendFunctions, DecodeFunctions   libraries, as FUNCTION DUMP and RESTORE have them
//	Writer, Reader                     a whole file, record by record; parts.go is for
//	                                   a file that one writes and another takes to the disk
//
// A value is what keyspace.Object holds: *keyspace.String, *ds.Deque, *ds.Set,
// *ds.SortedSet, *ds.Hash or *ds.Stream. Whether a collection is compact is decided by
// the limits of whoever reads it, in the way in which Redis does: a collection that
// arrives packed stays so whatever the size of its elements, if there are not too many.
//
// What is written is version 10, the format of Redis 7.0, in the encodings which
// Redis 7.0 would choose. What is read is everything that Redis wrote from
// version 1 to version 11 (Redis 7.2): each type of value has collected several
// encodings over the years, and the old ones never went away.
//
// Bytes come from strangers. A Reader believes nothing: each length is checked
// against what is there, memory grows as bytes arrive and never because a length
// was announced, packed lists are walked entry by entry and must add up, sets and
// hashes may not hold anything twice. What is wrong is an *Error with the place.
//
// Inside, a source (source.go) counts, sums and hands out bytes, a decoder reads
// values from it; a sink (sink.go) takes bytes, an encoder writes values to it.
// Both remember the first error and do nothing afterwards, so that the code which
// follows the format is not cluttered with checks; loops ask failed().
//
// The package is pure: it knows readers and writers, but no files, no clock and no
// commands. It keeps no reference to what a caller hands in, and the caller owns
// what it hands out.
//
// To add an encoding of a type: its number in format.go, its case in decode.go,
// and a test with bytes that a real server wrote. To add a type: its encodings,
// and its case in encode.go.
package rdb
