package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/acl"
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Session is one client of the machine: a connection, or a caller in process.
type Session struct {
	// ID counts up from 1 over the machine's life, as CLIENT ID reports it.
	ID int64
	// Addr and LocalAddr are the two ends of the connection, for CLIENT LIST.
	Addr, LocalAddr string
	// Out collects the replies. The shell takes them after each batch.
	Out resp.Writer
	// Stream is what a replica is to have after Out. The shell takes it, too.
	Stream replication.Pieces
	// Large is for the time of a Step: those of its arguments that may be kept. The
	// shell sets it; may be nil.
	Large *resp.Large
	// Buffers is the memory that the shell keeps for the session, as of its last batch.
	Buffers Buffers
	// Unread reports how much has been sent that the client has not taken. The shell
	// sets it; may be nil.
	Unread func() int

	machine *Machine
	db      *keyspace.DB

	name, libName, libVersion string
	user                      *acl.User // nil may do everything
	authenticated             bool
	noEvict, noTouch          bool
	createdUs, lastUs         int64
	lastCommand               *command.Spec

	transaction *transaction
	watch       keyspace.Watch
	blocked     *blocked
	tracking    *tracking // nil: not told of changes to keys
	monitoring  bool      // sees all commands

	channels, patterns, shards topicList
	pushes                     resp.Writer // messages to itself while its command runs
	silence                    silence
	unheard                    resp.Writer // takes the replies that are not sent
	closing                    bool
	replica                    *replica // nil: it has said nothing of being one
	link                       *Link    // whose stream it runs; nil: none
	sawUpTo                    int64    // in the stream: where it was when the last request had run
	woken                      bool     // already in Effects.Wake
	held                       int64    // the memory that it was last found to hold
	peak                       replyPeak
}

// Blocked reports whether the session waits for a key, and since which call:
// each blocking has its own number, so that a late timer can be told from the
// right one. untilUs is when its time is up, 0 for never.
func (s *Session) Blocked() (number uint64, untilUs int64, ok bool) {
	if s.blocked == nil {
		return 0, 0, false
	}
	return s.blocked.number, s.blocked.untilUs, true
}

// Disturbed reports whether a key that the session watches has changed.
func (s *Session) Disturbed(nowUs int64) bool { return s.watch.Broken(nowUs / 1000) }

// Closing reports whether the connection is to be closed once its replies have
// been written.
func (s *Session) Closing() bool { return s.closing }

// Authenticated reports whether the session may run commands other than AUTH
// and HELLO; the request parser has tighter limits before.
func (s *Session) Authenticated() bool {
	return s.authenticated || s.machine.users.Default().Open()
}

// Subscriber reports whether the session has any subscription.
func (s *Session) Subscriber() bool {
	return s.channels.len()+s.patterns.len()+s.shards.len() > 0
}

// Pristine reports whether nothing of earlier calls is left on the session.
func (s *Session) Pristine() bool {
	return s.db.Index == 0 && s.transaction == nil && s.watch.Empty() && s.blocked == nil &&
		!s.Subscriber() && s.tracking == nil && s.Out.Proto != 3 && s.name == "" && s.libName == "" && s.libVersion == "" &&
		!s.noEvict && !s.noTouch && s.silence == (silence{}) && s.authenticated && s.user == nil && !s.closing
}

// silence is what CLIENT REPLY has asked for. It holds for replies only:
// messages and the confirmations of subscriptions are sent all the same.
type silence struct{ off, next, now bool }

// replies is where the reply to the session's request goes.
func (s *Session) replies() *resp.Writer {
	if !s.silence.off && !s.silence.now {
		return &s.Out
	}
	s.unheard.Proto = s.Out.Proto
	return &s.unheard
}

// replied is called after each request. CLIENT REPLY SKIP is about the next
// request, however long that one has to wait for its reply.
func (s *Session) replied(out *resp.Writer) {
	if out == &s.unheard {
		s.Out.Proto = out.Proto
		out.Reset()
	}
	if s.blocked == nil {
		s.silence.now, s.silence.next = s.silence.next, false
	}
}

// heard is where a confirmation goes that silence does not hold back.
func (s *Session) heard(out *resp.Writer) *resp.Writer {
	if out == &s.unheard {
		return &s.Out
	}
	return out
}

// session is the caller of a command of this package.
func session(c *command.Ctx) *Session { return c.Caller.(*Session) }

// localAddr is the address of sessions in process. CLIENT KILL passes them over.
const localAddr = "local:0"
