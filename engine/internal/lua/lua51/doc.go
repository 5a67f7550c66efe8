// Package lua51 is the language Lua 5.1: it compiles chunks and runs them on a
// register machine. The libraries are not here, and neither is Redis.
//
//	value.go     values, in two words
//	table.go     tables; hash.go where keys are in them; table_grow.go how they
//	             grow
//	number.go    numbers as texts
//	lexer.go     a source to tokens; parser.go and parser_expr.go read those
//	             and call codegen.go and codegen_expr.go, which write
//	             instructions (opcode.go)
//	function.go  what the compiler makes, and functions made of it
//	state.go     what all coroutines of a program share; thread.go a stack and
//	             the calls on it; coroutine.go
//	execute.go   the loop over instructions; meta.go what is not simple in it;
//	             concat.go long texts
//	errors.go    errors, and the names in them
//	meter.go     how long a program may run and how much it may hold, which
//	             weigh.go finds out; pool.go memory that is used again
//
// Three things are its own. Whatever takes time, by instructions or in Go, lets
// the meter look (State.Interrupt), so that any program can be ended soon.
// Whatever takes memory is charged to the meter. And a program whose runs share
// nothing makes what it makes in memory of the run before, so that short runs
// allocate nothing.
//
// The texts of errors, the limits, the borders of lists and the names of
// variables in messages are those of the original, whose virtual machine this
// one follows for that; so is the order in which pairs goes through a table,
// unless its keys are objects. Other than there, string.dump, weak tables and
// finalizers do not exist.
package lua51
