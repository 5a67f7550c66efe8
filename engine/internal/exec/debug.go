package exec

import (
	"fmt"
	"math"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// DEBUG is for test suites: the subcommands of Redis that mean something here.
// What is about the inside of Redis (JMAP, LISTPACK, SEGFAULT) answers as an
// unknown subcommand. To Redis the subcommand is an argument, so DEBUG is one
// command and not a container.
//
// Connections may use it as enable-debug-command says, which is not at all by
// default. The program around the engine (Engine.Do) always may: it holds the
// data anyway.
//
// The subcommands that load the data anew are in debug_reload.go, those that show
// each kind of reply in debug_protocol.go.

const errNotFromHere = " command not allowed. If the enable-%s-command option is set to \"local\", you can run it from a local connection, " +
	"otherwise you need to set this option in the configuration file, and then restart the server."

// debugging is what DEBUG has switched off.
type debugging struct {
	noActiveExpire bool // what has expired goes when somebody looks at it, not before
	noScriptDenied bool // scripts may run what is not for scripts
}

// unprotected refuses a command that the configuration does not let this client use.
func (m *Machine) unprotected(s *Session, spec *command.Spec) error {
	word := spec.Container()
	if s.Addr == localAddr {
		return nil
	}
	switch m.settings.Text("enable-" + word + "-command") {
	case "yes":
		return nil
	case "local":
		if s.isOnThisMachine() {
			return nil
		}
	}
	return command.Error("ERR " + strings.ToUpper(word) + fmt.Sprintf(errNotFromHere, word))
}

// isOnThisMachine reports whether the client came over a Unix socket, in process, or from
// the address that Redis takes for local.
func (s *Session) isOnThisMachine() bool {
	return strings.HasPrefix(s.Addr, "unix:") || strings.HasPrefix(s.Addr, "pipe:") || strings.HasPrefix(s.Addr, "127.0.0.1:") || strings.HasPrefix(s.Addr, "[::1]:")
}

// allowsInScripts reports whether a script may run a command that is not for scripts: what
// works on the script's own session, or runs another one, it may not even then.
func (m *Machine) allowsInScripts(spec *command.Spec) bool {
	switch spec.Group {
	case "scripting", "transactions", "pubsub", "connection":
		return false
	}
	return m.debugging.noScriptDenied
}

// debugSub is a subcommand of DEBUG.
type debugSub struct {
	name        string
	least, most int // how many arguments follow the name; most < 0 is any number
	run         func(c *command.Ctx) error
	help        []string
}

func (m *Machine) debugSubs() []debugSub {
	return []debugSub{
		{"CHANGE-REPL-ID", 0, 0, m.debugChangeID, []string{
			"CHANGE-REPL-ID", "    Change the replication IDs of the instance.", "    Dangerous: should be used only for testing the replication subsystem.",
		}},
		{"CONFIG-REWRITE-FORCE-ALL", 0, 0, m.debugRewriteAll, []string{
			"CONFIG-REWRITE-FORCE-ALL", "    Like CONFIG REWRITE but writes all configuration options, including",
			"    keywords not listed in original configuration file or default values.",
		}},
		{"DIGEST", 0, 0, debugDigest, []string{"DIGEST", "    Output a hex signature representing the current DB content."}},
		{"DIGEST-VALUE", 0, -1, debugDigestValue, []string{
			"DIGEST-VALUE <key> [<key> ...]", "    Output a hex signature of the values of all the specified keys.",
		}},
		{"ERROR", 1, 1, debugError, []string{
			"ERROR <string>", "    Return a Redis protocol error with <string> as message. Useful for clients",
			"    unit tests to simulate Redis errors.",
		}},
		{"LOADAOF", 0, -1, m.debugLoadLog, []string{
			"LOADAOF", "    Flush the AOF buffers on disk and reload the AOF in memory.",
		}},
		{"LOG", 1, 1, m.debugLog, []string{"LOG <message>", "    Write <message> to the server log."}},
		{"OBJECT", 1, 1, debugObject, []string{"OBJECT <key>", "    Show low level info about `key` and associated value."}},
		{"POPULATE", 1, 3, debugPopulate, []string{
			"POPULATE <count> [<prefix>] [<size>]", "    Create <count> string keys named key:<num>. If <prefix> is specified then",
			"    it is used instead of the 'key' prefix. These are not propagated to", "    replicas.",
		}},
		{"PROTOCOL", 1, 1, debugProtocol, []string{
			"PROTOCOL <type>", "    Reply with a test value of the specified type. <type> can be: string,",
			"    integer, double, bignum, null, array, set, map, attrib, push, verbatim,", "    true, false.",
		}},
		{"RELOAD", 0, -1, m.debugReload, []string{
			"RELOAD [option ...]", "    Save the RDB on disk and reload it back to memory. Valid <option> values:",
			"    * MERGE: conflicting keys will be loaded from RDB.",
			"    * NOFLUSH: the existing database will not be removed before load.",
			"    * NOSAVE: the database will be loaded from an existing RDB file.",
		}},
		{"SET-ACTIVE-EXPIRE", 1, 1, debugSwitch(func(on bool) { m.debugging.noActiveExpire = !on }), []string{
			"SET-ACTIVE-EXPIRE <0|1>", "    Setting it to 0 disables expiring keys in background when they are not",
			"    accessed (otherwise the Redis behavior). Setting it to 1 reenables back the", "    default.",
		}},
		{"SET-DISABLE-DENY-SCRIPTS", 1, 1, debugSwitch(func(on bool) { m.debugging.noScriptDenied = on }), nil}, // Redis's HELP has no word of it
		{"SET-SKIP-CHECKSUM-VALIDATION", 1, 1, debugSwitch(func(on bool) { m.space.SkipChecksums = on }), []string{
			"SET-SKIP-CHECKSUM-VALIDATION <0|1>", "    Enables or disables checksum checks for RDB files and RESTORE's payload.",
		}},
		{"SLEEP", 1, 1, debugSleep, []string{"SLEEP <seconds>", "    Stop this connection for <seconds>. Decimals allowed."}},
	}
}

func (m *Machine) debugSpec() command.Spec {
	subs := m.debugSubs()
	var help []string
	for _, sub := range subs {
		help = append(help, sub.help...)
	}
	subs = append(subs, debugSub{"HELP", 0, 0, command.HelpSpec("DEBUG", "5.0.0", help...).Run, nil})
	return command.Spec{
		Name: "debug", Arity: -2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale | command.Protected,
		Group: "server", Since: "1.0.0", Summary: "A container for commands for debugging.", Complexity: "that of the subcommand",
		Run: func(c *command.Ctx) error {
			given := len(c.Args) - 2
			for i := range subs {
				sub := &subs[i]
				if command.Is(c.Args[1], sub.name) && given >= sub.least && (sub.most < 0 || given <= sub.most) {
					return sub.run(c)
				}
			}
			return command.WrongSubcommand("DEBUG", c.Args[1])
		},
	}
}

// debugSwitch is a subcommand that turns something on or off. What is no number is 0.
func debugSwitch(turn func(on bool)) func(c *command.Ctx) error {
	return func(c *command.Ctx) error {
		n, _ := command.ParseInt(c.Args[2])
		turn(n != 0)
		c.Out.SimpleString("OK")
		return nil
	}
}

func debugDigest(c *command.Ctx) error {
	c.Out.SimpleString(command.Digest(c.Space, c.NowMs()))
	return nil
}

func debugDigestValue(c *command.Ctx) error {
	c.Out.Array(len(c.Args) - 2)
	for _, key := range c.Args[2:] {
		c.Out.SimpleString(command.DigestValue(c.DB.Peek(key, c.NowMs())))
	}
	return nil
}

func debugError(c *command.Ctx) error {
	c.Out.Error(c.Arg(2))
	return nil
}

func (m *Machine) debugLog(c *command.Ctx) error {
	const warning = 3
	m.options.Log(warning, "DEBUG LOG: "+oneLine(c.Arg(2)))
	c.Out.SimpleString("OK")
	return nil
}

// debugObject tells what OBJECT does, and how long the value is in a file. What Redis says
// of the nodes of a list is not there: there are none.
func debugObject(c *command.Ctx) error {
	o := c.DB.Peek(c.Args[2], c.NowMs())
	if o == nil {
		return command.ErrNoSuchKey
	}
	payload, err := rdb.AppendPayload(nil, o.Value())
	if err != nil {
		return err
	}
	const lruBits = 24
	idleMs, _ := c.Space.IdleMs(o, c.NowMs())
	lru := (c.NowMs() - idleMs) / 1000 & (1<<lruBits - 1)
	c.Out.SimpleString(fmt.Sprintf("Value at:%p refcount:%d encoding:%s serializedlength:%d lru:%d lru_seconds_idle:%d",
		o, command.Refcount(o), command.Encoding(o), len(payload)-rdb.EnvelopeBytes, lru, idleMs/1000))
	return nil
}

// populateRequest is a call of DEBUG POPULATE.
type populateRequest struct {
	count, valueBytes int64
	prefix            string
}

func parsePopulate(c *command.Ctx) (r populateRequest, err error) {
	var ok bool
	if r.count, ok = command.ParseInt(c.Args[2]); !ok || r.count < 0 {
		return r, command.ErrPositive
	}
	r.prefix = "key"
	if len(c.Args) > 3 {
		r.prefix = c.Arg(3)
	}
	if len(c.Args) > 4 {
		r.valueBytes, ok = command.ParseInt(c.Args[4])
		switch {
		case !ok || r.valueBytes < 0:
			return r, command.ErrPositive
		case r.valueBytes > c.MaxStringBytes:
			return r, command.ErrTooLong
		}
	}
	return r, nil
}

// debugPopulate makes strings. It tells nobody but those who watch the keys: neither a log
// nor listeners to events.
func debugPopulate(c *command.Ctx) error {
	r, err := parsePopulate(c)
	if err != nil {
		return err
	}
	for i := range r.count {
		key := fmt.Appendf(nil, "%s:%d", r.prefix, i)
		if c.DB.Lookup(key, c.NowMs()) != nil {
			continue
		}
		value := fmt.Appendf(nil, "value:%d", i)
		if r.valueBytes > 0 {
			sized := make([]byte, r.valueBytes)
			copy(sized, value)
			value = sized
		}
		c.DB.Put(key, keyspace.NewString(value), c.NowMs())
		c.Change(key)
	}
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) debugRewriteAll(c *command.Ctx) error {
	if m.options.ConfigFile == "" || m.options.Files == nil {
		return command.Error("ERR CONFIG-REWRITE-FORCE-ALL failed: Bad address") // as Redis says it of no file
	}
	if err := m.rewriteConfig((*conf.Settings).RewriteAll); err != nil {
		return command.Error("ERR CONFIG-REWRITE-FORCE-ALL failed: " + err.Error())
	}
	c.Out.SimpleString("OK")
	return nil
}

// debugSleep waits for a key that nobody can touch, so that only its own
// connection sleeps: the core has no way to sleep, and no wish to. The time counts as
// work of the command all the same, as SLOWLOG and LATENCY show it. What is not a number
// of seconds is none, as C's strtod has it.
func debugSleep(c *command.Ctx) error {
	const longestSec = 1e9
	seconds, ok := command.ParseFloat(c.Args[2])
	if !ok || seconds <= 0 {
		c.Out.SimpleString("OK")
		return nil
	}
	return c.Await(command.Block{
		TimeoutUs: int64(math.Ceil(min(seconds, longestSec) * 1e6)), OnTimeout: replyOK, IsWork: true,
	})
}
