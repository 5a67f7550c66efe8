// Package soak has several processes work for a long time while everything breaks that may break; see package faults.
//
//	soak_test.go       the parent: servers, processes, faults by a seed, and what must be left at the end: nothing
//	processes_test.go  many processes and no fault: turns are shared evenly
//	worker_test.go     a process of workers
//	witness_test.go    counts permits on a server that nothing happens to
//
// `go test` gives them a few seconds; `make soak FOR=10m SEED=1` and `make processes FOR=1m` give them what they need.
package soak
