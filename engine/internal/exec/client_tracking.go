package exec

import (
	"fmt"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// The commands on client-side caching; what they turn on is in tracking.go.

func (m *Machine) trackingSubcommands() []command.Spec {
	const flags = command.NoScript | command.Loading | command.Stale
	sub := func(name string, arity int, since, summary string, run func(*command.Ctx) error) command.Spec {
		return command.Spec{Name: name, Arity: arity, Flags: flags, Since: since, Summary: summary, Complexity: "O(1)", Run: run}
	}
	return []command.Spec{
		sub("tracking", -3, "6.0.0", "Turns on and off that the connection is told of changes to keys that it has read.", m.clientTracking),
		sub("caching", 3, "6.0.0", "Says whether the keys of the next command are tracked.", clientCaching),
		sub("getredir", 2, "6.0.0", "Answers with the number of the connection that messages about changes go to.", clientGetRedir),
		sub("trackinginfo", 2, "6.2.0", "Describes how the connection is told of changes to keys.", clientTrackingInfo),
	}
}

// parseTracking reads the options after ON or OFF.
func (m *Machine) parseTracking(args [][]byte) (t tracking, err error) {
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch option := args[i]; {
		case command.Is(option, "REDIRECT") && more:
			i++
			if t.redirect != 0 {
				return t, command.Error("ERR A client can only redirect to a single other client")
			}
			if t.redirect, err = m.parseRedirect(args[i]); err != nil {
				return t, err
			}
		case command.Is(option, "PREFIX") && more:
			i++
			t.prefixes = append(t.prefixes, string(args[i]))
		case command.Is(option, "BCAST"):
			t.broadcast = true
		case command.Is(option, "OPTIN"):
			t.optIn = true
		case command.Is(option, "OPTOUT"):
			t.optOut = true
		case command.Is(option, "NOLOOP"):
			t.noLoop = true
		default:
			return t, command.ErrSyntax
		}
	}
	return t, nil
}

func (m *Machine) parseRedirect(arg []byte) (int64, error) {
	id, ok := command.ParseInt(arg)
	if !ok {
		return 0, command.ErrNotInteger
	}
	if m.sessions[id] == nil {
		return 0, command.Error("ERR The client ID you want redirect to does not exist")
	}
	return id, nil
}

func (m *Machine) clientTracking(c *command.Ctx) error {
	s := session(c)
	wanted, err := m.parseTracking(c.Args[3:])
	if err != nil {
		return err
	}
	switch {
	case command.Is(c.Args[2], "ON"):
		if err := s.mayTrack(&wanted); err != nil {
			return err
		}
		m.track(s, wanted)
	case command.Is(c.Args[2], "OFF"):
		m.untrack(s)
	default:
		return command.ErrSyntax
	}
	c.Out.SimpleString("OK")
	return nil
}

// mayTrack checks the options against each other and against what the session
// has asked for before.
func (s *Session) mayTrack(wanted *tracking) error {
	if !wanted.broadcast && len(wanted.prefixes) > 0 {
		return command.Error("ERR PREFIX option requires BCAST mode to be enabled")
	}
	old := s.tracking
	if old == nil {
		old = &tracking{broadcast: wanted.broadcast}
	}
	switch {
	case old.broadcast != wanted.broadcast:
		return command.Error("ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.")
	case wanted.broadcast && (wanted.optIn || wanted.optOut):
		return command.Error("ERR OPTIN and OPTOUT are not compatible with BCAST")
	case wanted.optIn && wanted.optOut:
		return command.Error("ERR You can't specify both OPTIN mode and OPTOUT mode")
	case wanted.optIn && old.optOut, wanted.optOut && old.optIn:
		return command.Error("ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.")
	}
	if err := separate(wanted.prefixes, old.prefixes); err != nil {
		return err
	}
	if wanted.broadcast && len(wanted.prefixes) == 0 {
		wanted.prefixes = []string{""}
	}
	return nil
}

// separate refuses prefixes of one session that overlap: it would hear twice of
// a key.
func separate(wanted, old []string) error {
	for i, prefix := range wanted {
		for _, other := range old {
			if overlap(prefix, other) {
				return command.Error(fmt.Sprintf("ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client must not overlap.", prefix, other))
			}
		}
		for _, other := range wanted[i+1:] {
			if overlap(prefix, other) {
				return command.Error(fmt.Sprintf("ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single client must not overlap.", prefix, other))
			}
		}
	}
	return nil
}

func clientCaching(c *command.Ctx) error {
	t := session(c).tracking
	if t == nil {
		return command.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	}
	switch {
	case command.Is(c.Args[2], "YES"):
		if !t.optIn {
			return command.Error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
		}
	case command.Is(c.Args[2], "NO"):
		if !t.optOut {
			return command.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
		}
	default:
		return command.ErrSyntax
	}
	t.caching = true
	c.Out.SimpleString("OK")
	return nil
}

func clientGetRedir(c *command.Ctx) error {
	c.Out.Int(session(c).redirect())
	return nil
}

// redirect is whom messages go to: 0 is the session itself, -1 nobody, since it
// does not track.
func (s *Session) redirect() int64 {
	if s.tracking == nil {
		return -1
	}
	return s.tracking.redirect
}

func clientTrackingInfo(c *command.Ctx) error {
	s := session(c)
	flags, prefixes := []string{"off"}, []string(nil)
	if t := s.tracking; t != nil {
		flags, prefixes = t.flags(), t.prefixes
	}
	c.Out.Map(3)
	c.Out.BulkString("flags")
	c.Out.Set(len(flags))
	for _, flag := range flags {
		c.Out.BulkString(flag)
	}
	c.Out.BulkString("redirect")
	c.Out.Int(s.redirect())
	c.Out.BulkString("prefixes")
	c.Out.Array(len(prefixes))
	for _, prefix := range prefixes {
		c.Out.BulkString(prefix)
	}
	return nil
}

func (t *tracking) flags() []string {
	flags := []string{"on"}
	for _, f := range []struct {
		set  bool
		name string
	}{
		{t.broadcast, "bcast"},
		{t.optIn, "optin"},
		{t.optIn && t.caching, "caching-yes"},
		{t.optOut, "optout"},
		{t.optOut && t.caching, "caching-no"},
		{t.noLoop, "noloop"},
		{t.broken, "broken_redirect"},
	} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// forgetCaching ends what CLIENT CACHING has said about one command: after that
// command, or the transaction that it opens. Commands of CLIENT do not count.
func (s *Session) forgetCaching(ran *command.Spec) {
	if s.tracking != nil && s.transaction == nil && ran.Container() != "client" {
		s.tracking.caching = false
	}
}
