// Package engine is a Redis-compatible data-structure server as a Go package:
// strings, lists, sets, hashes, sorted sets, transactions, blocking commands,
// Lua scripts, and publish and subscribe, in RESP2 and RESP3.
//
//	e, err := engine.Open(engine.Options{})
//	if err != nil { ... }
//	defer e.Close()
//
//	go e.Serve(listener)              // for redis-cli and any client
//	conn, err := e.Dial()             // a net.Conn without a network, for any Go client
//	reply, err := e.Do(ctx, "INCR", "visits")
//
// A redis.conf, or parts of it, come in by ReadConfig: passwords and users with
// their rights, limits, TLS.
//
// Commands answer as Redis 7.0 does, its error texts included. Data is gone with
// Close, unless Options.Dir names a folder to keep it in: in the files of Redis 7,
// an append-only file and snapshots.
//
// An engine has no goroutine and no state at package level, and waits on
// channels only, so a whole engine with its clients runs inside a
// testing/synctest bubble, in virtual time, if it is opened there.
//
// Inside: internal/server is the shell (goroutines, sockets, clock) around the
// pure core internal/exec; internal/command is the table of commands on data;
// internal/keyspace the data; internal/ds the containers; internal/lua the
// scripts; internal/resp the protocol; internal/acl the users, internal/conf
// the parameters, internal/aof and internal/rdb the files.
package engine
