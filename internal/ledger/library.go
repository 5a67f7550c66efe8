package ledger

import "fmt"

// The Functions library: the transitions for those who do not run this Go, under names of their own, so that a client in
// another language needs no script text.
//
// A new transition joins by a line in the table. Any change of a text raises LibraryVersion: a test tells.

// LibraryName is the name of the library, and with a '_' behind it the beginning of its functions' names.
const LibraryName = "signalbox"

// LibraryVersion rises with every change of a transition. A client may ask for it: FCALL_RO signalbox_version 0.
const LibraryVersion = 3

// A function is a transition by its name in the library.
type function struct {
	name   string
	script *script
	frees  bool
}

// Functions that free permits, or keep what is held, run on a server whose memory is full: it would refuse them at the
// door although they need next to none, and every lease would be lost. The others are refused before they do anything.
var library = []function{
	{"acquire", acquireScript, false},
	{"release", releaseScript, true},
	{"renew", renewScript, true},
	{"cancel", cancelScript, true},
	{"heartbeat", heartbeatScript, true},
	{"still", stillScript, true},
	{"resize", resizeScript, true},
	{"inspect", inspectScript, true},
	{"force", forceScript, true},
	{"reweigh", reweighScript, true},
	{"raise", raiseScript, true},
	{"watch", watchScript, false},
	{"acquire_group", acquireGroupScript, false},
	{"limit", limitScript, false},
	{"refund", refundScript, true},
	{"latch", latchScript, false},
	{"barrier", barrierScript, false},
	{"fence", fenceScript, false},
}

// permits is the library.
var permits = newLibrary()

func newLibrary() *FunctionLibrary {
	f := &FunctionLibrary{Name: LibraryName, Version: LibraryVersion, About: fmt.Sprintf(
		"-- Signalbox: locks, fair semaphores and what is made of them, as functions. docs/functions.md describes the calls.\n"+
			"-- Version %d, made of the transitions in internal/ledger: change those.\n", LibraryVersion)}
	for _, transition := range library {
		flags := ""
		if transition.frees {
			flags = "allow-oom"
		}
		f.Functions = append(f.Functions, LibraryFunction{Name: transition.name, Flags: flags, Text: transition.script.text.(string)})
	}
	return f
}

// Library returns the source of the library, as FUNCTION LOAD takes it.
func Library() string { return permits.Source() }

// FunctionName is how the library calls a transition.
func FunctionName(transition string) string { return LibraryName + "_" + transition }

// FunctionOf returns the name of the function that does what the script of a digest does, "" if there is none.
func FunctionOf(digest string) string {
	for _, f := range library {
		if f.script.digest == digest {
			return FunctionName(f.name)
		}
	}
	return ""
}
