// Package simulation leads the lives of package acquisition through histories that a seed decides: a few clients, a network
// that delays, loses and reorders, the real ledger on an engine that is stepped, and a nemesis that crashes, pauses and cuts
// off clients, restarts the server and moves its clock. There is one loop over a heap of events and no goroutine, so a seed
// replays to the byte, and ten thousand histories take a minute or so.
//
// All of it is tests. A history is a world (world_test.go): the server (server_test.go), the network (network_test.go),
// clients, which are the shell around their lives in the plainest form (client_test.go), what they want
// (workload_test.go), the nemesis (nemesis_test.go). What must always hold is in checker_test.go, by the numbers of
// docs/invariants.md. Package simtest runs the whole library, goroutines and all, a hundred times as slowly.
//
// Of a seed that fails the whole trace is printed; SIGNALBOX_SEED runs one seed alone. To add a fault: a line in the
// nemesis' list. To add a promise: a check that is called where what it is about changes.
package simulation
