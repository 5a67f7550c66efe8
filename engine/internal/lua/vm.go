package lua

import (
	"crypto/sha1"
	"encoding/hex"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"

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
	// Heavy is called when a script has made much, and may come to hold so many
	// bytes until it ends.
	Heavy(mostBytes int64)
	// Beside does work that takes long, and that nothing else depends on meanwhile, beside the
	// script. ended waits for a moment and says whether it is done.
	Beside(work func()) (ended func() bool)
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

	proto *lua51.Proto
	fn    *lua51.Function
	owner *state
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
	proto, err := vm.interpreter().compile(string(body), scriptChunk, nil)
	if err != nil {
		return nil, Error("ERR Error compiling script (new function): " + err.Error())
	}
	s := &Script{SHA: string(text[:]), Flags: flags, proto: proto}
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
func (vm *VM) Close() { vm.state = nil }

// Run runs a script and appends its reply, or an error, to out.
func (vm *VM) Run(h Host, s *Script, keys, args [][]byte, out *resp.Writer) {
	state := vm.interpreter()
	if s.owner != state {
		s.fn, s.owner = state.vm.Load(s.proto), state
	}
	if !state.run(h, s.fn, s.SHA, keys, args, out) {
		vm.Close()
	}
}

// interpreter makes the interpreter when it is first needed.
func (vm *VM) interpreter() *state {
	if vm.state == nil {
		vm.state = newState(vm.log, scriptChunk)
	}
	return vm.state
}
