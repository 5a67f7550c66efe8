// Package topology starts real Redis Clusters and Sentinel groups for tests, and does to them what happens to such
// servers: a primary is killed, suspended or replaced, a slot moves, a node joins.
//
// They are made of redis-server processes on free ports of the loopback interface (internal/difftest starts and ends
// those), without persistence. While a failover is wanted, timeouts are short enough for it to take a second or two, and
// otherwise long, so that a machine that stalls begins none. Everything here
// returns when what it began has been agreed upon by all servers that are alive; tests wait for no clock.
//
//	node      one data server, with a client and what its replication says (node.go)
//	cluster   nodes that share the slots: forming, views, failover (cluster.go, view.go)
//	slots     a slot that moves from node to node while clients work (slots.go)
//	sentinel  one primary, its replicas, and the Sentinels that watch them (sentinel.go)
//
// A test owns what it starts; at its end all processes are gone, and if it has failed their last words are shown. The
// methods fail the test themselves and may be called from its goroutine only.
//
// To add an event: a method that causes it and then waits, by await, for all servers to agree.
package topology
