// Package lua runs the scripts of EVAL and the functions of libraries: Lua 5.1
// in the sandbox of Redis 7.0.
//
// The language is package lua51; here are the sandbox and the libraries. A VM
// owns the script cache and one interpreter, which serves all scripts one after
// another. Functions owns another for libraries. Commands go to the Host; the
// engine is one.
//
//	vm.go        the cache of scripts and the face of the package
//	functions.go libraries of functions; register.go how they register them
//	shebang.go   the first line of scripts and libraries
//	state.go     one interpreter, one run, errors as Redis words them
//	sandbox.go   globals and read-only libraries
//	args.go      what library functions take, and how they make texts
//	reply.go     values between RESP and Lua
//	redis.go, base.go, strings.go, json.go, ...  one library of Lua each
//
// To add a library: write a file with one function that returns its members,
// and name it in libraries (sandbox.go); whatever loops must call Pass, and what
// holds a value must have it on the stack, where it is weighed. To add a case to
// the tests: append its script to a file in testdata and let a real Redis answer
// it (transcript_test.go says how).
//
// What still differs from Redis:
//
//   - pairs goes another way through tables whose keys are objects, through the
//     globals and through libraries;
//   - string.dump fails;
//   - settings of cjson end with the script that made them;
//   - there is no global __redis__err__handler;
//   - the text of a number has at most 64 KiB;
//   - error with a table that has no err is an error reply (it crashes Redis
//     7.0.15, so there is no case for it).
package lua
