// Package clienttest drives the engine with the programs that people use: Redis's own redis-cli, the clients of Go,
// Python and Node, and the job queues asynq and BullMQ, which lean on scripts, streams and blocking commands more than
// most applications do. What single commands answer is for the transcripts of package engine; here it is how clients
// put them together: greetings, pipelines, pushes, transactions, waits.
//
// It is a module of its own, so that nobody who uses Signalbox inherits these clients. Every test runs twice, on the
// engine and on a real redis-server, and expects the same of both: what a test demands is what Redis does, and a client
// that changes its ways is told from an engine that is wrong.
//
//	server_test.go     the two servers, and how to run a program against them
//	rediscli*_test.go  redis-cli
//	goredis*_test.go   go-redis
//	rueidis*_test.go   rueidis
//	redigo_test.go     redigo
//	asynq*_test.go     asynq
//	python_test.go     redis-py, as python/*.py
//	node*_test.go      ioredis, node-redis and BullMQ, as node/*.mjs
//
// The programs in python and node take the address and the protocol version as arguments, make their own assertions,
// and end with 0. The server is theirs alone.
//
// A new client is one test with onBoth, and a row in docs/clients.md. A client in another language is a program in
// that language's folder, a line in its manifest, and what .ci/test-deps needs to install it.
package clienttest
