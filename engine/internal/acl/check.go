package acl

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// Denial is why a user may not do something. Where several selectors deny, the
// largest counts.
type Denial uint8

// The reasons for a denial.
const (
	Allowed Denial = iota
	DeniedCommand
	DeniedKey
	DeniedAuth // a login, in ACL LOG
	DeniedChannel
)

// Check reports whether the user may make a call, and if not, why, and the
// position of the argument that may not be used. It costs an unrestricted user
// one test; another one the matching of each key with each pattern.
func (u *User) Check(spec *command.Spec, args [][]byte) (why Denial, position int) {
	if u.unrestricted {
		return Allowed, 0
	}
	call := call{spec: spec, args: args}
	why = DeniedCommand
	for _, s := range u.selectors() {
		denial, at := s.check(&call)
		if denial == Allowed {
			return Allowed, 0
		}
		if denial > why || denial == why && at > position {
			why, position = denial, at
		}
	}
	return why, position
}

// ChecksReadAll reports whether one selector allows both the call and reading
// any key, as SORT with BY or GET needs it.
func (u *User) ChecksReadAll(spec *command.Spec, args [][]byte) bool {
	if u.unrestricted {
		return true
	}
	call := call{spec: spec, args: args}
	for _, s := range u.selectors() {
		if denial, _ := s.check(&call); denial == Allowed && s.readsAll() {
			return true
		}
	}
	return false
}

func (s *selector) readsAll() bool {
	for _, k := range s.keys {
		if k.pattern == "*" && k.access&read != 0 {
			return true
		}
	}
	return s.allKeys
}

// call is a call that is being checked; its keys are looked for once for all
// selectors.
type call struct {
	spec  *command.Spec
	args  [][]byte
	keys  []command.KeyUse
	found bool
}

func (c *call) keyUses() []command.KeyUse {
	if !c.found {
		c.keys, c.found = c.spec.KeyUses(c.args), true
	}
	return c.keys
}

func (s *selector) check(c *call) (why Denial, position int) {
	if !s.mayRun(c) {
		return DeniedCommand, 0
	}
	if !s.allKeys && c.spec.HasKeys() {
		for _, use := range c.keyUses() {
			if !s.mayUse(c.args[use.Position], use.Flags) {
				return DeniedKey, use.Position
			}
		}
	}
	if !s.allChannels {
		first, last, isPattern := channelsOf(c.spec, len(c.args))
		for i := first; i <= last; i++ {
			if !mayHear(s.channels, string(c.args[i]), isPattern) {
				return DeniedChannel, i
			}
		}
	}
	return Allowed, 0
}

func (s *selector) mayRun(c *call) bool {
	number := c.spec.Number()
	if s.allCommands || c.spec.Flags&command.NoAuth != 0 || s.has(number) {
		return true
	}
	if len(c.args) < 2 {
		return false
	}
	for _, arg := range s.firstArgs[number] {
		if strings.EqualFold(arg, string(c.args[1])) {
			return true
		}
	}
	return false
}

// mayUse reports whether a key may be used so. Using it without looking at its
// value or changing it needs a pattern of any kind.
func (s *selector) mayUse(key []byte, flags command.KeyFlags) bool {
	var needs access
	if flags&command.KeyAccess != 0 {
		needs |= read
	}
	if flags&(command.KeyInsert|command.KeyDelete|command.KeyUpdate) != 0 {
		needs |= write
	}
	for _, k := range s.keys {
		if k.access&needs == needs && command.Glob([]byte(k.pattern), key, false) {
			return true
		}
	}
	return false
}

// channelsOf says which arguments of a call are channels that the user must be
// allowed; none if last < first. Leaving a channel is always allowed.
func channelsOf(spec *command.Spec, n int) (first, last int, isPattern bool) {
	switch spec.FullName() {
	case "subscribe", "ssubscribe":
		return 1, n - 1, false
	case "psubscribe":
		return 1, n - 1, true
	case "publish", "spublish":
		return 1, 1, false
	}
	return 1, 0, false
}

// mayHear matches a channel with patterns; a pattern must be among them as it is.
func mayHear(patterns []string, topic string, isPattern bool) bool {
	for _, p := range patterns {
		if isPattern && p == topic || !isPattern && command.Glob([]byte(p), []byte(topic), false) {
			return true
		}
	}
	return false
}
