package lua

import (
	"crypto/sha1"
	"encoding/hex"

	glua "github.com/yuin/gopher-lua"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Host is who runs a script and its commands: the engine.
type Host interface {
	// Call runs one command and appends exactly one reply, in the protocol
	// out.Proto, to out. It never blocks, keeps no argument, and does not run
	// another script.
	Call(args [][]byte, out *resp.Writer)
	// Permits says whether there is such a command, and whether the user for
	// whom the script runs may run it.
	Permits(args [][]byte) (permitted, known bool)
	// Record says, until the script ends or says otherwise, whether the changes of its
	// commands are recorded. It begins with true.
	Record(on bool)
	// Interrupt is called each time a script has made so many further steps.
	// If it answers with a text, the script ends with that as its error.
	Interrupt(steps int) (stop string)
}

// VM holds the compiled scripts and the interpreter that runs them. It is
// not safe for concurrent use: one script runs at a time.
type VM struct {
	log     func(level int, msg string)
	scripts map[string]*Script
	state   *state
}

// Script is one cached script. Its function belongs to one interpreter and
// is made again after that was replaced.
type Script struct {
	// SHA is the name the script is cached under: its SHA1 in lower-case hex.
	SHA string
	// Flags are those of its shebang line; EvalCompat if it has none.
	Flags Flags

	proto   *glua.FunctionProto
	hoisted bool // the proto is of a function that returns the script

	fn        *glua.LFunction
	variables []*glua.Upvalue // of a hoisted script, that a run fills
	owner     *state
}

// New gives a VM without scripts. Log takes what redis.log is called with:
// 0 debug, 1 verbose, 2 notice, 3 warning.
func New(log func(level int, msg string)) *VM {
	return &VM{log: logger(log), scripts: make(map[string]*Script)}
}

func logger(log func(level int, msg string)) func(level int, msg string) {
	if log == nil {
		return func(int, string) {}
	}
	return log
}

// SHA gives the name that a script is cached under.
func SHA(body []byte) string {
	sum := sha1.Sum(body)
	var text [2 * sha1.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// Error is the reply to a client whose script cannot be used, with its code.
type Error string

func (e Error) Error() string { return string(e) }

// Load compiles a script and keeps it. The error is an Error.
func (vm *VM) Load(body []byte) (*Script, error) {
	sum := sha1.Sum(body)
	var text [2 * sha1.Size]byte
	hex.Encode(text[:], sum[:])
	if s := vm.scripts[string(text[:])]; s != nil {
		return s, nil
	}
	flags, err := ScriptFlags(string(body))
	if err != nil {
		return nil, err
	}
	proto, hoisted, err := vm.interpreter().compileScript(string(body))
	if err != nil {
		return nil, Error("ERR Error compiling script (new function): " + err.Error())
	}
	s := &Script{SHA: string(text[:]), Flags: flags, proto: proto, hoisted: hoisted}
	vm.scripts[s.SHA] = s
	return s, nil
}

// Find returns a cached script, nil if there is none of that name. Its letters
// may be of either case.
func (vm *VM) Find(sha []byte) *Script {
	var lower [2 * sha1.Size]byte
	if len(sha) != len(lower) {
		return nil
	}
	for i, c := range sha {
		if 'A' <= c && c <= 'F' {
			c |= 0x20
		}
		lower[i] = c
	}
	return vm.scripts[string(lower[:])]
}

// Flush forgets all scripts.
func (vm *VM) Flush() { clear(vm.scripts) }

// Close frees the interpreter. The VM may be used again afterwards.
func (vm *VM) Close() {
	if vm.state != nil {
		vm.state.l.Close()
		vm.state = nil
	}
}

// Run runs a script and appends its reply, or an error, to out.
func (vm *VM) Run(h Host, s *Script, keys, args [][]byte, out *resp.Writer) {
	state := vm.interpreter()
	if s.owner != state {
		s.make(state)
	}
	usable := state.run(h, s.fn, s.SHA, keys, args, out)
	for _, v := range s.variables {
		v.SetValue(glua.LNil)
	}
	if !usable {
		vm.Close()
	}
}

// make makes the function for an interpreter.
func (s *Script) make(owner *state) {
	s.fn, s.variables, s.owner = owner.l.NewFunctionFromProto(owner.link(s.proto)), nil, owner
	if s.hoisted {
		s.fn = owner.outerPart(s.fn)
		s.variables = emptyVariables(s.fn)
	}
}

// outerPart runs the outer part of a hoisted script, which makes functions and
// does nothing else.
func (s *state) outerPart(fn *glua.LFunction) *glua.LFunction {
	s.meter.start()
	s.l.Push(fn)
	s.l.Call(0, 1)
	defer s.l.SetTop(0)
	return s.l.Get(-1).(*glua.LFunction)
}

// emptyVariables are the variables that a function, and the functions in such
// variables, can reach and that have no value.
func emptyVariables(fn *glua.LFunction) (empty []*glua.Upvalue) {
	seen := map[*glua.Upvalue]struct{}{}
	for queue := []*glua.LFunction{fn}; len(queue) > 0; {
		fn, queue = queue[0], queue[1:]
		for _, v := range fn.Upvalues {
			if !once(seen, v) {
				continue
			}
			if inner, ok := v.Value().(*glua.LFunction); ok {
				queue = append(queue, inner)
			} else {
				empty = append(empty, v)
			}
		}
	}
	return empty
}

// interpreter makes the interpreter when it is first needed.
func (vm *VM) interpreter() *state {
	if vm.state == nil {
		vm.state = newState(vm.log, scriptChunk)
	}
	return vm.state
}
