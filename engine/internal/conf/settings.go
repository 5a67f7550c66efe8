package conf

import (
	"fmt"
	"slices"
	"strings"
)

// Settings are the values of all parameters.
type Settings struct {
	values   []value
	byName   map[string]int
	onChange map[int][]func() error

	// Read from a file or the command line, in order; see file.go.
	users   [][]string
	ignored []string
	saved   bool // a save directive has been read: the next one adds to it
	given   map[int]bool
}

type value struct {
	param  *Param
	text   string
	number int64
}

// shown is the value as CONFIG GET writes it.
func (v *value) shown() string {
	if v.param.show == nil {
		return v.text
	}
	return v.param.show(v.text)
}

// New returns the defaults.
func New() *Settings {
	s := &Settings{
		values: make([]value, len(parameters)), byName: make(map[string]int, 2*len(parameters)),
		onChange: map[int][]func() error{}, given: map[int]bool{},
	}
	for i := range parameters {
		p := &parameters[i]
		text, number, err := p.read(p.Default, "")
		if err != nil && p.Default != "" {
			panic(fmt.Sprintf("conf: %s refuses its default: %v", p.Name, err))
		}
		s.values[i] = value{p, text, number}
		s.byName[p.Name] = i
		if p.Alias != "" {
			s.byName[p.Alias] = i
		}
	}
	return s
}

// lookup finds a parameter of the table that the engine itself asks for.
func (s *Settings) lookup(name string) int {
	i, ok := s.byName[name]
	if !ok {
		panic("conf: there is no parameter " + name)
	}
	return i
}

// Text is a value as CONFIG GET writes it.
func (s *Settings) Text(name string) string { return s.values[s.lookup(name)].text }

// Int is a number, in bytes if it is a size; a percentage is negative.
func (s *Settings) Int(name string) int64 { return s.values[s.lookup(name)].number }

// Bool is a value that is yes or no.
func (s *Settings) Bool(name string) bool { return s.values[s.lookup(name)].number != 0 }

// Limits are the limits of client-output-buffer-limit, by class.
func (s *Settings) Limits() [3]Limit {
	limits, _ := ParseLimits(s.Text("client-output-buffer-limit")) // it was read before
	return limits
}

// IsSecret reports whether the value of a parameter, by any of its names, must not show
// in logs.
func (s *Settings) IsSecret(name string) bool {
	i, ok := s.byName[strings.ToLower(name)]
	return ok && s.values[i].param.Flags&Secret != 0
}

// OnChange has apply called after each change of a parameter by CONFIG SET. An
// error refuses the change: the value is what it was, and apply is called again
// with it. It must not fail for a value that it has accepted before.
func (s *Settings) OnChange(name string, apply func() error) {
	i := s.lookup(name)
	s.onChange[i] = append(s.onChange[i], apply)
}

// Overrule gives a parameter a value that the engine has been told otherwise
// than by its configuration, such as the port on which it listens. The value
// must be a possible one.
func (s *Settings) Overrule(name, text string) {
	if err := s.assign(s.lookup(name), text); err != nil {
		panic(fmt.Sprintf("conf: %s: %v", name, err))
	}
}

func (s *Settings) assign(i int, text string) error {
	v := &s.values[i]
	read, number, err := v.param.read(text, v.text)
	if err != nil {
		return err
	}
	v.text, v.number = read, number
	return nil
}

// Pair is a parameter and its value.
type Pair struct{ Name, Value string }

// Get returns what matches any of the patterns, by name. A parameter that is
// asked for by its name is called as it was in the question.
func (s *Settings) Get(patterns []string, match func(pattern, name string) bool) []Pair {
	found := map[string]string{}
	for _, pattern := range patterns {
		if !strings.ContainsAny(pattern, "[*?") {
			i, ok := s.byName[strings.ToLower(pattern)]
			if _, twice := lookupFold(found, pattern); ok && !twice {
				found[pattern] = s.values[i].shown()
			}
			continue
		}
		for name, i := range s.byName {
			if _, twice := lookupFold(found, name); !twice && s.values[i].param.Flags&Hidden == 0 && match(pattern, name) {
				found[name] = s.values[i].shown()
			}
		}
	}
	pairs := make([]Pair, 0, len(found))
	for name, text := range found {
		pairs = append(pairs, Pair{name, text})
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	return pairs
}

func lookupFold(found map[string]string, name string) (string, bool) {
	for known, text := range found {
		if strings.EqualFold(known, name) {
			return text, true
		}
	}
	return "", false
}

// Set changes parameters, all or none, and applies them. The error is the text
// of CONFIG SET's reply after ERR.
func (s *Settings) Set(pairs []Pair) error {
	indexes, err := s.settable(pairs)
	if err != nil {
		return err
	}
	before := make([]value, len(indexes))
	for n, i := range indexes {
		before[n] = s.values[i]
	}
	restore := func() {
		for n, i := range indexes {
			s.values[i] = before[n]
		}
	}
	for n, i := range indexes {
		if err := s.change(i, pairs[n].Value); err != nil {
			restore()
			return refused(strings.ToLower(pairs[n].Name), err)
		}
	}
	for n, i := range indexes {
		if err := s.applyOne(i); err != nil {
			restore()
			for _, i := range indexes[:n+1] {
				_ = s.applyOne(i) // it was accepted before
			}
			return refused(strings.ToLower(pairs[n].Name), err)
		}
	}
	return nil
}

// change assigns a value if its parameter's role allows it.
func (s *Settings) change(i int, text string) error {
	before := s.values[i]
	if err := s.assign(i, text); err != nil {
		return err
	}
	if role := before.param.Role; role != Effective && role != Idle && s.values[i].text != before.text {
		return before.param.whyNot()
	}
	return nil
}

func (s *Settings) applyOne(i int) error {
	for _, apply := range s.onChange[i] {
		if err := apply(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Param) whyNot() error {
	if p.Role == AtStart {
		return Error("this engine takes it only when it starts: from its configuration file or command line")
	}
	return Error("it means nothing in this engine, so it can only be set to the value that it has")
}

// settable finds the parameters, and refuses what can be refused before any
// value is looked at. The two names of one parameter may both be given.
func (s *Settings) settable(pairs []Pair) ([]int, error) {
	indexes := make([]int, len(pairs))
	var failed error
	for n, pair := range pairs {
		i, ok := s.byName[strings.ToLower(pair.Name)]
		if failed != nil {
			break
		}
		if !ok {
			return nil, Error(fmt.Sprintf("Unknown option or number of arguments for CONFIG SET - '%.128s'", pair.Name))
		}
		indexes[n] = i
		flags := s.values[i].param.Flags
		switch {
		case flags&Immutable != 0:
			failed = refused(pair.Name, Error("can't set immutable config"))
		case flags&Protected != 0:
			failed = refused(pair.Name, Error("can't set protected config"))
		case slices.ContainsFunc(pairs[:n], func(p Pair) bool { return strings.EqualFold(p.Name, pair.Name) }):
			failed = refused(pair.Name, Error("duplicate parameter"))
		}
	}
	return indexes, failed
}

func refused(name string, why error) error {
	return Error(fmt.Sprintf("CONFIG SET failed (possibly related to argument '%s') - %v", name, why))
}
