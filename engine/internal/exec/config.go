package exec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// config is the parameters that CONFIG GET and SET know. A parameter is a name
// and two functions; one without set is fixed. Parameters of Redis that have
// no meaning here are not listed: CONFIG SET of them is an error, not a lie.
type config struct {
	maxBulkBytes int64
	busyReplyMs  int64 // from when on a script is busy; 0 for never
	params       map[string]param
}

type param struct {
	get func() string
	set func(value string) error // nil: cannot be changed while running
}

func newConfig(m *Machine) *config {
	cfg := &config{maxBulkBytes: 512 << 20, busyReplyMs: 5000}
	fixed := func(value string) param { return param{get: func() string { return value }} }
	cfg.params = map[string]param{
		"appendonly":       fixed("no"),
		"save":             fixed(""),
		"databases":        fixed("16"),
		"maxmemory":        fixed("0"),
		"maxmemory-policy": fixed("noeviction"),
		"cluster-enabled":  fixed("no"),
		"port":             fixed(strconv.Itoa(m.options.Port)),
		"unixsocket":       fixed(m.options.UnixPath),
		"timeout":          fixed("0"),
		"maxclients":       fixed(strconv.Itoa(m.options.MaxClients)),
		// No events are sent, so none can be asked for.
		"notify-keyspace-events": fixed(""),
		// When OBJECT ENCODING changes its answer.
		"hash-max-listpack-entries": fixed("128"),
		"hash-max-listpack-value":   fixed("64"),
		"zset-max-listpack-entries": fixed("128"),
		"zset-max-listpack-value":   fixed("64"),
		"set-max-intset-entries":    fixed("512"),
		"busy-reply-threshold":      countParam(&cfg.busyReplyMs),
		"lua-time-limit":            countParam(&cfg.busyReplyMs), // its name before 7.0
		"proto-max-bulk-len":        bytesParam(&cfg.maxBulkBytes, 1<<20),
		"requirepass": {
			get: func() string { return m.options.Password },
			set: func(value string) error { m.options.Password = value; return nil },
		},
	}
	return cfg
}

// countParam is a number from 0.
func countParam(target *int64) param {
	return param{
		get: func() string { return strconv.FormatInt(*target, 10) },
		set: func(value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil:
				return errors.New("argument couldn't be parsed into an integer")
			case n < 0:
				return fmt.Errorf("argument must be between 0 and %d inclusive", int64(math.MaxInt64))
			}
			*target = n
			return nil
		},
	}
}

// bytesParam is a size in bytes, at least least; it may be set with a unit.
func bytesParam(target *int64, least int64) param {
	return param{
		get: func() string { return strconv.FormatInt(*target, 10) },
		set: func(value string) error {
			n, ok := parseBytes(value)
			if !ok || n < least {
				return fmt.Errorf("argument must be a memory value of at least %d", least)
			}
			*target = n
			return nil
		},
	}
}

// parseBytes reads a size as redis.conf writes it: 100, 1k (1000), 1kb (1024)
// and so on to gb.
func parseBytes(value string) (int64, bool) {
	value = strings.ToLower(value)
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"b", 1}} {
		if strings.HasSuffix(value, u.suffix) {
			value, unit = strings.TrimSuffix(value, u.suffix), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n * unit, err == nil && n >= 0 && n <= (1<<62)/unit
}

func (m *Machine) configSpecs() []command.Spec {
	const flags = command.Admin | command.NoScript | command.Loading | command.Stale
	return []command.Spec{{
		Name: "config", Arity: -2, Group: "server", Since: "2.0.0", Summary: "A container for commands on the configuration.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			{Name: "get", Arity: -3, Flags: flags, Since: "2.0.0", Summary: "Answers with the parameters that match patterns.", Run: m.configGet},
			{Name: "set", Arity: -4, Flags: flags, Since: "2.0.0", Summary: "Changes parameters, all or none.", Run: m.configSet},
			{Name: "resetstat", Arity: 2, Flags: flags, Since: "2.0.0", Summary: "Sets the counters of INFO back to zero.", Run: m.configResetStat},
			helpSpec("CONFIG", "5.0.0",
				"GET <pattern>", "    Return parameters matching the glob-like <pattern> and their values.",
				"SET <directive> <value>", "    Set the configuration <directive> to <value>.",
				"RESETSTAT", "    Reset statistics reported by the INFO command."),
		},
	}}
}

func (m *Machine) configGet(c *command.Ctx) error {
	var names []string
	for name := range m.config.params {
		for _, pattern := range c.Args[2:] {
			if command.Glob(pattern, []byte(name), true) {
				names = append(names, name)
				break
			}
		}
	}
	slices.Sort(names)
	c.Out.Map(len(names))
	for _, name := range names {
		c.Out.BulkString(name)
		c.Out.BulkString(m.config.params[name].get())
	}
	return nil
}

func (m *Machine) configSet(c *command.Ctx) error {
	pairs := c.Args[2:]
	if len(pairs)%2 != 0 {
		return command.Error("ERR wrong number of arguments for 'config|set' command")
	}
	if err := m.config.check(pairs); err != nil {
		return err
	}
	undo := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		name := strings.ToLower(string(pairs[i]))
		p := m.config.params[name]
		if p.set == nil {
			continue
		}
		before := p.get()
		if err := p.set(string(pairs[i+1])); err != nil {
			m.restore(undo)
			return configFailed(name, err.Error())
		}
		undo[name] = before
	}
	c.Out.SimpleString("OK")
	return nil
}

// check refuses what can be refused before anything is set. A fixed parameter
// may be given the value that it has.
func (cfg *config) check(pairs [][]byte) error {
	seen := map[string]bool{}
	for i := 0; i < len(pairs); i += 2 {
		name := strings.ToLower(string(pairs[i]))
		p, ok := cfg.params[name]
		switch {
		case !ok:
			return command.Error(fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", clip(pairs[i])))
		case seen[name]:
			return configFailed(name, "duplicate parameter")
		case p.set == nil && p.get() != string(pairs[i+1]):
			return configFailed(name, "can't set immutable config")
		}
		seen[name] = true
	}
	return nil
}

func configFailed(name, why string) error {
	return command.Error(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, why))
}

// restore sets parameters back to values that they had, which they must accept.
func (m *Machine) restore(values map[string]string) {
	for name, value := range values {
		if err := m.config.params[name].set(value); err != nil {
			panic("engine: configuration refuses its own value of " + name + ": " + err.Error())
		}
	}
}

func (m *Machine) configResetStat(c *command.Ctx) error {
	m.stats = stats{calls: make([]callStats, m.table.Count())}
	m.space.Expired = 0
	c.Out.SimpleString("OK")
	return nil
}
