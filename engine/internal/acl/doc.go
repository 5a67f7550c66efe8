// Package acl is access control: who may log in, and which commands, keys and
// channels a user may use. It is pure: no files, no clock, no sessions.
//
// A User has flags, password hashes and selectors: the root selector, which the
// plain rules of ACL SETUSER are about, and those given in parentheses. A
// selector is a set of commands (one bit for each record of the table), of
// patterns of keys, and of patterns of channels; a call is allowed if one
// selector alone allows all of it. A user whose root selector allows everything
// is Unrestricted: one flag, which is all that the check costs him.
//
// Rules are never stored as they were written. What ACL LIST prints is made
// anew from what is allowed, by the method of Redis 7.0: the categories that
// fit best, then single commands (describe.go). So rules that mean the same
// look the same.
//
// Who owns what: Users the table of users, by name; package exec the sessions,
// which point to a User, and the ending of connections that lose their rights
// (User.Revokes says which); package command what is known of commands: their
// categories, and what they do to which keys.
//
// Files: users.go the table and its file format, user.go one user and the login,
// rules.go the language of rules, selector.go what is allowed, check.go whether
// a call is, describe.go rules from rights, log.go ACL LOG. To add a rule add a
// case to User.Apply or selector.apply, and its words to describe.go.
package acl
