// Package files keeps a queue's history in segment files in a folder.
//
//	sink, err := files.Open("/var/lib/app/history")
//	err = sink.Append(ctx, "app", entries)
//
// Each call of Append is one write and one fsync; a file that is full is followed by the next. One process writes a folder at a
// time, any number read it (ReadOnly), also meanwhile. Every entry has a checksum and a number, every file knows what came
// before it: what is corrupt, cut off or missing is found when it is read, and named. Read ends there, unless Salvage has
// it go on behind it. Check looks at all of a folder.
//
// Inside: format.go is the bytes, scan.go finds records in one file, walk.go reads file after file and knows holes; sink.go is
// the writer, prune.go removes what is too old. The format is in docs/queue/history-sinks.md, and why it is so in docs/decisions/041-segment-files.md.
package files
