package exec

import (
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

func (m *Machine) clientSpecs() []command.Spec {
	const flags = command.NoScript | command.Loading | command.Stale
	sub := func(name string, arity int, since, summary string, run func(*command.Ctx) error) command.Spec {
		return command.Spec{Name: name, Arity: arity, Flags: flags, Since: since, Summary: summary, Complexity: "O(1)", Run: run}
	}
	admin := func(s command.Spec) command.Spec {
		s.Flags |= command.Admin
		return s
	}
	return []command.Spec{{
		Name: "client", Arity: -2, Group: "connection", Since: "2.4.0", Summary: "A container for commands on client connections.",
		Complexity: "that of the subcommand",
		Sub: append(m.trackingSubcommands(),
			sub("id", 2, "5.0.0", "Answers with the connection's number.", clientID),
			sub("setname", 3, "2.6.9", "Names the connection.", clientSetName),
			sub("getname", 2, "2.6.9", "Answers with the connection's name.", clientGetName),
			sub("setinfo", 4, "7.2.0", "Says which client library is connected.", clientSetInfo),
			sub("reply", 3, "3.2.0", "Turns the replies of the connection off and on.", clientReply),
			sub("info", 2, "6.2.0", "Describes the connection.", m.clientInfo),
			admin(sub("list", -2, "2.4.0", "Describes all connections.", m.clientList)),
			admin(sub("kill", -3, "2.4.0", "Closes connections.", m.clientKill)),
			admin(sub("no-evict", 3, "7.0.0", "Exempts the connection from client eviction.", clientNoEvict)),
			sub("no-touch", 3, "7.2.0", "Makes the connection's commands leave access times alone.", clientNoTouch),
			admin(sub("pause", -3, "2.9.50", "Makes the requests of all connections wait, or those that write.", m.clientPause)),
			admin(sub("unpause", 2, "6.2.0", "Ends a pause.", m.clientUnpause)),
			admin(sub("unblock", -3, "5.0.0", "Ends the wait of a blocked connection.", m.clientUnblock)),
			clientHelp,
		),
	}}
}

func clientID(c *command.Ctx) error {
	c.Out.Int(session(c).ID)
	return nil
}

func clientSetName(c *command.Ctx) error {
	if err := session(c).setName(c.Args[2]); err != nil {
		return err
	}
	c.Out.SimpleString("OK")
	return nil
}

func clientGetName(c *command.Ctx) error {
	if name := session(c).name; name != "" {
		c.Out.BulkString(name)
		return nil
	}
	c.Out.Null()
	return nil
}

func clientSetInfo(c *command.Ctx) error {
	s := session(c)
	what, target := "lib-name", &s.libName
	switch {
	case command.Is(c.Args[2], "LIB-NAME"):
	case command.Is(c.Args[2], "LIB-VER"):
		what, target = "lib-ver", &s.libVersion
	default:
		return command.Error(fmt.Sprintf("ERR Unrecognized option '%s'", clip(c.Args[2])))
	}
	if err := printable(what, c.Args[3]); err != nil {
		return err
	}
	*target = c.Arg(3)
	c.Out.SimpleString("OK")
	return nil
}

func onOff(c *command.Ctx, flag *bool) error {
	switch {
	case command.Is(c.Args[2], "ON"):
		*flag = true
	case command.Is(c.Args[2], "OFF"):
		*flag = false
	default:
		return command.ErrSyntax
	}
	c.Out.SimpleString("OK")
	return nil
}

func clientNoEvict(c *command.Ctx) error { return onOff(c, &session(c).noEvict) }

func clientNoTouch(c *command.Ctx) error { return onOff(c, &session(c).noTouch) }

func clientReply(c *command.Ctx) error {
	s := session(c)
	switch {
	case command.Is(c.Args[2], "ON"):
		s.silence = silence{}
		s.heard(c.Out).SimpleString("OK")
	case command.Is(c.Args[2], "OFF"):
		s.silence.off = true
	case command.Is(c.Args[2], "SKIP"):
		s.silence.next = !s.silence.off
	default:
		return command.ErrSyntax
	}
	return nil
}

func (m *Machine) clientInfo(c *command.Ctx) error {
	c.Out.Verbatim("txt", m.describe(session(c))+"\n")
	return nil
}

func (m *Machine) clientList(c *command.Ctx) error {
	chosen, err := parseClientList(c.Args)
	if err != nil {
		return err
	}
	var list strings.Builder
	m.each(func(s *Session) {
		if chosen(s) {
			list.WriteString(m.describe(s))
			list.WriteByte('\n')
		}
	})
	c.Out.Verbatim("txt", list.String())
	return nil
}

func parseClientList(args [][]byte) (func(*Session) bool, error) {
	switch {
	case len(args) == 2:
		return func(*Session) bool { return true }, nil
	case len(args) == 4 && command.Is(args[2], "TYPE"):
		return ofType(args[3])
	case len(args) > 3 && command.Is(args[2], "ID"):
		ids := map[int64]bool{}
		for _, a := range args[3:] {
			id, ok := command.ParseInt(a)
			if !ok {
				return nil, command.Error("ERR Invalid client ID")
			}
			ids[id] = true
		}
		return func(s *Session) bool { return ids[s.ID] }, nil
	default:
		return nil, command.ErrSyntax
	}
}

func ofType(name []byte) (func(*Session) bool, error) {
	switch {
	case command.Is(name, "NORMAL"):
		return func(s *Session) bool { return !s.Subscriber() && !s.IsReplica() && s.link == nil }, nil
	case command.Is(name, "PUBSUB"):
		return (*Session).Subscriber, nil
	case command.Is(name, "MASTER"):
		return func(s *Session) bool { return s.link != nil }, nil
	case command.Is(name, "REPLICA"), command.Is(name, "SLAVE"):
		return (*Session).IsReplica, nil
	}
	return nil, command.Error(fmt.Sprintf("ERR Unknown client type '%s'", clip(name)))
}

func (m *Machine) clientKill(c *command.Ctx) error {
	self := session(c)
	if len(c.Args) == 3 {
		killed := m.kill(self, false, func(s *Session) bool { return s.Addr == string(c.Args[2]) })
		if killed == 0 {
			return command.Error("ERR No such client")
		}
		c.Out.SimpleString("OK")
		return nil
	}
	chosen, skipMe, err := m.parseClientKill(c.Args)
	if err != nil {
		return err
	}
	c.Out.Int(int64(m.kill(self, skipMe, chosen)))
	return nil
}

func (m *Machine) parseClientKill(args [][]byte) (chosen func(*Session) bool, skipMe bool, err error) {
	skipMe = true
	var filters []func(*Session) bool
	for i := 2; i < len(args); i += 2 {
		if i+1 >= len(args) {
			return nil, false, command.ErrSyntax
		}
		value := args[i+1]
		switch {
		case command.Is(args[i], "ID"):
			id, ok := command.ParseInt(value)
			if !ok || id < 1 {
				return nil, false, command.Error("ERR client-id should be greater than 0")
			}
			filters = append(filters, func(s *Session) bool { return s.ID == id })
		case command.Is(args[i], "ADDR"):
			filters = append(filters, func(s *Session) bool { return s.Addr == string(value) })
		case command.Is(args[i], "LADDR"):
			filters = append(filters, func(s *Session) bool { return s.LocalAddr == string(value) })
		case command.Is(args[i], "TYPE"):
			f, err := ofType(value)
			if err != nil {
				return nil, false, err
			}
			filters = append(filters, f)
		case command.Is(args[i], "USER"):
			user, ok := m.users.Lookup(string(value))
			if !ok {
				return nil, false, command.Error(fmt.Sprintf("ERR No such user '%s'", clip(value)))
			}
			filters = append(filters, func(s *Session) bool { return s.user == user })
		case command.Is(args[i], "SKIPME") && command.Is(value, "YES"):
			skipMe = true
		case command.Is(args[i], "SKIPME") && command.Is(value, "NO"):
			skipMe = false
		default:
			return nil, false, command.ErrSyntax
		}
	}
	return func(s *Session) bool {
		for _, f := range filters {
			if !f(s) {
				return false
			}
		}
		return true
	}, skipMe, nil
}

// kill closes the chosen sessions; the caller's own only after its reply.
func (m *Machine) kill(self *Session, skipSelf bool, chosen func(*Session) bool) (killed int) {
	m.each(func(s *Session) {
		if s.Addr == localAddr || s == self && skipSelf || !chosen(s) {
			return
		}
		killed++
		if s == self {
			s.closing = true
			return
		}
		m.Disconnect(s)
		m.effects.Close = append(m.effects.Close, s)
	})
	return killed
}

func (m *Machine) clientUnblock(c *command.Ctx) error {
	withError := false
	switch {
	case len(c.Args) > 4:
		return command.ErrSyntax
	case len(c.Args) == 4 && command.Is(c.Args[3], "ERROR"):
		withError = true
	case len(c.Args) == 4 && !command.Is(c.Args[3], "TIMEOUT"):
		return command.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	id, err := c.Int(2)
	if err != nil {
		return err
	}
	s := m.sessions[id]
	if s == nil || s.blocked == nil || s.blocked.postponed {
		c.Out.Int(0)
		return nil
	}
	out := s.replies()
	if withError {
		out.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
	} else {
		s.blocked.onTimeout(out)
	}
	m.unblock(s, out)
	c.Out.Int(1)
	return nil
}
