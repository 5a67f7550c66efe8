package acl

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// Rights are put into rules by a method that has a fixed result for each set
// of commands. Start from all commands or from none; then take, again and
// again, the category of which most is still missing and least would be wrong;
// then correct single commands. The rules are applied to a trial selector as
// they are found, so that what is left to say is always known.

// Flags are the user's flags, as ACL GETUSER names them.
func (u *User) Flags() []string {
	var flags []string
	for _, f := range []struct {
		set  bool
		name string
	}{
		{u.enabled, "on"},
		{!u.enabled, "off"},
		{u.noPassword, "nopass"},
		{u.sanitize == sanitizeSkip, "skip-sanitize-payload"},
		{u.sanitize == sanitizeAlways, "sanitize-payload"},
	} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// Describe is the user's line in ACL LIST and in an ACL file: rules that make
// this user again.
func (u *User) Describe() string {
	words := append([]string{"user", u.Name}, u.Flags()...)
	for _, hash := range u.passwords {
		words = append(words, "#"+hash)
	}
	words = append(words, u.root.describe())
	for _, s := range u.extra {
		words = append(words, "("+s.describe()+")")
	}
	return strings.Join(words, " ")
}

// Rights are the rules of one selector, as ACL GETUSER shows them.
type Rights struct{ Commands, Keys, Channels string }

// Rights describes the root selector and the others.
func (u *User) Rights() (root Rights, others []Rights) {
	for _, s := range u.extra {
		others = append(others, s.rights())
	}
	return u.root.rights(), others
}

func (s *selector) rights() Rights {
	return Rights{strings.Join(s.commandRules(), " "), strings.Join(s.keyRules(), " "), strings.Join(s.channelRules(), " ")}
}

func (s *selector) describe() string {
	words := s.keyRules()
	if !s.allChannels {
		words = append(words, "resetchannels")
	}
	words = append(words, s.channelRules()...)
	return strings.Join(append(words, s.commandRules()...), " ")
}

func (s *selector) keyRules() []string {
	if s.allKeys {
		return []string{"~*"}
	}
	rules := make([]string, len(s.keys))
	for i, k := range s.keys {
		rules[i] = map[access]string{read: "%R~", write: "%W~", read | write: "~"}[k.access] + k.pattern
	}
	return rules
}

func (s *selector) channelRules() []string {
	if s.allChannels {
		return []string{"&*"}
	}
	rules := make([]string, len(s.channels))
	for i, c := range s.channels {
		rules[i] = "&" + c
	}
	return rules
}

func (s *selector) commandRules() []string {
	trial := &selector{table: s.table, commands: make([]uint64, len(s.commands))}
	trial.setAll(s.future)
	rules := []string{"-@all"}
	if s.future {
		rules[0] = "+@all"
	}
	sign := map[bool]string{true: "-@", false: "+@"}[s.future]
	for _, category := range s.bestCategories() {
		name := command.CategoryNames[category]
		trial.changeCategory(1<<category, !s.future)
		rules = append(rules, sign+name)
	}
	for _, spec := range s.table.ByName() {
		rules = s.correct(rules, trial, spec)
	}
	return rules
}

// bestCategories lists the categories by which most of the rights are said,
// the best first.
func (s *selector) bestCategories() (chosen []int) {
	left := s.clone()
	applied := map[int]bool{}
	for {
		best, fewestWrong, mostRight := -1, 0, 0
		for i := range command.CategoryNames {
			if applied[i] {
				continue
			}
			right, wrong := left.count(1<<i, !s.future)
			if right > wrong && (best < 0 || wrong < fewestWrong || wrong == fewestWrong && right > mostRight) {
				best, fewestWrong, mostRight = i, wrong, right
			}
		}
		if best < 0 {
			return chosen
		}
		left.changeCategory(1<<best, s.future)
		applied[best] = true
		chosen = append(chosen, best)
	}
}

// count counts the commands of a category that are allowed, or not, as wanted.
func (s *selector) count(category command.Categories, wanted bool) (right, wrong int) {
	s.table.Each(func(spec *command.Spec) {
		switch {
		case spec.Categories&category == 0:
		case s.has(spec.Number()) == wanted:
			right++
		default:
			wrong++
		}
	})
	return right, wrong
}

func (s *selector) changeCategory(category command.Categories, allow bool) {
	s.table.Each(func(spec *command.Spec) {
		if spec.Categories&category != 0 {
			s.change(spec, allow)
		}
	})
}

// correct appends the rules for one command that trial has otherwise, and for
// its subcommands.
func (s *selector) correct(rules []string, trial *selector, spec *command.Spec) []string {
	allowed := s.has(spec.Number())
	if allowed != trial.has(spec.Number()) {
		rules = append(rules, map[bool]string{true: "+", false: "-"}[allowed]+spec.FullName())
		trial.change(spec, allowed)
	}
	for i := range spec.Sub {
		rules = s.correct(rules, trial, &spec.Sub[i])
	}
	if !allowed {
		for _, arg := range s.firstArgs[spec.Number()] {
			rules = append(rules, "+"+spec.FullName()+"|"+arg)
		}
	}
	return rules
}
