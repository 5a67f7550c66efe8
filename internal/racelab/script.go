package racelab

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	"encoding/hex"
	"regexp"
	"strings"
)

// headline is how scripts with a name begin.
var headline = regexp.MustCompile(`^\s*-- (\w+): `)

// learnScripts notes the names of the scripts whose texts are sent.
func (w *world) learnScripts(commands [][][]byte) {
	for _, command := range commands {
		if strings.EqualFold(string(command[0]), "eval") {
			if name := headline.FindSubmatch(command[1]); name != nil {
				w.names[digestOf(string(command[1]))] = string(name[1])
			}
		}
	}
}

// mutated is what is run in place of commands: the same, unless a test has put
// other scripts in the place of the algorithm's.
func (w *world) mutated(commands [][][]byte) [][][]byte {
	if w.algorithm.mutate == nil {
		return commands
	}
	for _, command := range commands {
		text := string(command[1])
		switch strings.ToLower(string(command[0])) {
		case "eval":
			mutant := w.algorithm.mutate(text)
			w.mutants[digestOf(text)] = digestOf(mutant)
			command[1] = []byte(mutant)
		case "evalsha":
			if mutant, known := w.mutants[text]; known {
				command[1] = []byte(mutant)
			}
		}
	}
	return commands
}

func digestOf(script string) string {
	sum := sha1.Sum([]byte(script)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
