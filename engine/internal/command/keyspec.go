package command

import (
	"fmt"
	"strconv"
	"strings"
)

// KeyFlags say what a command does to a key: how it reaches the object (one of
// RO, RW, OW and RM), what it does to the value (access, update, insert,
// delete), and what a reader of the specification has to know.
type KeyFlags uint16

// The flags, in the order in which COMMAND INFO lists them.
const (
	KeyRO KeyFlags = 1 << iota
	KeyRW
	KeyOW
	KeyRM
	KeyAccess
	KeyUpdate
	KeyInsert
	KeyDelete
	NotKey // a channel, which only a cluster treats as a key
	KeyIncomplete
	KeyVariableFlags // the arguments decide: see Spec.KeyUses
)

var keyFlagNames = []string{
	"RO", "RW", "OW", "RM", "access", "update", "insert", "delete", "not_key", "incomplete", "variable_flags",
}

// Names lists the names of the flags that are set.
func (f KeyFlags) Names() []string {
	var names []string
	for i, name := range keyFlagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// KeySpec is a key specification of COMMAND INFO: where some keys of a command
// begin, how far they go, and what is done to them.
type KeySpec struct {
	Flags KeyFlags
	Notes string

	// Where they begin: at position Index; with a Keyword, right after it,
	// looked for from Index on, or backwards if Index is negative. Unknown
	// means that no rule can say it.
	Index   int
	Keyword string
	Unknown bool

	// How far they go. Counted: the argument at the beginning is their number,
	// and they follow. Otherwise up to the Last one, relative to the first, or
	// to the end if negative, each Step-th; of what is left until then, they
	// are the first 1/Limit, if Limit is not 0.
	Counted           bool
	Last, Step, Limit int
}

// KeyUse is one key of a call: its position, and what the call does to it.
type KeyUse struct {
	Position int
	Flags    KeyFlags
}

// parseKeySpecs reads the notation of facts.go: specifications separated by
// semicolons, each a place, flags, and perhaps a note after a bar. A place is
// 1, 2# (the number of keys stands at 2), 1..-1 (to the end), 1..-1/2 (every
// second), STREAMS@1..-1%2 (after the word, half of them), or ? (unknown).
func parseKeySpecs(text string) []KeySpec {
	if text == "" {
		return nil
	}
	var specs []KeySpec
	for part := range strings.SplitSeq(text, "; ") {
		rule, notes, _ := strings.Cut(part, " | ")
		place, flags, _ := strings.Cut(rule, " ")
		spec := KeySpec{Notes: notes, Step: 1, Flags: parseKeyFlags(flags)}
		spec.parsePlace(place)
		specs = append(specs, spec)
	}
	return specs
}

func parseKeyFlags(text string) (flags KeyFlags) {
	for word := range strings.FieldsSeq(text) {
		for i, name := range keyFlagNames {
			if word == name {
				flags |= 1 << i
			}
		}
	}
	return flags
}

func (k *KeySpec) parsePlace(place string) {
	if place == "?" {
		k.Unknown = true
		return
	}
	if word, rest, ok := strings.Cut(place, "@"); ok {
		k.Keyword, place = word, rest
	}
	place, k.Limit = cutNumber(place, "%", 0)
	place, k.Step = cutNumber(place, "/", 1)
	place, k.Last = cutNumber(place, "..", 0)
	place, k.Counted = strings.CutSuffix(place, "#")
	k.Index = mustNumber(place)
}

func cutNumber(text, mark string, otherwise int) (before string, n int) {
	before, after, ok := strings.Cut(text, mark)
	if !ok {
		return text, otherwise
	}
	return before, mustNumber(after)
}

// mustNumber reads a number of facts.go, which the package's tests hold against
// Redis.
func mustNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("command: key specification: %v", err))
	}
	return n
}

// impliedKeySpecs describes the keys of commands whose Keys say all: the key
// of a command that only reads is accessed.
func (s *Spec) impliedKeySpecs() []KeySpec {
	if s.Keys.First == 0 {
		return nil
	}
	spec := KeySpec{Index: s.Keys.First, Step: s.Keys.Step, Flags: KeyRW | KeyAccess | KeyUpdate}
	if s.Flags&ReadOnly != 0 {
		spec.Flags = KeyRO | KeyAccess
	}
	if spec.Last = s.Keys.Last; spec.Last >= 0 {
		spec.Last -= s.Keys.First
	}
	return []KeySpec{spec}
}

// HasKeys reports whether the command works on keys at all.
func (s *Spec) HasKeys() bool {
	for i := range s.KeySpecs {
		if s.KeySpecs[i].Flags&NotKey == 0 {
			return true
		}
	}
	return false
}

// KeyUses returns the keys of a call and what it does to them, in the order
// of the key specifications. Arguments that make no sense have none: the
// command itself will say so.
func (s *Spec) KeyUses(args [][]byte) []KeyUse {
	if find, ok := variableKeys[s.FullName()]; ok {
		return find(args)
	}
	var uses []KeyUse
	for i := range s.KeySpecs {
		if s.KeySpecs[i].Flags&NotKey == 0 {
			uses = s.KeySpecs[i].appendUses(uses, args)
		}
	}
	return uses
}

func (k *KeySpec) appendUses(uses []KeyUse, args [][]byte) []KeyUse {
	first, ok := k.begin(args)
	if !ok {
		return uses
	}
	last := first + k.Last
	switch {
	case k.Counted:
		if first >= len(args) {
			return uses
		}
		n, ok := ParseInt(args[first])
		if !ok || n < 1 || n > int64(len(args)-first-1) {
			return uses
		}
		first, last = first+1, first+int(n)
	case k.Last < 0 && k.Limit > 1:
		last = first + (len(args)-first)/k.Limit + k.Last
	case k.Last < 0:
		last = len(args) + k.Last
	}
	if first >= len(args) || last >= len(args) {
		return uses
	}
	for i := first; i <= last; i += k.Step {
		uses = append(uses, KeyUse{i, k.Flags})
	}
	return uses
}

// begin is the position at which the keys of a call begin, if they do.
func (k *KeySpec) begin(args [][]byte) (int, bool) {
	if k.Keyword == "" {
		return k.Index, !k.Unknown
	}
	from, step := k.Index, 1
	if k.Index < 0 {
		from, step = len(args)+k.Index, -1
	}
	for i := from; i > 0 && i < len(args)-1; i += step {
		if Is(args[i], k.Keyword) {
			return i + 1, true
		}
	}
	return 0, false
}

// variableKeys are the commands whose keys, or whose use of them, no key
// specification can tell.
var variableKeys = map[string]func(args [][]byte) []KeyUse{
	"set": func(args [][]byte) []KeyUse {
		for _, option := range args[min(3, len(args)):] {
			if Is(option, "GET") {
				return []KeyUse{{1, KeyRW | KeyAccess | KeyUpdate}}
			}
		}
		return []KeyUse{{1, KeyOW | KeyUpdate}}
	},
	"bitfield": bitfieldKeys,
	"sort":     sortKeys,
	"sort_ro":  func([][]byte) []KeyUse { return []KeyUse{{1, KeyRO | KeyAccess}} },
	"migrate":  migrateKeys,
}

// bitfieldKeys knows a BITFIELD of GETs alone for a reader.
func bitfieldKeys(args [][]byte) []KeyUse {
	const writes = KeyRW | KeyAccess | KeyUpdate
	for i := 2; i < len(args); {
		left := len(args) - i - 1
		switch {
		case Is(args[i], "GET") && left >= 2:
			i += 3
		case (Is(args[i], "SET") || Is(args[i], "INCRBY")) && left >= 3:
			return []KeyUse{{1, writes}}
		case Is(args[i], "OVERFLOW") && left >= 1:
			i += 2
		default:
			return []KeyUse{{1, writes}}
		}
	}
	return []KeyUse{{1, KeyRO | KeyAccess}}
}

// sortKeys finds the destination after the last STORE, as SORT itself does.
func sortKeys(args [][]byte) []KeyUse {
	uses := []KeyUse{{1, KeyRO | KeyAccess}}
	store := 0
	for i := 2; i < len(args); i++ {
		left := len(args) - i - 1
		switch {
		case Is(args[i], "LIMIT") && left >= 2:
			i += 2
		case (Is(args[i], "GET") || Is(args[i], "BY")) && left >= 1:
			i++
		case Is(args[i], "STORE") && left >= 1:
			i++
			store = i
		}
	}
	if store > 0 {
		uses = append(uses, KeyUse{store, KeyOW | KeyUpdate})
	}
	return uses
}

// migrateKeys is the key at 3 or, if that is empty, what follows KEYS.
func migrateKeys(args [][]byte) []KeyUse {
	const flags = KeyRW | KeyAccess | KeyDelete
	if len(args) > 3 && len(args[3]) > 0 {
		return []KeyUse{{3, flags}}
	}
	for i := 6; i < len(args); i++ {
		switch {
		case Is(args[i], "KEYS"):
			var uses []KeyUse
			for j := i + 1; j < len(args); j++ {
				uses = append(uses, KeyUse{j, flags})
			}
			return uses
		case Is(args[i], "AUTH"):
			i++
		case Is(args[i], "AUTH2"):
			i += 2
		}
	}
	return nil
}
