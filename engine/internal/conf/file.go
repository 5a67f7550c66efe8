package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// redis.conf is lines of a directive and its arguments, quoted as an inline
// request is. Most directives are parameters; a few are not: include, user, and
// those that ask for what this engine does not have.

// File is a piece of configuration and where it comes from.
type File struct{ Path, Text string }

// FileError says which line is wrong, and why.
type FileError struct {
	Path string
	Line int
	Text string
	Why  error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %v", e.Path, e.Line, e.Text, e.Why)
}

func (e *FileError) Unwrap() error { return e.Why }

// maxIncludes bounds how deep files may include each other.
const maxIncludes = 16

// Load reads a configuration file. open returns the files that an include
// directive means, which may be a pattern.
func (s *Settings) Load(file File, open func(pattern string) ([]File, error)) error {
	return s.load(file, open, maxIncludes)
}

func (s *Settings) load(file File, open func(pattern string) ([]File, error), depth int) error {
	for i, line := range strings.Split(file.Text, "\n") {
		line = strings.Trim(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		words, ok := resp.SplitWords(line)
		if ok && len(words) == 0 {
			continue
		}
		var err error
		switch {
		case !ok:
			err = Error("Unbalanced quotes in configuration line")
		case strings.EqualFold(words[0], "include") && len(words) == 2:
			err = s.include(words[1], open, depth)
		default:
			err = s.Directive(words)
		}
		var inner *FileError
		if errors.As(err, &inner) {
			return err // it says where itself
		}
		if err != nil {
			return &FileError{file.Path, i + 1, shown(line, words), err}
		}
	}
	return nil
}

// shown is a line as an error may quote it: of a secret, only its name.
func shown(line string, words []string) string {
	if len(words) > 0 && (isSecret(words[0]) || strings.EqualFold(words[0], "user")) {
		return words[0]
	}
	return line
}

func isSecret(name string) bool {
	return slices.ContainsFunc(parameters, func(p Param) bool { return p.Flags&Secret != 0 && strings.EqualFold(name, p.Name) })
}

func (s *Settings) include(pattern string, open func(string) ([]File, error), depth int) error {
	if depth == 0 {
		return Error("the files include each other too deeply")
	}
	files, err := open(pattern)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := s.load(file, open, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// absentDirectives are directives of Redis that are no parameters, and that
// nobody may be left to believe in.
var absentDirectives = map[string]string{
	"rename-command": "commands cannot be renamed here; take them from users with ACL rules instead",
	"loadmodule":     "there are no modules here",
	"sentinel":       "sentinel directive while not in sentinel mode",
}

// oldDirectives are no more than words to Redis 7.0 itself.
var oldDirectives = []string{"list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"}

// Directive takes one directive, a line of redis.conf split into words.
func (s *Settings) Directive(words []string) error {
	name, args := strings.ToLower(words[0]), words[1:]
	if i, ok := s.byName[name]; ok {
		return s.fromFile(i, args)
	}
	if why, ok := absentDirectives[name]; ok {
		return Error(why)
	}
	switch {
	case name == "user" && len(args) == 1:
		args, _ = resp.SplitWords(args[0]) // --set user="bob on"
		fallthrough
	case name == "user" && len(args) > 0:
		s.users = append(s.users, args)
		return nil
	case slices.Contains(oldDirectives, name) && len(args) == 1:
		return nil
	}
	return Error("Bad directive or wrong number of arguments")
}

func (s *Settings) fromFile(i int, args []string) error {
	v := s.values[i]
	s.given[i] = true
	text := strings.Join(args, " ")
	switch {
	case v.param.Kind != Words && len(args) != 1, len(args) == 0:
		return Error("wrong number of arguments")
	case v.param.Kind == Words && len(args) == 1 && text != "":
		words, ok := resp.SplitWords(text)
		if !ok {
			return Error("Unbalanced quotes in configuration line")
		}
		text = strings.Join(words, " ")
	}
	if v.param.Name == "save" {
		if s.saved && text != "" {
			text = strings.TrimSpace(v.text + " " + text)
		}
		s.saved = true
	}
	if v.param.Role == Effective || v.param.Role == AtStart {
		return s.assign(i, text)
	}
	read, number, err := v.param.read(text, v.text)
	switch {
	case err != nil:
		return err
	case v.param.Flags&Binding != 0 && read != v.text:
		return Error("this engine cannot do that")
	case v.param.Role == Idle:
		s.values[i].text, s.values[i].number = read, number
	}
	if !slices.Contains(s.ignored, v.param.Name) {
		s.ignored = append(s.ignored, v.param.Name)
	}
	return nil
}

// Given reports whether a parameter was given by a file or the command line.
func (s *Settings) Given(name string) bool {
	i, ok := s.byName[name]
	return ok && s.given[i]
}

// Ignored names the parameters that were given and mean nothing here.
func (s *Settings) Ignored() []string { return s.ignored }

// Users are the words of the user directives, without the word user.
func (s *Settings) Users() [][]string { return s.users }
