// Package aof keeps the append-only file: every change of the data as a request, in
// the layout on disk that Redis 7 has, so that either can go on where the other ended.
//
//	appendonlydir/
//	  appendonly.aof.2.base.rdb    the data when the last rewrite began (b)
//	  appendonly.aof.2.incr.aof    what happened since (i); the last one is written to
//	  appendonly.aof.manifest      which of these files count, in which order
//	  appendonly.aof.unsynced      there while a sync that has failed is not mended
//
// There are four parts:
//
//	Manifest        the list of files, parsed and written (manifest.go)
//	Reader          one file, request by request, with offsets (reader.go)
//	Open, Set       the files at the start: what is to be loaded (set.go)
//	Log, Rewrite    the files at work: appended to, committed, rewritten (log.go, round.go, rewrite.go)
//
// The package knows requests as bytes. What they mean is their writer's and their
// loader's business: it imports no command and no data. Nor does it know the
// operating system: package disk is between.
//
// Bytes that are read come from strangers. Memory follows what is there, never what
// is announced; what is wrong is a *FormatError or a *TornError with the place.
//
// The manifest is only ever replaced as a whole: a temporary file, synced, renamed,
// the folder synced. A file is in the manifest before anything in it counts, and is
// removed after it has left it. So a crash between any two steps leaves a set that
// loads to the right data, and perhaps files that nobody names, which Open removes.
//
// To add a kind of file: its letter in manifest.go, what Open does with it in set.go,
// and who makes it durable in rewrite.go.
package aof
