// Package simtest runs the whole of Signalbox, boxes, clients of Redis and the engine, in virtual time, breaks the
// network and the server between them, and holds what happens against the invariants L1 to L8 of the ledger.
//
// One run is one seed. The seed draws a plan (plan.go): how many boxes, clients and resources, their limits and times
// to live, and which faults occur how often. Everything runs in one testing/synctest bubble, so that a run of a minute
// takes a moment, no timer depends on the load of the machine, and a goroutine left behind fails the test.
//
//	world     builds all, lets it run, winds it down (world.go)
//	host      the machine of one box: its links, and whether the network reaches it (network.go)
//	link      one connection with a fate drawn for each packet (link.go)
//	client    acquires, tries, cancels, holds and releases at random (client.go)
//	nemesis   partitions, crashes, restarts, evicts, kills, forces, resizes (nemesis.go)
//	checker   the holders' view: L1, L2, the outcomes of calls (checker.go); the server's: L3 to L8 (snapshot.go)
//	trace     the last events, printed with the first violation (trace.go)
//
// The checker knows everything: whose lease is alive in the eyes of its holder, and what the server's keys hold, which
// it reads without running a transition, since a transition would do the work that others must do in time.
//
// # What a seed fixes
//
// The plan, the fate of the nth packet of each connection, what each client does next and what the nemesis does when.
// It does not fix the jitter of the library's own retries nor the order of goroutines that run at the same virtual
// instant, so that a rare failure may need its seed repeated: SEED=n go test -run Seeds -count 20.
//
// # Histories
//
// history.go is for the other clock: it records what real clients over TCP called and were answered, and asks porcupine
// whether one order of atomic acquires and releases explains it.
//
// To add a fault: a field of Plan, its turn in nemesis.go, and what it excuses in the checker. Excuses are narrow: of
// one box, one lease or one resource, for a bounded time.
package simtest
