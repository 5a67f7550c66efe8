package exec

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/conf"
)

// CONFIG is a face of package conf, which has the table of parameters and their
// values. What happens when one changes is in follow.go.

func (m *Machine) configSpecs() []command.Spec {
	const flags = command.Admin | command.NoScript | command.Loading | command.Stale
	return []command.Spec{{
		Name: "config", Arity: -2, Group: "server", Since: "2.0.0", Summary: "A container for commands on the configuration.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			{Name: "get", Arity: -3, Flags: flags, Since: "2.0.0", Summary: "Answers with the parameters that match patterns.", Run: m.configGet},
			{Name: "set", Arity: -4, Flags: flags, Since: "2.0.0", Summary: "Changes parameters, all or none.", Run: m.configSet},
			{Name: "resetstat", Arity: 2, Flags: flags, Since: "2.0.0", Summary: "Sets the counters of INFO back to zero.", Run: m.configResetStat},
			{Name: "rewrite", Arity: 2, Flags: flags, Since: "2.8.0", Summary: "Writes the values of today into the configuration file.", Run: m.configRewrite},
			command.HelpSpec("CONFIG", "5.0.0",
				"GET <pattern>", "    Return parameters matching the glob-like <pattern> and their values.",
				"SET <directive> <value>", "    Set the configuration <directive> to <value>.",
				"RESETSTAT", "    Reset statistics reported by the INFO command.",
				"REWRITE", "    Rewrite the configuration file."),
		},
	}}
}

func (m *Machine) configGet(c *command.Ctx) error {
	patterns := make([]string, 0, len(c.Args)-2)
	for _, pattern := range c.Args[2:] {
		patterns = append(patterns, string(pattern))
	}
	pairs := m.settings.Get(patterns, func(pattern, name string) bool {
		return command.Glob([]byte(pattern), []byte(name), true)
	})
	c.Out.Map(len(pairs))
	for _, pair := range pairs {
		c.Out.BulkString(pair.Name)
		c.Out.BulkString(pair.Value)
	}
	return nil
}

func (m *Machine) configSet(c *command.Ctx) error {
	if len(c.Args)%2 != 0 {
		return command.ErrSyntax
	}
	pairs := make([]conf.Pair, 0, len(c.Args)/2-1)
	for i := 2; i < len(c.Args); i += 2 {
		pairs = append(pairs, conf.Pair{Name: c.Arg(i), Value: c.Arg(i + 1)})
	}
	if err := m.settings.Set(pairs); err != nil {
		return command.Error("ERR " + err.Error())
	}
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) configRewrite(c *command.Ctx) error {
	if m.options.ConfigFile == "" || m.options.Files == nil {
		return command.Error("ERR The server is running without a config file")
	}
	if err := m.rewriteConfig((*conf.Settings).Rewrite); err != nil {
		return command.Error("ERR Rewriting config file: " + err.Error())
	}
	c.Out.SimpleString("OK")
	return nil
}

// rewriteConfig replaces the configuration file with what rewrite makes of its text.
func (m *Machine) rewriteConfig(rewrite func(s *conf.Settings, text string, users []string) string) error {
	old, err := m.options.Files.Read(m.options.ConfigFile)
	if err != nil {
		return err
	}
	return m.options.Files.Write(m.options.ConfigFile, rewrite(m.settings, old, m.userDirectives()))
}

// userDirectives are the users as redis.conf has them; none if they live in a
// file of their own.
func (m *Machine) userDirectives() []string {
	if m.settings.Text("aclfile") != "" {
		return nil
	}
	var directives []string
	for _, user := range m.users.All() {
		directives = append(directives, strings.TrimPrefix(user.Describe(), "user "))
	}
	return directives
}

func (m *Machine) configResetStat(c *command.Ctx) error {
	m.stats = m.newStats()
	m.space.Expired, m.space.Evicted, m.space.Hits, m.space.Misses, m.space.FreedLater = 0, 0, 0, 0, 0
	c.Out.SimpleString("OK")
	return nil
}
