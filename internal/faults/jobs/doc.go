// Package jobs has the faults of a queue: workers and servers that die, and what a network does. The registry of package
// faults says what each test injects.
package jobs
