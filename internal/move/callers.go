package move

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
)

// Callers go on at the target by themselves, with the user and the password that they have, at the URL that they are told.
// Who would not be let in there, or would look for it on another machine, would lose what is held. So it is looked who uses the
// source, and the move is refused before anything is done.

// ourName is the name of our own connections, by which they are told from those of callers.
const ourName = "signalbox-move"

// examineCallers refuses a URL that callers cannot use.
func (m *mover) examineCallers(ctx context.Context) (err error) {
	if m.Announce == "" || m.LeaveOpen {
		return nil
	}
	announced, place, err := address.One(m.Announce)
	if err != nil {
		return refused("--announce: %w", err)
	}
	told := announced.Options()
	if err := announced.Close(); err != nil {
		return err
	}
	if m.Meant {
		return nil
	}
	callers, err := callersOf(ctx, m.From.Client)
	if err != nil {
		m.note("the source does not say who uses it (%v): see that they can reach %s, and are let in there", err, place)
		return nil
	}
	if told.Network == "unix" || isLoopbackAddr(told.Addr) {
		for _, c := range callers {
			if c.away {
				return refused("callers come from %s, and %s would be their own machine: say with --announce how they reach the target", c.host, place)
			}
		}
	}
	if told.Password != "" {
		return nil
	}
	return m.examineAccounts(ctx, callers)
}

// caller is a connection to the source.
type caller struct {
	user, host string
	away       bool // from another machine
}

// callersOf are the connections of others.
func callersOf(ctx context.Context, client *redis.Client) (found []caller, err error) {
	for _, kind := range []string{"normal", "pubsub"} {
		text, err := client.Do(ctx, "CLIENT", "LIST", "TYPE", kind).Text()
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			fields := map[string]string{}
			for field := range strings.FieldsSeq(line) {
				name, value, _ := strings.Cut(field, "=")
				fields[name] = value
			}
			if fields["name"] == ourName {
				continue
			}
			c := caller{user: fields["user"]}
			here, _, _ := net.SplitHostPort(fields["laddr"])
			if c.host, _, err = net.SplitHostPort(fields["addr"]); err == nil { // else it is a socket's
				c.away = net.ParseIP(c.host) != nil && c.host != here && !isLoopback(c.host)
			}
			found = append(found, c)
		}
	}
	return found, nil
}

// account is who may come in, by what: hashes of passwords, or none at all.
type account struct {
	on, open  bool
	passwords []string
}

func accountsOf(ctx context.Context, client *redis.Client) (map[string]account, error) {
	lines, err := client.ACLList(ctx).Result()
	if err != nil {
		return nil, err
	}
	found := map[string]account{}
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) < 2 {
			return nil, fmt.Errorf("ACL LIST has the line %q", line)
		}
		var a account
		for _, word := range words[2:] {
			switch {
			case word == "on":
				a.on = true
			case word == "nopass":
				a.open = true
			case strings.HasPrefix(word, "#"):
				a.passwords = append(a.passwords, word)
			}
		}
		found[words[1]] = a
	}
	return found, nil
}

// examineAccounts refuses a target that does not let in those who use the source.
func (m *mover) examineAccounts(ctx context.Context, callers []caller) error {
	ours, err := accountsOf(ctx, m.From.Client)
	if err == nil {
		var theirs map[string]account
		if theirs, err = accountsOf(ctx, m.To.Client); err == nil {
			return m.compareAccounts(callers, ours, theirs)
		}
	}
	if len(callers) > 0 {
		m.note("it cannot be seen whether the target lets in those who use the source (%v)", err)
	}
	return nil
}

func (m *mover) compareAccounts(callers []caller, ours, theirs map[string]account) error {
	strangers := map[string]bool{}
	for _, c := range callers {
		from, known := ours[c.user]
		to := theirs[c.user]
		shared := slices.ContainsFunc(from.passwords, func(hash string) bool { return slices.Contains(to.passwords, hash) })
		if known && (!to.on || !to.open && !shared) { // the server's own connections have no account
			strangers[c.user] = true
		}
	}
	if len(strangers) == 0 {
		return nil
	}
	return refused("callers at the source are %s, and the target does not let them in with what they have: give it the same users and passwords "+
		"(ACL SETUSER, requirepass), or say with --announce URL what they are to use, such as redis://user:password@host:port",
		strings.Join(slices.Sorted(maps.Keys(strangers)), ", "))
}
