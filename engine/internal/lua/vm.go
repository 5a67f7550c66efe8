package lua

import (
	"context"
	"crypto/sha1"
	"encoding/hex"

	glua "github.com/yuin/gopher-lua"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Host runs one command for a script and appends exactly one reply, in the
// protocol out.Proto, to out. It never blocks, keeps no argument, and does
// not run another script.
type Host interface {
	Call(args [][]byte, out *resp.Writer)
}

// VM holds the compiled scripts and the interpreter that runs them. It is
// not safe for concurrent use: one script runs at a time.
type VM struct {
	log     func(level int, msg string)
	scripts map[string]*script
	state   *state
}

// script is one cached script. Its function belongs to one interpreter and
// is made again after that was replaced.
type script struct {
	sha   string
	body  []byte
	proto *glua.FunctionProto
	fn    *glua.LFunction
	owner *state
}

// New gives a VM without scripts. Log takes what redis.log is called with:
// 0 debug, 1 verbose, 2 notice, 3 warning.
func New(log func(level int, msg string)) *VM {
	if log == nil {
		log = func(int, string) {}
	}
	return &VM{log: log, scripts: make(map[string]*script)}
}

// SHA gives the name a script is cached under: its SHA1 in lower-case hex.
func SHA(body []byte) string {
	sum := sha1.Sum(body)
	var text [2 * sha1.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// Load compiles a script and keeps it. An error holds the reply to the
// client, its code included.
func (vm *VM) Load(body []byte) (sha string, err error) {
	sum := sha1.Sum(body)
	var text [2 * sha1.Size]byte
	hex.Encode(text[:], sum[:])
	if s := vm.scripts[string(text[:])]; s != nil {
		return s.sha, nil
	}
	proto, err := vm.interpreter().compile(string(body), "user_script")
	if err != nil {
		return "", compileError(err.Error())
	}
	s := &script{sha: string(text[:]), body: append([]byte(nil), body...), proto: proto}
	vm.scripts[s.sha] = s
	return s.sha, nil
}

type compileError string

func (e compileError) Error() string {
	return "ERR Error compiling script (new function): " + string(e)
}

// Exists says whether a script is cached.
func (vm *VM) Exists(sha string) bool { return vm.scripts[sha] != nil }

// Body gives the text of a cached script; it must not be changed.
func (vm *VM) Body(sha string) (body []byte, ok bool) {
	s := vm.scripts[sha]
	if s == nil {
		return nil, false
	}
	return s.body, true
}

// Len says how many scripts are cached.
func (vm *VM) Len() int { return len(vm.scripts) }

// Flush forgets all scripts.
func (vm *VM) Flush() { clear(vm.scripts) }

// Close frees the interpreter. The VM may be used again afterwards.
func (vm *VM) Close() {
	if vm.state != nil {
		vm.state.l.Close()
		vm.state = nil
	}
}

// Run runs a cached script and appends its reply, or an error, to out. When
// ctx ends, so does the script, with an error; context.Background() costs
// nothing.
func (vm *VM) Run(ctx context.Context, h Host, sha string, keys, args [][]byte, out *resp.Writer) {
	s := vm.scripts[sha]
	if s == nil {
		out.Error("NOSCRIPT No matching script. Please use EVAL.")
		return
	}
	state := vm.interpreter()
	if s.owner != state {
		s.fn, s.owner = state.l.NewFunctionFromProto(s.proto), state
	}
	if !state.run(ctx, h, s, keys, args, out) {
		vm.Close()
	}
}

// interpreter makes the interpreter when it is first needed.
func (vm *VM) interpreter() *state {
	if vm.state == nil {
		vm.state = newState(vm.log)
	}
	return vm.state
}
