// Package faultproxy is a TCP proxy on the loopback interface that stands in front of one server and is as bad as a
// network can be: it delays, holds, loses and cuts, each direction by itself, and is well again when told so.
//
//	proxy      listens, keeps the connections, is told the Fault (proxy.go)
//	link       one connection: two directions (link.go)
//	direction  reads, and hands on when it may; what is late waits in a short queue (direction.go), to a fraction of a
//	           millisecond (sleep_*.go)
//
// TCP does not lose bytes in the middle of a stream. So there are two ways for nothing to arrive: Hold keeps the bytes
// until the network is well, as a partition that heals does; Drop throws them away, and a connection that has lost some
// is cut as soon as the fault is over, as one is that has been given up.
//
// A Proxy may be told things by any number of goroutines. It owns all its goroutines; Close ends them and waits.
package faultproxy
