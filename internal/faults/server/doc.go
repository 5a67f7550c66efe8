// Package server has the faults of one server, and of a process that holds a lease. The registry of package faults says
// what each test injects.
package server
