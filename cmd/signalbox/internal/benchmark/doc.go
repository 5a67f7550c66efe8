// Package benchmark measures a server of the Redis protocol and what is built on it, as the tables of Redis in Action
// do, for `signalbox bench`:
//
//	locks       table 11.2: the book's lock, its Lua lock and ours, by 1, 2, 5 and 10 clients    locks.go
//	pipelining  table 4.4: update_token over links of different length, pipelined or not         pipelining.go
//	commands    what redis-benchmark does: one command by many connections, perhaps pipelined    commands.go
//	semaphores  how often each semaphore lets too many in, by how much clocks differ             semaphores.go
//
// A part is a list of cells; a cell is one measurement of about Settings.Duration. The rounds go over all cells of a
// part in turn, so that what disturbs the machine for a while disturbs all of them, and Bench merges the rounds of a
// cell into its row (bench.go). Cells that are about several clients at once are run by a squad (squad.go).
//
// Server (server.go) is the one thing that knows how the server is reached, and which keys were made: every key has
// Server's own prefix in it, and is removed at the end of its part, or by Close. Links (links.go) are the ways to the
// server, real ones and emulated ones. Rows are plain data with stable JSON names; chart draws them, the program prints
// them.
//
// To add a part: a row type, its cells, a function that merges rounds, a field of Report, and a case in Bench.Run.
package benchmark
