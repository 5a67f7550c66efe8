package exec

import (
	"fmt"
	"math"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/acl"
	"github.com/signalbox-io/signalbox/engine/internal/command"
)

func (m *Machine) connectionSpecs() []command.Spec {
	const (
		open = command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy
		fast = command.Loading | command.Stale | command.Fast
	)
	return []command.Spec{
		{Name: "ping", Arity: -1, Flags: command.Fast, Group: "connection", Since: "1.0.0", Summary: "Answers PONG, or the given message.", Complexity: "O(1)", Run: ping},
		{Name: "echo", Arity: 2, Flags: fast, Group: "connection", Since: "1.0.0", Summary: "Answers with the given message.", Complexity: "O(1)", Run: echo},
		{Name: "hello", Arity: -1, Flags: open, Group: "connection", Since: "6.0.0", Summary: "Agrees on the protocol version, and may authenticate and name the connection.", Complexity: "O(1)", Run: m.hello},
		{Name: "auth", Arity: -2, Flags: open, Group: "connection", Since: "1.0.0", Summary: "Authenticates the connection.", Complexity: "O(N) for a password of N bytes", Run: m.auth},
		{Name: "select", Arity: 2, Flags: fast, Group: "connection", Since: "1.0.0", Summary: "Changes the database of the connection.", Complexity: "O(1)", Run: m.selectDB},
		{Name: "quit", Arity: -1, Flags: open, Group: "connection", Since: "1.0.0", Summary: "Closes the connection.", Complexity: "O(1)", Run: quit},
		{Name: "reset", Arity: 1, Flags: open, Group: "connection", Since: "6.2.0", Summary: "Puts the connection back into its first state.", Complexity: "O(1)", Run: m.reset},
	}
}

func ping(c *command.Ctx) error {
	if len(c.Args) > 2 {
		return command.Error("ERR wrong number of arguments for 'ping' command")
	}
	subscribed := session(c).Subscriber() && c.Out.Proto != 3
	switch {
	case subscribed:
		c.Out.Array(2)
		c.Out.BulkString("pong")
		if len(c.Args) == 2 {
			c.Out.Bulk(c.Args[1])
		} else {
			c.Out.BulkString("")
		}
	case len(c.Args) == 2:
		c.Out.Bulk(c.Args[1])
	default:
		c.Out.SimpleString("PONG")
	}
	return nil
}

func echo(c *command.Ctx) error {
	c.Out.Bulk(c.Args[1])
	return nil
}

const errWrongPass command.Error = "WRONGPASS invalid username-password pair or user is disabled."

// login makes a user of the session. A refusal is noted in the log, under the
// word by which it was asked for.
func (m *Machine) login(s *Session, word, name, password []byte) error {
	user, ok := m.users.Lookup(string(name))
	if !ok || !user.Login(password) {
		context := acl.AtTopLevel
		if s.transaction != nil || m.executing {
			context = acl.InMulti
		}
		m.logDenial(s, acl.DeniedAuth, context, string(word), string(name))
		return errWrongPass
	}
	s.user, s.authenticated = user, true
	return nil
}

func (m *Machine) auth(c *command.Ctx) error {
	user, password := []byte(acl.Default), c.Args[1]
	switch {
	case len(c.Args) > 3:
		return command.ErrSyntax
	case len(c.Args) == 3:
		user, password = c.Args[1], c.Args[2]
	case m.users.Default().NoPassword():
		return command.Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	if err := m.login(session(c), c.Args[0], user, password); err != nil {
		return err
	}
	c.Out.SimpleString("OK")
	return nil
}

// greeting is the options of HELLO.
type greeting struct {
	proto          int
	user, password []byte
	name           []byte
}

func parseHello(args [][]byte) (greeting, error) {
	var g greeting
	if len(args) > 1 {
		proto, ok := command.ParseInt(args[1])
		if !ok {
			return g, command.Error("ERR Protocol version is not an integer or out of range")
		}
		if proto != 2 && proto != 3 {
			return g, command.Error("NOPROTO unsupported protocol version")
		}
		g.proto = int(proto)
	}
	for i := 2; i < len(args); {
		left := len(args) - i - 1
		switch {
		case command.Is(args[i], "AUTH") && left >= 2:
			g.user, g.password = args[i+1], args[i+2]
			i += 3
		case command.Is(args[i], "SETNAME") && left >= 1:
			g.name = args[i+1]
			i += 2
		default:
			return g, command.Error(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", clip(args[i])))
		}
	}
	return g, nil
}

func (m *Machine) hello(c *command.Ctx) error {
	s := session(c)
	g, err := parseHello(c.Args)
	if err != nil {
		return err
	}
	if g.user != nil {
		if err := m.login(s, c.Args[0], g.user, g.password); err != nil {
			return err
		}
	}
	if !s.Authenticated() {
		return command.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	if g.name != nil {
		if err := s.setName(g.name); err != nil {
			return err
		}
	}
	if g.proto != 0 {
		c.Out.Proto = g.proto
	}
	proto := max(c.Out.Proto, 2)
	c.Out.Map(7)
	for _, field := range [][2]string{{"server", "redis"}, {"version", RedisVersion}} {
		c.Out.BulkString(field[0])
		c.Out.BulkString(field[1])
	}
	c.Out.BulkString("proto")
	c.Out.Int(int64(proto))
	c.Out.BulkString("id")
	c.Out.Int(s.ID)
	c.Out.BulkString("mode")
	c.Out.BulkString("standalone")
	c.Out.BulkString("role")
	c.Out.BulkString(m.roleName())
	c.Out.BulkString("modules")
	c.Out.Array(0)
	return nil
}

func (m *Machine) selectDB(c *command.Ctx) error {
	index, ok := command.ParseInt(c.Args[1])
	if !ok {
		return command.ErrNotInteger
	}
	if index < math.MinInt32 || index > math.MaxInt32 {
		return command.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	}
	db := m.space.DB(int(index))
	if db == nil {
		return command.Error("ERR DB index is out of range")
	}
	session(c).db = db
	c.Out.SimpleString("OK")
	return nil
}

func quit(c *command.Ctx) error {
	session(c).closing = true
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) reset(c *command.Ctx) error {
	s := session(c)
	s.transaction = nil
	s.watch.Clear()
	m.broker.leaveAll(s)
	m.untrack(s)
	m.unmonitor(s)
	s.db = m.space.DB(0)
	s.name = ""
	s.noEvict, s.noTouch = false, false
	s.silence = silence{}
	s.user, s.authenticated = m.users.Default(), m.users.Default().Open()
	c.Out.Proto = 2
	s.heard(c.Out).SimpleString("RESET")
	return nil
}

// setName gives the connection a name: printable, without spaces; "" is none.
func (s *Session) setName(name []byte) error {
	if err := printable("Client names", name); err != nil {
		return err
	}
	s.name = string(name)
	return nil
}

func printable(what string, b []byte) error {
	if strings.ContainsFunc(string(b), func(r rune) bool { return r < '!' || r > '~' }) {
		return command.Error("ERR " + what + " cannot contain spaces, newlines or special characters.")
	}
	return nil
}
