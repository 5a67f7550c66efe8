package command

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestKeysAndWhatIsDoneToThem has the answers of a Redis 7.0 to COMMAND
// GETKEYSANDFLAGS. Commands that are not in the table yet count as well: what
// is known of their keys does not depend on their handlers.
func TestKeysAndWhatIsDoneToThem(t *testing.T) {
	for call, want := range map[string]string{
		"set k v":           "k OW update",
		"set k v EX 10 GET": "k RW access update",
		"sort a BY x LIMIT 0 1 GET y STORE d STORE e": "a RO access, e OW update",
		"sort a STORE d":                          "a RO access, d OW update",
		"sort a LIMIT STORE x":                    "a RO access",
		"sort_ro a GET b":                         "a RO access",
		"bitfield k GET u8 0":                     "k RO access",
		"bitfield k GET u8 0 SET u8 0 1":          "k RW access update",
		"bitfield k OVERFLOW WRAP GET u8 0":       "k RO access",
		"bitfield k":                              "k RO access",
		"migrate h 1 k 0 10":                      "k RW access delete",
		"migrate h 1  0 10 AUTH KEYS KEYS a b":    "a RW access delete, b RW access delete",
		"migrate h 1  0 10 AUTH2 u KEYS KEYS a b": "a RW access delete, b RW access delete",
		"xread COUNT 1 STREAMS a b 1 2":           "a RO access, b RO access",
		"xread STREAMS a b c":                     "a RO access",
		"georadius k 1 2 3 m STORE d STOREDIST e": "k RO access, d OW update, e OW update",
		"zunionstore d 2 a b":                     "d OW update, a RO access, b RO access",
		"zunion 0 a":                              "",
		"zunion x a":                              "",
		"eval s 1 a b":                            "a RW access update",
		"eval s 0":                                "",
		"blpop a b 0":                             "a RW access delete, b RW access delete",
		"mset a 1 b 2":                            "a OW update, b OW update",
		"ssubscribe a":                            "",
	} {
		var args [][]byte
		for _, word := range strings.Split(call, " ") {
			args = append(args, []byte(word))
		}
		table := NewTable([]Spec{{Name: string(args[0])}})
		var got []string
		for _, use := range table.All()[0].KeyUses(args) {
			got = append(got, fmt.Sprintf("%s %s", args[use.Position], strings.Join(use.Flags.Names(), " ")))
		}
		if joined := strings.Join(got, ", "); joined != want {
			t.Errorf("%s: got %q, want %q", call, joined, want)
		}
	}
}

// TestKeysOfAnyCallAreAmongItsArguments: access control looks at every call,
// whatever its arguments are.
func TestKeysOfAnyCallAreAmongItsArguments(t *testing.T) {
	var names []string
	for name := range facts {
		if !strings.Contains(name, "|") {
			names = append(names, name)
		}
	}
	word := rapid.SampledFrom([]string{
		"k", "0", "1", "2", "-1", "9223372036854775807", "STREAMS", "KEYS", "STORE", "STOREDIST", "GET", "SET", "AUTH2", "LIMIT", "",
	})
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		args := [][]byte{[]byte(name)}
		for _, w := range rapid.SliceOfN(word, 1, 9).Draw(t, "args") {
			args = append(args, []byte(w))
		}
		for _, use := range NewTable([]Spec{{Name: name}}).All()[0].KeyUses(args) {
			if use.Position < 1 || use.Position >= len(args) {
				t.Fatalf("position %d", use.Position)
			}
		}
	})
}

// TestEveryFactIsUnderstood: a word of the table of facts that nobody knows
// would be passed over.
func TestEveryFactIsUnderstood(t *testing.T) {
	for name, f := range facts {
		for _, spec := range strings.Split(f.keys, "; ") {
			rule, _, _ := strings.Cut(spec, " | ")
			words := strings.Fields(rule)
			if len(words) > 0 && len(parseKeyFlags(rule).Names()) != len(words)-1 {
				t.Errorf("%s: %q", name, rule)
			}
		}
		for _, category := range strings.Fields(f.categories) {
			if _, ok := CategoryNamed(category[1:]); !ok {
				t.Errorf("%s: %q", name, category)
			}
		}
	}
}
