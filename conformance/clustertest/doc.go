// Package clustertest runs the conformance suite against a real Redis Cluster. It is a package of its own so that it
// runs beside the suite against other servers.
package clustertest
