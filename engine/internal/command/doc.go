// Package command holds the commands that work on data, one declarative record
// each, and the table they form.
//
// A record (Spec) says everything about a command that is not its handler:
// name, arity, flags, where its keys are, group, since when, what it does.
// Dispatch, errors of arity and permission, queueing in MULTI, key extraction,
// the rules for scripts and the COMMAND command all derive from it. To add a
// command write one record and one handler in the file of its family, and its
// transcript in engine/testdata; nothing else knows it.
//
// A handler has one shape: look its keys up (a typed lookup that answers
// WRONGTYPE by itself), change them, report each change with Ctx.Touch, and
// write exactly one reply, or return an error, which becomes the reply. It
// does not log, replicate, wake anybody or look at a clock.
//
// What it has changed can be written down as requests (journal.go), for a file or for
// replicas. That is the call itself, unless running it again could do something else:
// because of chance, of the time, or of whoever waits. Then, and only then, the handler
// says what else it is, with Ctx.Propagate, in the words of commands that leave nothing
// open: SPOP is an SREM, EXPIRE a PEXPIREAT, BLPOP an LPOP. To add such a command say so
// next to Ctx.Touch, and add a case to propagationCases in package exec, which holds it
// against Redis.
//
// Commands that work on the engine's own state (connections, transactions,
// publish and subscribe, scripts) have the same records; their handlers live
// in package exec with that state.
package command
