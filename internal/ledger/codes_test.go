package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The codes stand once in the scripts and once in Go.
func TestCodesAgree(t *testing.T) {
	t.Parallel()
	for file, codes := range map[string]map[string]int{
		"prelude.lua": {
			"GRANTED": int(Granted), "WAITING": int(Waiting), "REFUSED": int(Refused), "BARRED": int(Barred), "HEAVY": int(Heavy),
			"LOST": int(Lost), "HELD": int(Held), "FORCED": int(Forced), "WANTED": int(Wanted),
			"BUSY": reweighBusy, "STALE": reweighStale,
			"WAS_UNKNOWN": int(WasUnknown), "WAS_WAITING": int(WasWaiting), "WAS_HELD": int(WasHeld),
		},
		"barrier.lua": {"WAITING": barrierWaiting, "PASSES": barrierPasses, "BARRED": barrierBarred},
		"limit.lua":   {"REFUSED": limitRefused, "TAKEN": limitTaken},
		"fence.lua":   {"REFUSED": fenceRefused, "DONE": fenceDone},
	} {
		text, err := os.ReadFile(file)
		must(t, err)
		found := make(map[string]int)
		for _, line := range regexp.MustCompile(`(?m)^local ([A-Z_]+(?:, [A-Z_]+)+) = (.*)$`).FindAllStringSubmatch(string(text), -1) {
			values := strings.Split(line[2], ", ")
			for i, name := range strings.Split(line[1], ", ") {
				var n int
				if _, err := fmt.Sscan(values[i], &n); err == nil { // KEYS are no numbers
					found[name] = n
				}
			}
		}
		expect(t, file, fmt.Sprint(found), fmt.Sprint(codes))
	}
}

// Each name means one thing wherever it is read: no local hides another. A transition is read behind what it includes.
func TestNoLocalHidesAnother(t *testing.T) {
	t.Parallel()
	if got := hidden("local a, b\nlocal function f(a)\n  for b = 1, 2 do local c end\nend\nif a then local c end"); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("the test itself finds %q", got)
	}
	shared := strings.ReplaceAll(prelude, "--@include read.lua\n", read) + functions
	paths, err := filepath.Glob("*.lua")
	must(t, err)
	for _, path := range paths {
		bytes, err := os.ReadFile(path)
		must(t, err)
		text := string(bytes)
		switch {
		case path == "read.lua" || path == "prelude.lua" || path == "functions.lua":
			continue
		case strings.Contains(text, "--@include prelude.lua\n"):
			text = shared + strings.ReplaceAll(text, "--@include read.lua\n", read)
		}
		if names := hidden(text); len(names) > 0 {
			t.Errorf("%s: %q hide others", path, names)
		}
	}
}

var (
	luaNoise = regexp.MustCompile(`--[^\n]*|'[^'\n]*'`)
	luaWord  = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*|[^\sA-Za-z_]`)
)

// hidden returns the names of locals, parameters and loop variables of a Lua text that hide others.
func hidden(text string) (names []string) {
	words := luaWord.FindAllString(luaNoise.ReplaceAllString(text, " "), -1)
	blocks := [][]string{{}}
	declare := func(name string) {
		if name != "_" && slices.Contains(slices.Concat(blocks...), name) {
			names = append(names, name)
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], name)
	}
	// list declares the names from words[i] on, with commas between, and returns where they end.
	list := func(i int) int {
		for ; luaWord.MatchString(words[i]) && words[i] != ")" && words[i] != "=" && words[i] != "in"; i++ {
			if words[i] == "," {
				continue
			}
			if declare(words[i]); words[i+1] != "," {
				return i + 1
			}
		}
		return i
	}
	open := func() { blocks = append(blocks, nil) }
	shut := func() { blocks = blocks[:len(blocks)-1] }
	loop := false // `do` belongs to a for or while
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "local":
			if words[i+1] == "function" {
				declare(words[i+2])
				open()
				i = list(i+4) - 1
			} else {
				i = list(i+1) - 1
			}
		case "function":
			open()
			for words[i] != "(" {
				i++
			}
			i = list(i+1) - 1
		case "for":
			open()
			i, loop = list(i+1)-1, true
		case "while":
			open()
			loop = true
		case "do":
			if !loop {
				open()
			}
			loop = false
		case "then", "repeat":
			open()
		case "elseif", "end", "until":
			shut()
		case "else":
			shut()
			open()
		}
	}
	return names
}
