package acl

import (
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// ruleError says why a rule is not accepted, in the words of Redis.
type ruleError string

func (e ruleError) Error() string { return string(e) }

const (
	errUnknownName ruleError = "Unknown command or category name in ACL"
	errRule        ruleError = "Syntax error"
	errAllKeys     ruleError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. " +
		"Try 'resetkeys' to start with an empty list of patterns"
	errAllChannels ruleError = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. " +
		"Try 'resetchannels' to start with an empty list of channels"
	errNoPassword ruleError = "The password you are trying to remove from the user does not exist"
	errHash       ruleError = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
	errFirstArg   ruleError = "Allowing first-arg of a subcommand is not supported"
	errDuplicate  ruleError = "Duplicate user found. A user can only be defined once in config files"
)

// apply changes the user by one rule. What it has changed before an error
// stays changed: rules are tried on a clone.
func (u *User) apply(rule string) error {
	if rule == "" {
		return nil
	}
	switch strings.ToLower(rule) {
	case "on", "off":
		u.enabled = len(rule) == len("on")
	case "skip-sanitize-payload":
		u.sanitize = sanitizeSkip
	case "sanitize-payload":
		u.sanitize = sanitizeAlways
	case "nopass", "resetpass":
		u.noPassword, u.passwords = len(rule) == len("nopass"), nil
	case "clearselectors":
		u.extra = nil
	case "reset":
		*u = *u.users.newUser(u.Name)
		u.sanitize = sanitizeAlways
	default:
		return u.applyMarked(rule)
	}
	return nil
}

// applyMarked applies a rule that is known by its first character.
func (u *User) applyMarked(rule string) error {
	switch {
	case strings.IndexByte("><#!", rule[0]) >= 0:
		return u.applyPassword(rule)
	case rule[0] == '(' && rule[len(rule)-1] == ')':
		words, _ := resp.SplitWords(rule[1 : len(rule)-1]) // what cannot be split allows nothing
		s := u.users.newSelector()
		for _, word := range words {
			if err := s.apply(word); err != nil {
				return err
			}
		}
		u.extra = append(u.extra, s)
		return nil
	}
	return u.root.apply(rule)
}

func (u *User) applyPassword(rule string) error {
	hash := rule[1:]
	switch rule[0] {
	case '>', '<':
		hash = hashed([]byte(hash))
	default:
		if !isHash(hash) {
			return errHash
		}
	}
	at := slices.Index(u.passwords, hash)
	if rule[0] == '<' || rule[0] == '!' {
		if at < 0 {
			return errNoPassword
		}
		u.passwords = slices.Delete(u.passwords, at, at+1)
		return nil
	}
	if at < 0 {
		u.passwords = append(u.passwords, hash)
	}
	u.noPassword = false
	return nil
}

// mergeSelectors joins the arguments of a selector that was given in several,
// such as "(+get" and "~a)". An opening parenthesis that is never closed is an
// error, at its argument.
func mergeSelectors(args []string) (merged []string, unmatched int, ok bool) {
	open := -1
	for i, arg := range args {
		closes := strings.HasSuffix(arg, ")")
		switch {
		case open < 0 && strings.HasPrefix(arg, "(") && !closes:
			open = i
		case open >= 0 && closes:
			merged = append(merged, strings.Join(args[open:i+1], " "))
			open = -1
		case open < 0:
			merged = append(merged, arg)
		}
	}
	return merged, open, open < 0
}

// HasSpaces reports whether a name or a pattern holds what none may: blanks
// and null bytes.
func HasSpaces(text string) bool { return strings.ContainsAny(text, " \t\n\v\f\r\x00") }
