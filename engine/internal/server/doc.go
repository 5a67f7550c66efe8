// Package server is the shell around the engine's pure core: the only part
// that has goroutines, sockets, timers and a clock.
//
// There is one lock, over the machine. Whoever serves a connection reads what has
// arrived, takes the lock once, runs every whole request in it as one batch (conn.run),
// takes the replies, gives the lock back, commits the log, and writes them in one call
// (conn.tell). It also carries out the batch's effects on other connections: a message,
// or the end of a wait. Sockets are served by an event loop where there is one, all else
// by a goroutine of its own (eventloop_linux.go says why).
//
// A script that runs for long gives the lock back now and then (exec's
// running.go says why): whoever holds it may find the machine Busy, and then
// calls nothing of it but Step, Connect, Disconnect, Timeout and Tick.
//
// Writing never blocks the writer: what a socket does not take at once goes on
// in a goroutine of that connection alone, so a slow reader holds up neither
// the engine nor, up to a bound, its own further requests (a client may send a
// huge pipeline before it reads the first reply).
//
// What a batch needs is lent to it (buffers.go): a quiet connection has no memory for
// requests or replies. A batch ends early when its replies come to more than a client
// may leave unread; the rest is run when they have been read.
//
// Who owns what: Server the lock, the machine, the set of connections and the
// expiry timer; conn its socket, parser and pending output; the loop its sockets. Every goroutine is
// counted in Server.tasks, and Close waits for all of them.
//
// Nothing here is at package level, and long waits are on channels or I/O, so a
// server with in-memory connections (Pipe) runs inside a synctest bubble.
package server
