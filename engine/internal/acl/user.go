package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
)

// User is one who may log in. Sessions keep a pointer to their user: a change
// of rights holds for those who are logged in, too.
type User struct {
	Name string

	users        *Users
	enabled      bool
	noPassword   bool
	sanitize     sanitize
	passwords    []string // SHA-256 in lower-case hex, in the order in which they were given
	root         *selector
	extra        []*selector
	unrestricted bool
}

// sanitize says whether RESTORE of this user's payloads looks at all of them.
type sanitize uint8

const (
	sanitizeUnsaid sanitize = iota
	sanitizeAlways
	sanitizeSkip
)

func (u *Users) newUser(name string) *User {
	return &User{Name: name, users: u, root: u.newSelector()}
}

// Unrestricted reports whether the user may do everything, so that there is
// nothing to check.
func (u *User) Unrestricted() bool { return u.unrestricted }

// Open reports whether anybody is this user without a password.
func (u *User) Open() bool { return u.noPassword && u.enabled }

// NoPassword reports whether any password is right.
func (u *User) NoPassword() bool { return u.noPassword }

// Login reports whether the password is one of the user's. It takes the same
// time whatever part of it is right, and however long it is.
func (u *User) Login(password []byte) bool {
	if !u.enabled {
		return false
	}
	given, ok := []byte(hashed(password)), 0
	for _, known := range u.passwords {
		ok |= subtle.ConstantTimeCompare(given, []byte(known))
	}
	return ok == 1 || u.noPassword
}

func hashed(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

func isHash(text string) bool {
	return len(text) == 2*sha256.Size && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// clone is a copy that can be changed on trial.
func (u *User) clone() *User {
	c := *u
	c.passwords = slices.Clone(u.passwords)
	c.root = u.root.clone()
	c.extra = make([]*selector, len(u.extra))
	for i, s := range u.extra {
		c.extra[i] = s.clone()
	}
	return &c
}

// become makes u what other is, but for the name. Sessions notice at once.
func (u *User) become(other *User) {
	name := u.Name
	*u = *other
	u.Name = name
}

func (u *User) selectors() []*selector { return append([]*selector{u.root}, u.extra...) }

// Passwords are the hashes of the user's passwords.
func (u *User) Passwords() []string { return u.passwords }

// SetPassword makes this the only password, as requirepass does; an empty one
// means that none is needed.
func (u *User) SetPassword(password string) {
	u.passwords, u.noPassword = nil, password == ""
	if password != "" {
		u.passwords = []string{hashed([]byte(password))}
	}
}

// Revokes returns which of the channels and patterns that a session of this
// user listens to it may no longer hear when the user becomes next; nil if the
// change takes nothing away.
func (u *User) Revokes(next *User) func(topic string, isPattern bool) bool {
	var granted []string
	for _, s := range next.selectors() {
		if s.allChannels {
			return nil
		}
		granted = append(granted, s.channels...)
	}
	taken := false
	for _, s := range u.selectors() {
		taken = taken || s.allChannels || slices.ContainsFunc(s.channels, func(c string) bool { return !slices.Contains(granted, c) })
	}
	if !taken {
		return nil
	}
	return func(topic string, isPattern bool) bool { return !mayHear(granted, topic, isPattern) }
}
