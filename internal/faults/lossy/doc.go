// Package lossy shows what asynchronous replication may cost, step by step and without a load: a primary, a replica that
// is held back, and a promotion that loses the last writes. The registry of package faults says what each test injects.
package lossy
