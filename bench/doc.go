// Command bench measures Signalbox beside what it is compared with, in one run on one machine, and says which aims are
// met: `go -C bench run .`, or `make bench`.
//
// Absolute figures say little: a round trip on one machine costs three times as much when client and server sit on
// different cores as when they share one, and the scheduler picks. So everything is a ratio between neighbours in time,
// processes are pinned to cores (the server to the first, clients to the others), cases take turns for several rounds,
// and the median is shown with the range.
//
//	main.go         flags, the order of things
//	flags.go        the flags of the subcommands
//	process.go      child processes: pinned, their CPU time, ended by process id
//	server.go       the servers: redis-server and the engine, each a process
//	calls.go        what the servers count: commands sent, and those that scripts called
//	lockers.go      the locks that are compared, behind one face
//	peers.go        those of other libraries; book.go those of Redis in Action
//	uncontended.go  one client: acquire and release beside two bare scripts
//	squad.go        a match: so many clients on one lock, in processes that are kept from bout to bout
//	contestant.go   the children's side of it
//	turns.go        its arithmetic: waits, shares, what all clients say together
//	witness.go      who sees that a lock is one, and that a semaphore keeps its limit
//	contended.go    ten processes take turns on one lock
//	waiting.go      what nine waiters send while a tenth holds
//	load.go         redis-benchmark on Redis and on the engine
//	cycles.go       the load redis-benchmark cannot make: pairs of acquire and release on 50 connections
//	report.go       tables, aims, JSON; markdown.go the same as a page
//
// `go -C bench run . locks`, or `make bench-locks`, is all about locks and semaphores, and takes a quarter of an hour;
// ARGS=-markdown also writes docs/benchmarks-locks.md:
//
//	locks.go        its flags and its rounds
//	lock_parts.go   what is matched with what
//	lock_tables.go  a row for each match
//	lock_load.go    the part load: very many leases and waiters of one process; many.go its children
//	lock_aims.go    the aims of the design
//	reasons.go      why some are missed
//
// `go -C bench run . durability`, or `make bench-durability`, is all about data that is kept in a folder, and takes ten
// minutes; ARGS=-markdown also writes docs/benchmarks-durability.md:
//
//	durability.go        its flags and its rounds
//	keepers.go           the servers, with a folder
//	drivers.go           the load: keys in any order, latencies in windows of time
//	durable_writes.go    SET with the append-only file on
//	durable_snapshot.go  latency, throughput and memory during BGSAVE
//	durable_load.go      from the start of a process until all is loaded
//
// `go -C bench run . engine`, or `make bench-engine`, puts every aim for the engine's speed and memory in one table, and
// takes twenty minutes; ARGS=-markdown also writes docs/benchmarks-engine.md, ARGS=-list names the rows for -only:
//
//	engine_bench.go     its flags, groups and pairs
//	engine_rows.go      rows and what is wanted of them; why some miss
//	engine_servers.go   the servers, their memory and CPU time, the collector's work
//	engine_load.go      redis-benchmark, redisbenchmark.go: every command that has an aim, and scripts
//	engine_single.go    one client; idle connections
//	engine_inside.go    engine.Do, and the ledger in process
//	engine_memory.go    bytes an item, what removal gives back, keys that expire at once
//	engine_large.go     commands on a collection of a million, and its removal, with PING beside
//	engine_keys.go      a table that grows; latencies among ten million keys
//	fill.go             data of all kinds
//	pace.go             requests at a fixed rate, and what is late
//
// `go -C bench run . queue`, or `make bench-queue`, does the same for the task queue, in six minutes; ARGS=-markdown also writes
// docs/benchmarks-queue.md:
//
//	queue_bench.go  its flags, tests, rounds and rows
//	queue_rows.go   what is measured, and what is wanted of it
//	queue_roles.go  the children: producers and workers; stopwatch.go how long their calls take
//	queuers.go      the queues that are compared, behind one face
//	queue_centre.go agents that log in and are offered calls
//	queue_outbox.go the outbox beside River's transactions
//	queue_peers.go  PostgreSQL for River; Node for BullMQ, whose side is bullmq.js
//
// The program starts itself again for each role that must be a process of its own; see roles in main.go. A new
// measurement is one file with a function that returns a section, and one line in measure.
package main
