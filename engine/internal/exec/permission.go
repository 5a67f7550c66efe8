package exec

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/acl"
	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// Every call is checked where it is about to be run or queued: by Step, again
// by EXEC, since rights may have changed, and by Call for scripts. A session
// without a user, which is a caller in process, may do everything, and so may
// an unrestricted user: that is the one test which the others cost nobody.

// free reports whether the session's calls need no check.
func (s *Session) free() bool { return s.user == nil || s.user.Unrestricted() }

// denied checks a call of a session that is not free, and notes a denial in
// the log. It returns why.
func (m *Machine) denied(s *Session, spec *command.Spec, args [][]byte, context acl.Context) acl.Denial {
	why, position := s.user.Check(spec, args)
	if why == acl.Allowed {
		return why
	}
	object := spec.FullName()
	if why != acl.DeniedCommand {
		object = string(args[position])
	}
	m.logDenial(s, why, context, object, s.user.Name)
	return why
}

func (m *Machine) logDenial(s *Session, why acl.Denial, context acl.Context, object, user string) {
	if s == m.script {
		s = m.current
	}
	m.denials.Add(acl.Entry{
		Why: why, Context: context, Object: object, User: user, AtMs: m.nowUs / 1000, Client: m.describe(s),
	}, m.settings.Int("acllog-max-len"))
}

// permitted is the check of Step.
func (m *Machine) permitted(s *Session, spec *command.Spec, args [][]byte) error {
	context := acl.AtTopLevel
	if s.transaction != nil {
		context = acl.InMulti
	}
	switch m.denied(s, spec, args, context) {
	case acl.Allowed:
		return nil
	case acl.DeniedCommand:
		return command.Error("NOPERM this user has no permissions to run the '" + spec.FullName() + "' command")
	case acl.DeniedChannel:
		return command.Error("NOPERM this user has no permissions to access one of the channels used as arguments")
	default:
		return command.Error("NOPERM this user has no permissions to access one of the keys used as arguments")
	}
}

// stillPermitted is the check of EXEC.
func (m *Machine) stillPermitted(s *Session, call queuedCall) error {
	var reason string
	switch m.denied(s, call.spec, call.args, acl.InMulti) {
	case acl.Allowed:
		return m.mayReadOthers(s, call.spec, call.args)
	case acl.DeniedCommand:
		reason = "no permission to execute the command or subcommand"
	case acl.DeniedChannel:
		reason = "no permission to access one of the channels used as arguments"
	default:
		reason = "no permission to touch the specified keys"
	}
	return command.Error("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + reason)
}

// permittedToScript is the check of Call.
func (m *Machine) permittedToScript(s *Session, spec *command.Spec, args [][]byte) error {
	var reason string
	switch m.denied(s, spec, args, acl.InScript) {
	case acl.Allowed:
		return m.mayReadOthers(s, spec, args)
	case acl.DeniedCommand:
		reason = "can't run this command or subcommand"
	case acl.DeniedChannel:
		reason = "can't publish to the channel mentioned in the command"
	default:
		reason = "can't access at least one of the keys mentioned in the command arguments"
	}
	return command.Error("ERR The user executing the script " + reason)
}

// mayReadOthers refuses SORT with BY or GET, which read keys that no argument
// names, to those who may not read all keys.
func (m *Machine) mayReadOthers(s *Session, spec *command.Spec, args [][]byte) error {
	if spec.Name != "sort" && spec.Name != "sort_ro" || s.free() {
		return nil
	}
	option := sortReadsOthers(args)
	if option == "" || s.user.ChecksReadAll(spec, args) {
		return nil
	}
	return command.Error("ERR " + option + " option of SORT denied due to insufficient ACL permissions.")
}

// sortReadsOthers returns the first option of a SORT by which it reads other
// keys; "" if there is none. BY with a name that holds no star only means that
// nothing is to be sorted.
func sortReadsOthers(args [][]byte) string {
	for i := 2; i < len(args); i++ {
		left := len(args) - i - 1
		switch {
		case command.Is(args[i], "LIMIT"):
			i += 2
		case command.Is(args[i], "STORE"):
			i++
		case command.Is(args[i], "GET") && left >= 1:
			return "GET"
		case command.Is(args[i], "BY") && left >= 1:
			i++
			if strings.Contains(string(args[i]), "*") {
				return "BY"
			}
		}
	}
	return ""
}
