// Package replication is Redis's replication protocol without its sockets: what two servers say
// to each other until a stream of changes flows, and what is remembered of that stream.
//
//	history.go    the stream a server passes on: its identity, how far it goes, its last bytes
//	pieces.go     what of it is on its way to a replica, without a copy
//	handshake.go  the replica's side of the conversation, line by line
//	reply.go      the heads of what a primary sends: PSYNC's answer, the snapshot
//
// Offsets count bytes of the stream, the first is 1: what has the offset n has seen n bytes.
//
// The package is pure: package exec has a History and says what it means for the data, package
// server has the connections.
package replication
