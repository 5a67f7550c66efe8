package exec

import (
	"fmt"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// MONITOR: sessions that see every command that is run, with time, database,
// client and arguments, except those about the engine's administration. Secrets
// are not shown. While nobody looks, it costs a command the test of a length.
//
// A monitor that does not read what it is sent is under the output limit for
// replicas: the shell disconnects it.

func (m *Machine) monitorSpecs() []command.Spec {
	return []command.Spec{{
		Name: "monitor", Arity: 1, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Group: "server", Since: "1.0.0",
		Summary: "Shows the connection every command that is run.", Complexity: "O(1)", Run: m.monitor,
	}}
}

func (m *Machine) monitor(c *command.Ctx) error {
	s := session(c)
	if !c.CanBlock {
		return command.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	}
	if !s.monitoring {
		s.monitoring = true
		m.monitors = append(m.monitors, s)
	}
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) unmonitor(s *Session) {
	if i := slices.Index(m.monitors, s); i >= 0 {
		m.monitors = slices.Delete(m.monitors, i, i+1)
	}
	s.monitoring = false
}

// showMonitors sends a call to all monitors. It is called only if there are any.
func (m *Machine) showMonitors(s *Session, db int, spec *command.Spec, args [][]byte) {
	if spec.Flags&command.Admin != 0 || m.replay != nil {
		return
	}
	who := s.Addr
	switch {
	case s == m.script:
		who = "lua"
	case s.isUnix():
		who = "unix:" + s.LocalAddr
	}
	line := fmt.Appendf(nil, "%d.%06d [%d %s]", m.nowUs/1e6, m.nowUs%1e6, db, who)
	for _, arg := range m.redacted(spec, args) {
		line = appendQuoted(append(line, ' '), arg)
	}
	for _, monitor := range m.monitors {
		m.pushTo(monitor).SimpleString(string(line))
	}
}

// appendQuoted writes b in quotes, bytes that are not printable as escapes.
func appendQuoted(line, b []byte) []byte {
	line = append(line, '"')
	for _, ch := range b {
		switch ch {
		case '\\', '"':
			line = append(line, '\\', ch)
		case '\n':
			line = append(line, `\n`...)
		case '\r':
			line = append(line, `\r`...)
		case '\t':
			line = append(line, `\t`...)
		case '\a':
			line = append(line, `\a`...)
		case '\b':
			line = append(line, `\b`...)
		default:
			if ch < ' ' || ch > '~' {
				const hex = "0123456789abcdef"
				line = append(line, '\\', 'x', hex[ch>>4], hex[ch&15])
			} else {
				line = append(line, ch)
			}
		}
	}
	return append(line, '"')
}

var hidden = []byte("(redacted)")

// redacted returns the arguments of a call without its secrets, for those who
// look on and for the slow log.
func (m *Machine) redacted(spec *command.Spec, args [][]byte) [][]byte {
	secret := m.secrets(spec, args)
	if secret == nil {
		return args
	}
	args = slices.Clone(args)
	for _, i := range secret {
		args[i] = hidden
	}
	return args
}

// secrets are the positions of arguments that nobody may see: passwords, and with
// them the names and rules of users.
func (m *Machine) secrets(spec *command.Spec, args [][]byte) (secret []int) {
	from := len(args)
	switch spec.FullName() {
	case "auth":
		from = 1
	case "acl|setuser":
		from = 2
	case "hello":
		for i := 2; i+2 < len(args); i++ {
			if command.Is(args[i], "AUTH") {
				secret = append(secret, i+1, i+2)
			}
		}
	case "config|set":
		for i := 2; i+1 < len(args); i += 2 {
			if m.settings.IsSecret(string(args[i])) {
				secret = append(secret, i+1)
			}
		}
	}
	for i := from; i < len(args); i++ {
		secret = append(secret, i)
	}
	return secret
}

func (s *Session) isUnix() bool { return s.Addr == "unix:0" || len(s.Addr) > 0 && s.Addr[0] == '/' }
