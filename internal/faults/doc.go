// Package faults puts the library under load against real servers, has something break, and checks what the library
// promises all the same. internal/simtest does so in virtual time with all faults at once; here are real processes,
// real sockets and real failovers, one fault at a time.
//
//	registry   every fault by name: what is injected, what must hold (registry.go); `go run ./internal/faults/matrix -list`
//	load       workers that acquire, try, cancel, hold and release over several boxes (load.go)
//	checker    L1 and L2 in the eyes of the holders, errors that have a reason (checker.go)
//	leftovers  L6 and L7 in the keys of the servers (leftovers.go)
//
// The tests are in the packages below, one for each kind of server so that they run beside each other, with one file
// for each fault: network (the proxy between), server (one server, and a holder's process), cluster, sentinel, lossy,
// late (requests that arrive after what followed them), quorum, soak (everything at once, with several processes), and
// jobs, which puts a queue under load instead.
//
// To add a fault: a line in the registry, and a test of that name which begins with faults.Begin.
//
// # What may break, and what may not
//
// Replication is asynchronous. A server that crashes takes with it what it acknowledged and had not passed on, and no
// library can undo that: the exclusion of L1 is promised while no acknowledged write is lost. So the tests either see to
// it that none is lost, and check L1 for every lease; or they say by Load.Losing when writes may be lost, and the leases
// of before do not count any more. Tokens (L2), turns, and that nothing stays behind (L6, L7) are checked always.
package faults
