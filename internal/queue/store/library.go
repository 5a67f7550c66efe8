package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// The queue's library of Redis Functions, for clients in other languages: its transitions, under names of their own. Each is
// made of the same text as the script (compose). docs/functions-queue.md describes the calls.
//
// Clients ask which keys a queue has (signalbox_queue_keys), and every function refuses another number of them. So a new key
// costs an old client one more question, and never has a function take one key for another.
//
// A new transition joins by a line in the table. Any change of a text raises LibraryVersion: a test tells.

const (
	// LibraryName is the name of the library, and with a '_' behind it the beginning of its functions' names.
	LibraryName = "signalbox_queue"
	// LibraryVersion rises with every change of a transition.
	LibraryVersion = 1
	// WireVersion is that of what clients say: calls, replies, messages, records and envelopes. It is frozen; what is added
	// is what clients of the same version may leave out, and overlook.
	WireVersion = 1
)

// What workers and operators say makes room, so it is heard on a server whose memory is full.
var library = []struct {
	name   string
	script *script
	flags  string
}{
	{"enqueue", enqueueScript, ""},
	{"work", workScript, "allow-oom"},
	{"change", changeScript, "allow-oom"},
	{"configure", configureScript, "allow-oom"},
	{"schedule", scheduleScript, ""},
	{"look", lookScript, "allow-oom"},
	{"scan", scanScript, "no-writes"},
	{"stats", statsScript, "no-writes"},
	{"workers", workersScript, "no-writes"},
}

// Library is the library of functions.
func Library() *ledger.FunctionLibrary {
	f := &ledger.FunctionLibrary{
		Name: LibraryName, Version: LibraryVersion,
		About: fmt.Sprintf("-- Signalbox: task queues, as functions. docs/functions-queue.md describes the calls.\n"+
			"-- Version %d, made of the transitions in internal/queue/store: change those.\n", LibraryVersion),
		Greeting: fmt.Sprintf("\n    if ARGV[1] and ARGV[1] ~= '%d' then\n"+
			"      return redis.error_reply('WIRE these functions speak wire version %d of the queue, and the client ' .. ARGV[1] .. "+
			"': update the older of the two')\n    end\n   ", WireVersion, WireVersion),
		Functions: []ledger.LibraryFunction{keysFunction()},
	}
	check := fmt.Sprintf("if #KEYS ~= %d then return redis.error_reply('KEYS a queue has %d keys, not ' .. #KEYS .. "+
		"': ask signalbox_queue_keys which, and call again') end\n", len(keyNames)+1, len(keyNames)+1)
	for _, transition := range library {
		f.Functions = append(f.Functions, ledger.LibraryFunction{
			Name: transition.name, Flags: transition.flags, Check: check, Text: transition.script.body,
		})
	}
	return f
}

// keysFunction tells the keys of a queue behind its prefix, in their order. The last one is the producer's.
func keysFunction() ledger.LibraryFunction {
	names := "'" + strings.Join(append(slices.Clone(keyNames), "producer:"), "', '") + "'"
	return ledger.LibraryFunction{Name: "keys", Flags: "no-writes", Text: "-- keys: says which keys a queue has\n--\nreturn {" + names + "}\n"}
}

// Functions says what each primary has of the library.
func (s *Store) Functions(ctx context.Context) ([]ledger.Installed, error) {
	return Library().Look(ctx, s.transport)
}

// InstallFunctions puts the library on every primary, and returns what each had before.
func (s *Store) InstallFunctions(ctx context.Context) ([]ledger.Installed, error) {
	return Library().Install(ctx, s.transport)
}

// DeleteFunctions removes the library from every primary, and returns what each had before.
func (s *Store) DeleteFunctions(ctx context.Context) ([]ledger.Installed, error) {
	return Library().Delete(ctx, s.transport)
}
