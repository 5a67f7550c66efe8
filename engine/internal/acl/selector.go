package acl

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// selector is a set of permissions: commands, keys and channels.
type selector struct {
	table *command.Table

	// allCommands is true as long as no command has been taken away since
	// +@all. future also survives that: it says that rules start from +@all,
	// so that commands yet unknown are allowed.
	allCommands, future  bool
	allKeys, allChannels bool
	commands             []uint64         // one bit for each record of the table
	firstArgs            map[int][]string // +select|1: the first arguments with which a forbidden command is allowed
	keys                 []keyPattern
	channels             []string
}

// keyPattern is a pattern of keys, and what may be done to them.
type keyPattern struct {
	pattern string
	access  access
}

type access uint8

const (
	read access = 1 << iota
	write
)

func (u *Users) newSelector() *selector {
	return &selector{table: u.table, allChannels: u.AllChannels, commands: make([]uint64, u.table.Count()/64+1)}
}

func (s *selector) clone() *selector {
	c := *s
	c.commands, c.keys, c.channels = slices.Clone(s.commands), slices.Clone(s.keys), slices.Clone(s.channels)
	c.firstArgs = maps.Clone(s.firstArgs)
	for number, args := range c.firstArgs {
		c.firstArgs[number] = slices.Clone(args)
	}
	return &c
}

// apply changes the selector by one rule.
func (s *selector) apply(rule string) error {
	switch strings.ToLower(rule) {
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
	case "allcommands", "+@all":
		s.setAll(true)
	case "nocommands", "-@all":
		s.setAll(false)
	case "":
		return errRule
	default:
		return s.applyMarked(rule)
	}
	return nil
}

func (s *selector) applyMarked(rule string) error {
	switch rule[0] {
	case '~', '%':
		return s.applyKeys(rule)
	case '&':
		return s.applyChannel(rule[1:])
	case '+', '-':
		allow := rule[0] == '+'
		if name, ok := strings.CutPrefix(rule[1:], "@"); ok {
			return s.applyCategory(name, allow)
		}
		return s.applyCommand(rule[1:], allow)
	}
	return errRule
}

func (s *selector) setAll(allow bool) {
	s.allCommands, s.future, s.firstArgs = allow, allow, nil
	var word uint64
	if allow {
		word = ^word
	}
	for i := range s.commands {
		s.commands[i] = word
	}
}

func (s *selector) applyKeys(rule string) error {
	if s.allKeys {
		return errAllKeys
	}
	pattern := keyPattern{rule[1:], read | write}
	if rule[0] == '%' {
		letters, rest, _ := strings.Cut(rule[1:], "~")
		pattern = keyPattern{pattern: rest}
		for _, letter := range strings.ToUpper(letters) {
			bit := map[rune]access{'R': read, 'W': write}[letter]
			if bit == 0 || pattern.access&bit != 0 {
				return errRule
			}
			pattern.access |= bit
		}
	}
	if HasSpaces(pattern.pattern) || pattern.access == 0 {
		return errRule
	}
	at := slices.IndexFunc(s.keys, func(k keyPattern) bool { return k.pattern == pattern.pattern })
	if at < 0 {
		s.keys = append(s.keys, pattern)
		return nil
	}
	s.keys[at].access |= pattern.access
	return nil
}

func (s *selector) applyChannel(pattern string) error {
	switch {
	case s.allChannels:
		return errAllChannels
	case HasSpaces(pattern):
		return errRule
	case !slices.Contains(s.channels, pattern):
		s.channels = append(s.channels, pattern)
	}
	return nil
}

func (s *selector) applyCategory(name string, allow bool) error {
	category, ok := command.CategoryNamed(name)
	if !ok {
		return errUnknownName
	}
	s.table.Each(func(spec *command.Spec) {
		if spec.Categories&category != 0 {
			s.change(spec, allow)
		}
	})
	return nil
}

func (s *selector) applyCommand(name string, allow bool) error {
	if spec, ok := s.table.LookupFull(name); ok {
		s.change(spec, allow)
		return nil
	}
	if command.IsOfRedis(name) {
		return nil // it is not here, so the rule holds whatever it says
	}
	bar := strings.LastIndexByte(name, '|')
	if bar < 0 || !allow {
		return errUnknownName
	}
	spec, ok := s.table.LookupFull(name[:bar])
	switch {
	case !ok:
		return errUnknownName
	case strings.Contains(name[:bar], "|"):
		return errFirstArg
	case bar == len(name)-1:
		return errRule
	case spec.Sub != nil:
		return errUnknownName
	}
	s.addFirstArg(spec.Number(), name[bar+1:])
	return nil
}

func (s *selector) addFirstArg(number int, arg string) {
	if s.firstArgs == nil {
		s.firstArgs = map[int][]string{}
	}
	if !slices.ContainsFunc(s.firstArgs[number], func(a string) bool { return strings.EqualFold(a, arg) }) {
		s.firstArgs[number] = append(s.firstArgs[number], arg)
	}
}

// change allows or forbids a command with all its subcommands.
func (s *selector) change(spec *command.Spec, allow bool) {
	s.set(spec.Number(), allow)
	delete(s.firstArgs, spec.Number())
	for i := range spec.Sub {
		s.set(spec.Sub[i].Number(), allow)
	}
}

func (s *selector) set(number int, allow bool) {
	bit := uint64(1) << (number % 64)
	if allow {
		s.commands[number/64] |= bit
		return
	}
	s.commands[number/64] &^= bit
	s.allCommands = false
}

func (s *selector) has(number int) bool { return s.commands[number/64]&(1<<(number%64)) != 0 }
