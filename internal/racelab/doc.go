// Package racelab is the race laboratory: it runs algorithms on Redis, as they
// are, with a scheduler that lets one client at a time send one command, and
// searches the schedules for one that breaks a promise.
//
// A client is a goroutine with a go-redis client whose connections end in the
// lab (client.go, conn.go). It stops at each call, request and sleep, and goes
// on when the lab says so; only one goroutine runs at any time. The server is
// package engine/stepped, in the same process, without a clock. So a run is a
// function of the list of its choices (world.go), which makes it a state machine
// that can be searched: from the beginning each time, since goroutines cannot be
// copied.
//
//	algorithm.go  what a patient is, the promises, what a client does with it
//	world.go      one run: what can happen next, and how it comes true
//	judge.go      what clients believe, and which promise that breaks
//	footprint.go  what a step has touched: which orders matter
//	search.go     all schedules within bounds; random.go: some beyond
//	life.go       a client that the life of an acquisition leads
//	queue.go      the task queue, and the judge of what it promises
//	row.go        a step as it is shown; table.go: a schedule as a table
//
// The lab owns the goroutines of its clients; a search starts them and ends
// them. To add an algorithm: see Algorithm, and lua_lock.go for the shortest.
// Nothing in a patient's file says where its races are.
package racelab
