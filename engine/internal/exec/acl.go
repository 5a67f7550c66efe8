package exec

import (
	"encoding/hex"
	"fmt"
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/acl"
	"github.com/signalbox-io/signalbox/engine/internal/command"
)

func (m *Machine) aclSpecs() []command.Spec {
	const flags = command.NoScript | command.Loading | command.Stale
	sub := func(name string, arity int, since, summary string, run func(*command.Ctx) error) command.Spec {
		return command.Spec{Name: name, Arity: arity, Flags: flags, Since: since, Summary: summary, Run: run}
	}
	admin := func(s command.Spec) command.Spec {
		s.Flags |= command.Admin
		return s
	}
	return []command.Spec{{
		Name: "acl", Arity: -2, Group: "server", Since: "6.0.0", Summary: "A container for commands on users and their rights.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			sub("cat", -2, "6.0.0", "Lists the categories of commands, or the commands of one.", m.aclCat),
			admin(sub("deluser", -3, "6.0.0", "Deletes users and closes their connections.", m.aclDelUser)),
			admin(sub("dryrun", -4, "7.0.0", "Says whether a user may make a call, without making it.", m.aclDryRun)),
			sub("genpass", -2, "6.0.0", "Makes a random password.", m.aclGenPass),
			admin(sub("getuser", 3, "6.0.0", "Describes a user.", m.aclGetUser)),
			admin(sub("list", 2, "6.0.0", "Lists the users with their rules.", m.aclList)),
			admin(sub("load", 2, "6.0.0", "Replaces the users by those of the ACL file.", m.aclLoad)),
			admin(sub("log", -2, "6.0.0", "Lists the latest denials, or forgets them.", m.aclLog)),
			admin(sub("save", 2, "6.0.0", "Writes the users into the ACL file.", m.aclSave)),
			admin(sub("setuser", -3, "6.0.0", "Creates a user, or changes his rights.", m.aclSetUser)),
			admin(sub("users", 2, "6.0.0", "Lists the names of the users.", m.aclUsers)),
			sub("whoami", 2, "6.0.0", "Answers with the user of the connection.", aclWhoAmI),
			command.HelpSpec("ACL", "6.0.0", aclHelp...),
		},
	}}
}

var aclHelp = []string{
	"CAT [<category>]", "    List all commands that belong to <category>, or all command categories",
	"    when no category is specified.",
	"DELUSER <username> [<username> ...]", "    Delete a list of users.",
	"DRYRUN <username> <command> [<arg> ...]",
	"    Returns whether the user can execute the given command without executing the command.",
	"GETUSER <username>", "    Get the user's details.",
	"GENPASS [<bits>]", "    Generate a secure 256-bit user password. The optional `bits` argument can",
	"    be used to specify a different size.",
	"LIST", "    Show users details in config file format.",
	"LOAD", "    Reload users from the ACL file.",
	"LOG [<count> | RESET]", "    Show the ACL log entries.",
	"SAVE", "    Save the current config to the ACL file.",
	"SETUSER <username> <attribute> [<attribute> ...]", "    Create or modify a user with the specified attributes.",
	"USERS", "    List all the registered usernames.",
	"WHOAMI", "    Return the current connection username.",
}

func bulks(c *command.Ctx, texts []string) {
	c.Out.Array(len(texts))
	for _, text := range texts {
		c.Out.BulkString(text)
	}
}

func (m *Machine) aclCat(c *command.Ctx) error {
	switch len(c.Args) {
	case 2:
		bulks(c, command.CategoryNames)
		return nil
	case 3:
		category, ok := command.CategoryNamed(c.Arg(2))
		if !ok {
			return command.Error(fmt.Sprintf("ERR Unknown category '%s'", clip(c.Args[2])))
		}
		var names []string
		m.table.Each(func(spec *command.Spec) {
			if spec.Categories&category != 0 {
				names = append(names, spec.FullName())
			}
		})
		bulks(c, names)
		return nil
	}
	return command.WrongSubcommand("ACL", c.Args[1])
}

func (m *Machine) aclSetUser(c *command.Ctx) error {
	rules := make([]string, 0, len(c.Args)-3)
	for _, rule := range c.Args[3:] {
		rules = append(rules, string(rule))
	}
	err := m.users.Set(c.Arg(2), rules, func(before, after *acl.User) {
		m.endListeners(session(c), before, before.Revokes(after))
	})
	if err != nil {
		return command.Error("ERR " + err.Error())
	}
	c.Out.SimpleString("OK")
	return nil
}

// endListeners closes the connections of a user that listen to what he may no
// longer hear.
func (m *Machine) endListeners(self *Session, user *acl.User, revoked func(topic string, isPattern bool) bool) {
	if revoked == nil {
		return
	}
	m.end(self, func(s *Session) bool {
		return s.user == user && (s.patterns.any(func(p string) bool { return revoked(p, true) }) ||
			s.channels.any(func(c string) bool { return revoked(c, false) }) ||
			s.shards.any(func(c string) bool { return revoked(c, false) }))
	})
}

// end closes the chosen connections; the caller's own only after its reply.
func (m *Machine) end(self *Session, chosen func(*Session) bool) {
	m.each(func(s *Session) {
		switch {
		case !chosen(s):
		case s == self:
			s.closing = true
		default:
			m.Disconnect(s)
			m.effects.Close = append(m.effects.Close, s)
		}
	})
}

// endUser closes the connections of users that are gone.
func (m *Machine) endUser(self *Session, gone ...*acl.User) {
	for _, user := range gone {
		m.end(self, func(s *Session) bool { return s.user == user })
		m.each(func(s *Session) {
			if s.user == user {
				s.user, s.authenticated = m.users.Default(), false
			}
		})
	}
}

func (m *Machine) aclDelUser(c *command.Ctx) error {
	for _, name := range c.Args[2:] {
		if string(name) == acl.Default {
			return command.Error("ERR The 'default' user cannot be removed")
		}
	}
	deleted := int64(0)
	for _, name := range c.Args[2:] {
		if user, ok := m.users.Delete(string(name)); ok {
			m.endUser(session(c), user)
			deleted++
		}
	}
	c.Out.Int(deleted)
	return nil
}

func (m *Machine) aclGetUser(c *command.Ctx) error {
	user, ok := m.users.Lookup(c.Arg(2))
	if !ok {
		c.Out.Null()
		return nil
	}
	root, others := user.Rights()
	c.Out.Map(6)
	c.Out.BulkString("flags")
	flags := user.Flags()
	c.Out.Set(len(flags))
	for _, flag := range flags {
		c.Out.BulkString(flag)
	}
	c.Out.BulkString("passwords")
	bulks(c, user.Passwords())
	describeRights(c, root)
	c.Out.BulkString("selectors")
	c.Out.Array(len(others))
	for _, rights := range others {
		c.Out.Map(3)
		describeRights(c, rights)
	}
	return nil
}

func describeRights(c *command.Ctx, rights acl.Rights) {
	for _, field := range [][2]string{{"commands", rights.Commands}, {"keys", rights.Keys}, {"channels", rights.Channels}} {
		c.Out.BulkString(field[0])
		c.Out.BulkString(field[1])
	}
}

func (m *Machine) aclList(c *command.Ctx) error {
	users := m.users.All()
	c.Out.Array(len(users))
	for _, user := range users {
		c.Out.BulkString(user.Describe())
	}
	return nil
}

func (m *Machine) aclUsers(c *command.Ctx) error {
	users := m.users.All()
	c.Out.Array(len(users))
	for _, user := range users {
		c.Out.BulkString(user.Name)
	}
	return nil
}

func aclWhoAmI(c *command.Ctx) error {
	if user := session(c).user; user != nil {
		c.Out.BulkString(user.Name)
		return nil
	}
	c.Out.Null()
	return nil
}

// aclGenPass makes a password of the machine's randomness for secrets, which is
// not the one that commands on data draw from.
func (m *Machine) aclGenPass(c *command.Ctx) error {
	const mostBits = 4096
	bits := int64(256)
	switch len(c.Args) {
	case 2:
	case 3:
		n, err := c.Int(2)
		if err != nil {
			return err
		}
		bits = n
	default:
		return command.WrongSubcommand("ACL", c.Args[1])
	}
	if bits <= 0 || bits > mostBits {
		return command.Error(fmt.Sprintf("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to %d", mostBits))
	}
	digits := (bits + 3) / 4
	random := make([]byte, (digits+1)/2)
	m.options.Secret(random)
	c.Out.BulkString(hex.EncodeToString(random)[:digits])
	return nil
}

func (m *Machine) aclLog(c *command.Ctx) error {
	count := int64(10)
	switch {
	case len(c.Args) > 3:
		return command.WrongSubcommand("ACL", c.Args[1])
	case len(c.Args) == 3 && command.Is(c.Args[2], "RESET"):
		m.denials.Reset()
		c.Out.SimpleString("OK")
		return nil
	case len(c.Args) == 3:
		n, err := c.Int(2)
		if err != nil {
			return err
		}
		count = n
	}
	entries := m.denials.Latest(count)
	c.Out.Array(len(entries))
	for _, e := range entries {
		c.Out.Map(7)
		c.Out.BulkString("count")
		c.Out.Int(e.Count)
		for _, field := range [][2]string{
			{"reason", e.Reason()},
			{"context", string(e.Context)},
			{"object", e.Object},
			{"username", e.User},
		} {
			c.Out.BulkString(field[0])
			c.Out.BulkString(field[1])
		}
		c.Out.BulkString("age-seconds")
		c.Out.Double(math.Round(float64(c.NowMs()-e.AtMs)) / 1000)
		c.Out.BulkString("client-info")
		c.Out.BulkString(e.Client)
	}
	return nil
}

func (m *Machine) aclDryRun(c *command.Ctx) error {
	user, ok := m.users.Lookup(c.Arg(2))
	if !ok {
		return command.Error(fmt.Sprintf("ERR User '%s' not found", clip(c.Args[2])))
	}
	call := c.Args[3:]
	spec, err := m.find(call)
	switch {
	case spec == nil:
		return command.Error(fmt.Sprintf("ERR Command '%s' not found", clip(call[0])))
	case err != nil:
		return err
	}
	switch why, position := user.Check(spec, call); why {
	case acl.Allowed:
		c.Out.SimpleString("OK")
	case acl.DeniedCommand:
		c.Out.BulkString("This user has no permissions to run the '" + spec.FullName() + "' command")
	case acl.DeniedChannel:
		c.Out.BulkString("This user has no permissions to access the '" + string(call[position]) + "' channel")
	default:
		c.Out.BulkString("This user has no permissions to access the '" + string(call[position]) + "' key")
	}
	return nil
}

const errNoACLFile command.Error = "ERR This Redis instance is not configured to use an ACL file. " +
	"You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE " +
	"(assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

func (m *Machine) aclLoad(c *command.Ctx) error {
	if m.aclFile() == "" {
		return errNoACLFile
	}
	gone, err := m.loadUsers()
	if err != nil {
		return command.Error("ERR " + err.Error())
	}
	m.endUser(session(c), gone...)
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) aclFile() string {
	if m.options.Files == nil {
		return ""
	}
	return m.settings.Text("aclfile")
}

func (m *Machine) loadUsers() (gone []*acl.User, err error) {
	path := m.aclFile()
	text, err := m.options.Files.Read(path)
	if err != nil {
		return nil, fmt.Errorf("Error loading ACLs, opening file '%s': %w", path, err) //nolint:staticcheck // Redis's words
	}
	return m.users.Load(path, text)
}

func (m *Machine) aclSave(c *command.Ctx) error {
	path := m.aclFile()
	if path == "" {
		return errNoACLFile
	}
	if err := m.options.Files.Write(path, m.users.Save()); err != nil {
		m.options.Log(logWarning, "Saving the ACL file: "+err.Error())
		return command.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
	}
	c.Out.SimpleString("OK")
	return nil
}

// logWarning is the level of redis.LOG_WARNING.
const logWarning = 3

// startUsers makes the users with which the machine starts: those of the
// configuration, or of the ACL file.
func (m *Machine) startUsers() error {
	if password := m.settings.Text("requirepass"); password != "" {
		m.users.Default().SetPassword(password)
	}
	directives := m.settings.Users()
	if m.aclFile() != "" {
		if len(directives) > 0 {
			return fmt.Errorf("users are defined both in the configuration and in the ACL file %s: use one of the two", m.aclFile())
		}
		_, err := m.loadUsers()
		return err
	}
	declared := map[string]bool{}
	for _, words := range directives {
		if err := m.users.Declare(words, declared); err != nil {
			return err
		}
	}
	return nil
}
