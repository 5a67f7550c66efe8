package command

import (
	_ "embed" // for docs.txt
	"strconv"
	"strings"
)

// What Redis says of its commands in COMMAND DOCS: the words, and the
// arguments that redis-cli's hints are made of. All of it is data about Redis
// that nothing here is decided by, so it stands in one file, docs.txt, which
// is written from the replies of a running Redis:
//
//	go test ./engine -run CommandsAreDocumented -record
//
// It has all commands of Redis, those too that the table has not. A command is
// a section that begins with its full name. Lines of facts follow, a word and
// a value, quoted if it ends with a space, and then its arguments, one a line:
// as many hyphens as it lies deep, its name, its type, and what else there is,
// in any order: @0 for a key specification, =TOKEN, since:, until: for
// deprecated, and flags. Since when a command is there, and its group, say the
// records; they also document a command that the file does not have.
//
// The file is in memory as it is; Docs only knows where its sections are, and
// a section is read when it is asked for.

//go:embed docs.txt
var docsFile string

// Docs finds the sections of the file by the full names of commands.
type Docs map[string]string

// ReadDocs finds the sections. It reads the whole file.
func ReadDocs() Docs {
	docs := Docs{}
	sections := strings.Split(docsFile, "\n\n")
	for _, section := range sections[1:] { // the first one is about the file
		name, rest, _ := strings.Cut(section, "\n")
		docs[name] = rest
	}
	return docs
}

// IsOfRedis reports whether Redis has a command or subcommand of this full name, here or not.
func IsOfRedis(fullName string) bool {
	return !strings.Contains(fullName, "\n") && strings.Contains(docsFile, "\n\n"+strings.ToLower(fullName)+"\n")
}

// Doc is what COMMAND DOCS says of one command, its subcommands aside. What is
// empty is left out of the reply.
type Doc struct {
	Summary, Since, Group, Complexity string
	Flags                             []string
	DeprecatedSince, ReplacedBy       string
	History                           []Change
	Arguments                         []Argument
}

// Change is what a version of Redis changed of a command.
type Change struct{ Version, What string }

// Argument is one argument of a command, or a group of them.
type Argument struct {
	Name, Type             string
	KeySpec                int // the index of its key specification, or -1
	HasToken               bool
	Token                  string // the word that announces it; it may be empty
	Since, DeprecatedSince string
	Flags                  []string
	Arguments              []Argument // of a block or oneof
}

// Of documents a command: by the file or, if that does not have it, by its record.
func (d Docs) Of(s *Spec) Doc {
	section, ok := d[s.FullName()]
	if !ok {
		return Doc{Summary: s.Summary, Since: s.Since, Group: s.Group, Complexity: s.Complexity}
	}
	doc := Doc{Since: s.Since, Group: s.Group}
	lines := strings.Split(strings.TrimSuffix(section, "\n"), "\n")
	for len(lines) > 0 && !strings.HasPrefix(lines[0], "-") {
		doc.addFact(lines[0])
		lines = lines[1:]
	}
	doc.Arguments, _ = parseArguments(lines, 1)
	return doc
}

func (d *Doc) addFact(line string) {
	name, value, _ := strings.Cut(line, " ")
	if strings.HasPrefix(value, `"`) {
		if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
	}
	switch name {
	case "summary":
		d.Summary = value
	case "complexity":
		d.Complexity = value
	case "flag":
		d.Flags = append(d.Flags, value)
	case "until":
		d.DeprecatedSince = value
	case "instead":
		d.ReplacedBy = value
	case "history":
		version, what, _ := strings.Cut(value, " ")
		d.History = append(d.History, Change{version, what})
	}
}

// parseArguments reads arguments of one depth, and what is within them. It
// stops at the first line of less depth and returns what is left.
func parseArguments(lines []string, depth int) (list []Argument, left []string) {
	for len(lines) > 0 {
		hyphens, rest, _ := strings.Cut(lines[0], " ")
		if len(hyphens) < depth {
			break
		}
		a := parseArgument(rest)
		a.Arguments, lines = parseArguments(lines[1:], depth+1)
		list = append(list, a)
	}
	return list, lines
}

func parseArgument(line string) Argument {
	name, rest, _ := strings.Cut(line, " ")
	kind, rest, _ := strings.Cut(rest, " ")
	a := Argument{Name: name, Type: kind, KeySpec: -1}
	for word := range strings.FieldsSeq(rest) {
		if token, ok := strings.CutPrefix(word, "="); ok {
			a.Token, a.HasToken = token, true
		} else if index, ok := strings.CutPrefix(word, "@"); ok {
			a.KeySpec = mustNumber(index)
		} else if version, ok := strings.CutPrefix(word, "since:"); ok {
			a.Since = version
		} else if version, ok := strings.CutPrefix(word, "until:"); ok {
			a.DeprecatedSince = version
		} else {
			a.Flags = append(a.Flags, word)
		}
	}
	return a
}
