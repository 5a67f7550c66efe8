// Package keyspace holds the data of the engine: sixteen numbered databases,
// each one map from key to object.
//
// There is one map and one object type. An object knows its value and when it
// expires; nothing about a key is kept in a second place that could disagree,
// with one exception: the set of keys that have an expiry, which active expiry
// samples. Object.expireAt is the truth, DB.volatile the index over it, and
// only setExpire and remove touch both.
//
// The package is pure. It never reads a clock: callers hand in the time, so a
// whole engine runs in virtual time. It starts nothing and locks nothing: the
// engine runs one command at a time.
//
// What is removed by no command, since it has expired or memory is short, is told to one
// listener (Space.OnRemoval): nobody could know from the commands.
//
// Besides data it keeps the two things that must be told when a key changes:
// the WATCHes on it, and the queue of clients that block on it. Commands
// report a change with DB.Touch and know nothing of either.
//
// A snapshot of the data of one moment, taken while commands go on, is in snapshot.go: it
// names every place where an object changes or goes. Whoever adds another adds its hook.
//
// A new value type needs a Kind constant, its cases in collection.hold, Object.Value and
// Object.CloneValue, and, if clients can block on it, its kind in DB.canServe.
package keyspace
