package lua

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// A script may, and a library must, begin with a line that says for whom it
// is and how it wants to be run:
//
//	#!lua flags=no-writes,allow-stale
//	#!lua name=mylibrary

// Flags say what a script or function needs or forgoes.
type Flags uint8

// The flags, in the order in which FUNCTION LIST names them.
const (
	NoWrites Flags = 1 << iota
	AllowOOM
	AllowStale
	NoCluster
	AllowCrossSlotKeys
	// EvalCompat is a script without a shebang line: each of its commands is
	// judged by itself.
	EvalCompat
)

var flagNames = []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// Names lists the flags that are set.
func (f Flags) Names() []string {
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// flag finds a flag by its name, which equal compares.
func flag(name string, equal func(a, b string) bool) (Flags, bool) {
	for i, known := range flagNames {
		if equal(known, name) {
			return 1 << i, true
		}
	}
	return 0, false
}

func sameText(a, b string) bool { return a == b }

// ScriptFlags reads the first line of a script. The error is an Error.
func ScriptFlags(body string) (Flags, error) {
	if !strings.HasPrefix(body, "#!") {
		return EvalCompat, nil
	}
	line, _, whole := strings.Cut(body, "\n")
	if !whole {
		return 0, Error("ERR Invalid script shebang")
	}
	words, ok := resp.SplitArguments(line)
	if !ok || len(words) == 0 {
		return 0, Error("ERR Invalid engine in script shebang")
	}
	if words[0] != "#!lua" {
		return 0, Error("ERR Unexpected engine in script shebang: " + words[0])
	}
	var flags Flags
	for _, word := range words[1:] {
		list, isFlags := strings.CutPrefix(word, "flags=")
		if !isFlags {
			return 0, Error("ERR Unknown lua shebang option: " + word)
		}
		if list == "" {
			continue
		}
		for name := range strings.SplitSeq(list, ",") {
			f, ok := flag(name, sameText)
			if !ok {
				return 0, Error("ERR Unexpected flag in script shebang: " + name)
			}
			flags |= f
		}
	}
	return flags, nil
}

// libraryName reads the first line of a library.
func libraryName(code string) (string, error) {
	if !strings.HasPrefix(code, "#!") {
		return "", Error("ERR Missing library metadata")
	}
	line, _, whole := strings.Cut(code, "\n")
	if !whole {
		return "", Error("ERR Invalid library metadata")
	}
	words, ok := resp.SplitArguments(line)
	if !ok || len(words) == 0 {
		return "", Error("ERR Invalid library metadata")
	}
	name, named := "", false
	for _, word := range words[1:] {
		const prefix = "name="
		if len(word) < len(prefix) || !strings.EqualFold(word[:len(prefix)], prefix) {
			return "", Error("ERR Invalid metadata value given: " + word)
		}
		if named {
			return "", Error("ERR Invalid metadata value, name argument was given multiple times")
		}
		name, named = word[len(prefix):], true
	}
	if !named {
		return "", Error("ERR Library name was not given")
	}
	if !validName(name) {
		return "", Error("ERR " + invalidName)
	}
	if engine := words[0][len("#!"):]; !strings.EqualFold(engine, "lua") {
		return "", Error("ERR Engine '" + engine + "' not found")
	}
	return name, nil
}

const invalidName = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"

func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isAlpha(c) && !isDigit(c) && c != '_' {
			return false
		}
	}
	return name != ""
}
