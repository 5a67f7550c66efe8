// Package cluster has the faults of a real Redis Cluster of three primaries and three replicas. The registry of package
// faults says what each test injects.
package cluster
