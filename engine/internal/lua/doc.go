// Package lua runs the scripts of EVAL and the functions of libraries: Lua 5.1
// in the sandbox of Redis 7.0.
//
// The interpreter is gopher-lua; this package makes it behave as Redis's Lua
// does. A VM owns the script cache and one interpreter, which serves all
// scripts one after another: starting one costs 0.1 ms, running a script two
// microseconds. Functions owns another for libraries. Commands go to the Host;
// the engine is one.
//
//	vm.go        the cache of scripts and the face of the package
//	functions.go libraries of functions; register.go how they register them
//	shebang.go   the first line of scripts and libraries
//	state.go     one interpreter, one run, errors as Redis words them
//	meter.go     how long a script may run, and how much it may hold: weigh.go
//	             finds out what it holds, watch.go what an index would take
//	compile.go   text to code; rewrite.go changes the syntax tree on the way,
//	             hoist.go moves the making of functions out of the runs, and
//	             link.go puts globals among the constants
//	sandbox.go   globals and read-only libraries
//	reply.go     values between RESP and Lua
//	redis.go, base.go, strings.go, json.go, ...  one library of Lua each
//
// To add a library: write a file with one function that returns its members,
// and name it in libraries (sandbox.go); whatever it makes it must report to
// the meter. To add a case to the tests: append
// its script to a file in testdata and let a real Redis answer it
// (transcript_test.go says how).
//
// Every library function is written here. gopher-lua's own print numbers as
// Go does, take "010" for eight, change letters beyond ASCII, and raise
// errors in other words; scripts that compare or hash such texts would break.
//
// What still differs from Redis, each with a case in testdata:
//
//   - errors of the interpreter do not name the variable ("attempt to index a
//     nil value", where Lua says "local 'x' (a nil value)"), and call every
//     value that is no function nil;
//   - some syntax errors name the place, but not what was expected there;
//   - pairs goes through a table in the order its keys were first set;
//   - the length of a table with holes may be another of its borders;
//   - a number modulo zero or infinity may differ in the sign of nan;
//   - string.dump fails;
//   - a line of a loadstring chunk is shown as one of the script;
//   - settings of cjson end with the script that made them;
//   - error with a table that has no err is an error reply (it crashes Redis
//     7.0.15, so there is no case for it).
package lua
