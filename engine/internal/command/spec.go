package command

import (
	"slices"
	"strings"
)

// Flags say how a command may be used. Their names are those that COMMAND
// INFO reports.
type Flags uint32

// The flags, in the order in which COMMAND INFO lists them.
const (
	Write Flags = 1 << iota
	ReadOnly
	DenyOOM
	Admin
	PubSub
	NoScript
	Blocking
	Loading
	Stale
	SkipMonitor
	SkipSlowlog
	Fast
	NoAuth // may be called before AUTH
	AllowBusy
	MovableKeys
	NoAsyncLoading  // may not be called while a replica loads
	NoMulti         // may not be queued in a transaction
	NoMandatoryKeys // finding no keys in a call is no error
	Protected       // needs enable-...-command; COMMAND INFO does not tell
)

var flagNames = []string{
	"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking", "loading", "stale",
	"skip_monitor", "skip_slowlog", "fast", "no_auth", "allow_busy", "movablekeys", "no_async_loading", "no_multi", "no_mandatory_keys",
}

// Names lists the names of the flags that are set.
func (f Flags) Names() []string {
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Keys says where a command's keys are among its arguments: the first and the
// last position (negative: from the end) and the step between them. The zero
// value means no keys.
type Keys struct{ First, Last, Step int }

// Key is one key at position i.
func Key(i int) Keys { return Keys{i, i, 1} }

// KeysFrom is all arguments from position i to the end.
func KeysFrom(i int) Keys { return Keys{i, -1, 1} }

// Spec is everything there is to know of a command.
type Spec struct {
	Name string // lower case
	// Arity is the number of arguments, the name included; -n means n or more.
	Arity int
	Flags Flags
	Keys  Keys
	// FindKeys returns the positions of the keys of a call for commands whose
	// keys cannot be described by Keys alone. It must cope with any arguments
	// that satisfy Arity, and returns nil when they make no sense.
	FindKeys   func(args [][]byte) []int
	Group      string // "string", "list", ... as COMMAND DOCS names it
	Since      string
	Summary    string
	Complexity string
	// Sub are the subcommands of a container command such as CLIENT. Their
	// names are the bare words; their arity counts the container's name too.
	Sub []Spec
	Run func(c *Ctx) error

	// The rest of COMMAND INFO, filled in by NewTable: see facts.go.
	KeySpecs   []KeySpec
	Tips       []string
	Categories Categories

	subs   map[string]*Spec
	parent *Spec
	number int
}

// FullName is the name with its container's, as Redis writes it: client|id.
func (s *Spec) FullName() string {
	if s.parent != nil {
		return s.parent.Name + "|" + s.Name
	}
	return s.Name
}

// Container is the name of the command that this is, or is a subcommand of.
func (s *Spec) Container() string {
	if s.parent != nil {
		return s.parent.Name
	}
	return s.Name
}

// MayReplicate reports whether a call may reach replicas though it is not a
// write: a pause of writes holds it up too.
func (s *Spec) MayReplicate() bool {
	switch s.Name {
	case "eval", "evalsha", "fcall", "publish", "spublish", "pfcount":
		return true
	}
	return false
}

// Number tells the records of one table apart, subcommands included: they count
// up from 0 without gaps, so that a slice can hold something about each.
func (s *Spec) Number() int { return s.number }

// AcceptsArity reports whether n arguments, the name included, are possible.
func (s *Spec) AcceptsArity(n int) bool {
	if s.Arity >= 0 {
		return n == s.Arity
	}
	return n >= -s.Arity
}

// Subcommand finds a subcommand by its name in any case.
func (s *Spec) Subcommand(name []byte) (*Spec, bool) { return lookup(s.subs, name) }

// KeyPositions returns where the keys of a call are among its arguments.
func (s *Spec) KeyPositions(args [][]byte) []int {
	if s.FindKeys != nil {
		return s.FindKeys(args)
	}
	if s.Keys.First == 0 {
		return nil
	}
	last := s.Keys.Last
	if last < 0 {
		last += len(args)
	}
	var positions []int
	for i := s.Keys.First; i <= last && i < len(args); i += s.Keys.Step {
		positions = append(positions, i)
	}
	return positions
}

// CountedKeys is FindKeys for commands that give the number of their keys at
// position count and the keys right after it; also are further fixed key
// positions, such as a destination.
func CountedKeys(count int, also ...int) func(args [][]byte) []int {
	return func(args [][]byte) []int {
		if count >= len(args) {
			return nil
		}
		n, ok := ParseInt(args[count])
		if !ok || n < 0 || n > int64(len(args)-count-1) {
			return nil
		}
		positions := append([]int(nil), also...)
		for i := range int(n) {
			positions = append(positions, count+1+i)
		}
		return positions
	}
}

// Table finds commands by name.
type Table struct {
	specs []*Spec
	count int // of all records, subcommands included
	names map[string]*Spec
}

// NewTable builds a table of the families given.
func NewTable(families ...[]Spec) *Table {
	t := &Table{names: map[string]*Spec{}}
	for _, family := range families {
		for _, spec := range family {
			s := spec
			t.number(&s)
			s.complete()
			s.index(t)
			t.specs = append(t.specs, &s)
			t.names[s.Name] = &s
		}
	}
	return t
}

func (t *Table) number(s *Spec) {
	s.number = t.count
	t.count++
}

func (s *Spec) index(t *Table) {
	if s.Sub == nil {
		return
	}
	s.Sub = slices.Clone(s.Sub) // the records are shared between tables
	s.subs = map[string]*Spec{}
	for i := range s.Sub {
		sub := &s.Sub[i]
		sub.parent = s
		sub.Group = s.Group
		s.subs[sub.Name] = sub
		t.number(sub)
		sub.complete()
	}
}

// Count is how many records there are, subcommands included; see Spec.Number.
func (t *Table) Count() int { return t.count }

// Each visits every record, subcommands included.
func (t *Table) Each(visit func(*Spec)) {
	for _, s := range t.specs {
		visit(s)
		for i := range s.Sub {
			visit(&s.Sub[i])
		}
	}
}

// ByName lists the commands by name.
func (t *Table) ByName() []*Spec {
	return slices.SortedFunc(slices.Values(t.specs), func(a, b *Spec) int { return strings.Compare(a.Name, b.Name) })
}

// LookupFull finds a command or a subcommand by its full name, such as
// client|id, in any case.
func (t *Table) LookupFull(name string) (*Spec, bool) {
	container, sub, isSub := strings.Cut(name, "|")
	spec, ok := t.Lookup([]byte(container))
	if ok && isSub {
		return spec.Subcommand([]byte(sub))
	}
	return spec, ok
}

// All lists the commands in the order of their families.
func (t *Table) All() []*Spec { return t.specs }

// Lookup finds a command by its name in any case. It does not allocate.
func (t *Table) Lookup(name []byte) (*Spec, bool) { return lookup(t.names, name) }

func lookup(names map[string]*Spec, name []byte) (*Spec, bool) {
	if s, ok := names[string(name)]; ok {
		return s, true
	}
	var buf [32]byte
	if len(name) > len(buf) {
		return nil, false
	}
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		buf[i] = b
	}
	s, ok := names[string(buf[:len(name)])]
	return s, ok
}

// Is reports whether arg is the option word, in any case. The word is given in
// upper case.
func Is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

// Data is the families of commands that work on data.
func Data() [][]Spec {
	return [][]Spec{
		stringSpecs, bitmapSpecs, keySpecs, dumpSpecs, expirySpecs, scanSpecs, listSpecs, blockingListSpecs,
		setSpecs, hashSpecs, sortedSetSpecs, sortedSetRangeSpecs, sortedSetStoreSpecs,
		blockingSortedSetSpecs, randomSortedSetSpecs, sortSpecs,
		streamSpecs, streamReadSpecs, streamGroupSpecs, streamInfoSpecs,
		hyperLogLogSpecs, geoSpecs, geoSearchSpecs,
	}
}
