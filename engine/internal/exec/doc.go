// Package exec is the pure core of the engine: a machine that is handed one
// command at a time and answers with its effects.
//
//	Step(now, session, arguments) -> reply in session.Out, effects for the shell
//
// It owns everything that is not data: sessions, transactions, blocked
// clients, subscriptions, scripts, configuration, counters. It has no
// goroutine, no lock, no socket and no clock: the shell (package server) calls
// it under one lock, hands in the time, and carries the effects out: it writes
// the replies of the sessions in Effects.Wake, closes those in Effects.Close,
// and calls Timeout when a blocked session's time is up. Effects.Propagate is what
// has changed, for a log or for replicas, if the shell has asked for it. So whole
// engines run in virtual time, and a run can be repeated.
//
// The way of a command is one way:
//
//	Step     finds the record, checks everything that holds for all commands
//	         (arity, authentication, subscriber mode), queues in MULTI
//	call     runs the handler, turns its error into the reply, counts
//	serve    clients blocked on keys that were touched, in order of arrival,
//	         until no key is ready (never recursively)
//
// Files: machine.go the way above; session.go one client; blocking.go,
// transaction.go, pubsub.go, scripting.go, functions.go, pause.go what their names
// say; running.go a script while it runs, and how it lets others in; permission.go the
// checks of access control; notify.go, tracking.go, monitor.go who is told of changes
// and commands; stats.go, slowlog.go, latency.go, histogram.go, rates.go what is counted
// and measured; propagate.go what a log of all changes has, replay.go how it is run again;
// persistence.go, savepoints.go when files are written, snapshot.go, snapshot_large.go,
// load.go the data as a file and back; memory.go, limits.go what is bounded; follow.go
// the parameters;
// connection.go, client.go, config.go, acl.go, info.go, debug.go, introspect.go,
// shutdown.go the
// commands on the engine itself. To add a command of the engine itself, add its record to the family
// of its file.
package exec
