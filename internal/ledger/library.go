package ledger

import (
	"fmt"
	"strings"
)

// The Functions library: the transitions for those who do not run this Go, under names of their own, so that a client in
// another language needs no script text. Each function is a transition's text as it is, in `function(KEYS, ARGV) … end`:
// it cannot differ from the script.
//
// A new transition joins by a line in the table. Any change of a text raises LibraryVersion: a test tells.

// LibraryName is the name of the library, and with a '_' behind it the beginning of its functions' names.
const LibraryName = "signalbox"

// LibraryVersion rises with every change of a transition. A client may ask for it: FCALL_RO signalbox_version 0.
const LibraryVersion = 1

// versionFunction is what tells a library of ours from another of the same name.
const versionFunction = LibraryName + "_version"

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

// Library returns the source of the library, as FUNCTION LOAD takes it.
func Library() string {
	var source strings.Builder
	fmt.Fprintf(&source, "#!lua name=%s\n"+
		"-- Signalbox: locks, fair semaphores and what is made of them, as functions. docs/functions.md describes the calls.\n"+
		"-- Version %d, made of the transitions in internal/ledger: change those.\n\n", LibraryName, LibraryVersion)
	fmt.Fprintf(&source, "redis.register_function{\n  function_name = %s,\n  description = %s,\n"+
		"  flags = {'no-writes'},\n  callback = function() return %d end,\n}\n",
		quoted(versionFunction), quoted("the version of this library"), LibraryVersion)
	for _, f := range library {
		text := f.script.text.(string)
		flags := ""
		if f.frees {
			flags = "  flags = {'allow-oom'},\n"
		}
		fmt.Fprintf(&source, "\nredis.register_function{\n  function_name = %s,\n  description = %s,\n%s"+
			"  callback = function(KEYS, ARGV)\n%send,\n}\n",
			quoted(FunctionName(f.name)), quoted(purpose(text)), flags, text)
	}
	return source.String()
}

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

// purpose is the first clause of a transition's header: behind the name, as far as the first stop or reason.
func purpose(text string) string {
	header, _, _ := strings.Cut(text, "\n--\n")
	_, words, _ := strings.Cut(strings.ReplaceAll(header, "\n--", ""), ": ")
	for _, stop := range []string{". ", "; ", ": ", ", so that", ", unless"} {
		words, _, _ = strings.Cut(words, stop)
	}
	return strings.TrimSuffix(words, ".")
}

// quoted is a text as Lua writes it.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(text) + "'"
}
