// Package sentinel has the faults of a primary with two replicas, watched by three Sentinels. The registry of package
// faults says what each test injects.
package sentinel
