package exec

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// The commands by which clients find out, and say, what kind of server this is: one
// without a cluster and without modules. Each answers as a Redis answers that is the same.

const errNoCluster command.Error = "ERR This instance has cluster support disabled"

func noCluster(*command.Ctx) error { return errNoCluster }

func (m *Machine) standaloneSpecs() []command.Spec {
	const fast = command.Loading | command.Stale | command.Fast
	one := func(name, group, since, summary string, arity int, flags command.Flags, run func(*command.Ctx) error) command.Spec {
		return command.Spec{Name: name, Arity: arity, Flags: flags, Group: group, Since: since, Summary: summary, Complexity: "O(1)", Run: run}
	}
	return []command.Spec{
		one("readonly", "cluster", "3.0.0", "Says that there is no cluster.", 1, fast, noCluster),
		one("readwrite", "cluster", "3.0.0", "Says that there is no cluster.", 1, fast, noCluster),
		one("asking", "cluster", "3.0.0", "Says that there is no cluster.", 1, command.Fast, noCluster),
		one("lolwut", "server", "5.0.0", "Tells the version, without the drawing.", -1, command.ReadOnly|command.Fast, lolwut),
		m.migrateSpec(), clusterSpec(), moduleSpec(),
	}
}

func lolwut(c *command.Ctx) error {
	if len(c.Args) >= 3 && command.Is(c.Args[1], "VERSION") {
		if _, err := c.Int(2); err != nil {
			return err
		}
	}
	c.Out.Verbatim("txt", "Redis ver. "+RedisVersion+"\n")
	return nil
}

// clusterSpec is CLUSTER, all of whose subcommands say the same.
func clusterSpec() command.Spec {
	const (
		changes = command.Admin | command.Stale | command.NoAsyncLoading
		looks   = command.Stale
	)
	spec := command.Spec{
		Name: "cluster", Arity: -2, Group: "cluster", Since: "3.0.0", Summary: "A container for commands on a cluster.",
		Complexity: "that of the subcommand",
	}
	for _, sub := range []struct {
		names string
		arity int
		flags command.Flags
		since string
	}{
		{"addslots delslots", -3, changes, "3.0.0"},
		{"addslotsrange delslotsrange", -4, changes, "7.0.0"},
		{"bumpepoch flushslots saveconfig", 2, changes, "3.0.0"},
		{"forget replicate set-config-epoch", 3, changes, "3.0.0"},
		{"failover", -2, changes, "3.0.0"},
		{"meet setslot", -4, changes, "3.0.0"},
		{"reset", -2, command.Admin | command.NoScript | command.Stale, "3.0.0"},
		{"count-failure-reports slaves", 3, command.Admin | looks, "3.0.0"},
		{"replicas", 3, command.Admin | looks, "5.0.0"},
		{"countkeysinslot keyslot", 3, looks, "3.0.0"},
		{"getkeysinslot", 4, looks, "3.0.0"},
		{"info myid nodes slots", 2, looks, "3.0.0"},
		{"links shards", 2, looks, "7.0.0"},
		{"help", 2, command.Loading | looks, "5.0.0"},
	} {
		for name := range strings.FieldsSeq(sub.names) {
			spec.Sub = append(spec.Sub, command.Spec{
				Name: name, Arity: sub.arity, Flags: sub.flags, Since: sub.since,
				Summary: "Says that there is no cluster.", Complexity: "O(1)", Run: noCluster,
			})
		}
	}
	return spec
}

func moduleSpec() command.Spec {
	const (
		since   = "4.0.0"
		changes = command.Admin | command.NoScript | command.NoAsyncLoading | command.Protected
	)
	refuse := func(text string) func(*command.Ctx) error {
		return func(*command.Ctx) error { return command.Error(text) }
	}
	failed := refuse("ERR Error loading the extension. Please check the server logs.")
	sub := func(name, since, summary string, arity int, flags command.Flags, run func(*command.Ctx) error) command.Spec {
		return command.Spec{Name: name, Arity: arity, Flags: flags, Since: since, Summary: summary, Complexity: "O(1)", Run: run}
	}
	return command.Spec{
		Name: "module", Arity: -2, Group: "server", Since: since, Summary: "A container for commands on modules.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			sub("list", since, "Lists no modules.", 2, command.Admin|command.NoScript, func(c *command.Ctx) error {
				c.Out.Array(0)
				return nil
			}),
			sub("load", since, "Fails: there are no modules.", -3, changes, failed),
			sub("loadex", "7.0.0", "Fails: there are no modules.", -3, changes, failed),
			sub("unload", since, "Fails: there are no modules.", 3, changes,
				refuse("ERR Error unloading module: no such module with that name")),
			command.HelpSpec("MODULE", "5.0.0",
				"LIST", "    Return a list of loaded modules.",
				"LOAD <path> [<arg> ...]", "    Load a module library from <path>, passing to it any optional arguments.",
				"LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
				"    Load a module library from <path>, while passing it module configurations and optional arguments.",
				"UNLOAD <name>", "    Unload a module."),
		},
	}
}
