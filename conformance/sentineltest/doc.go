// Package sentineltest runs the conformance suite against real Redis servers behind Sentinels. It is a package of its
// own so that it runs beside the suite against other servers.
package sentineltest
