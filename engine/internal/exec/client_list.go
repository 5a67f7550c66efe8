package exec

import (
	"fmt"
	"strings"
)

// describe is the line of a session in CLIENT LIST. What Redis tells there of
// buffers that do not exist here is 0.
func (m *Machine) describe(s *Session) string {
	queued, last, library, unread, events := -1, "NULL", "", s.Out.Len(), "r"
	if s.transaction != nil {
		queued = len(s.transaction.calls)
	}
	if s.lastCommand != nil {
		last = s.lastCommand.FullName()
	}
	if s.libName != "" || s.libVersion != "" {
		library = " lib-name=" + s.libName + " lib-ver=" + s.libVersion
	}
	if s.Unread != nil {
		unread += s.Unread()
	}
	if unread > s.Out.Len() {
		events = "rw"
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=%d "+
		"qbuf=%d qbuf-free=0 argv-mem=0 multi-mem=%d rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=%s cmd=%s user=%s redir=%d resp=%d%s",
		s.ID, s.Addr, s.LocalAddr, s.name, (m.nowUs-s.createdUs)/1e6, (m.nowUs-s.lastUs)/1e6, s.flags(), s.db.Index,
		s.channels.len(), s.patterns.len(), s.shards.len(), queued,
		s.QueryBytes, s.queuedBytes(), unread, unread+s.QueryBytes+s.queuedBytes(), events, last, s.userName(), s.redirect(), max(s.Out.Proto, 2), library)
}

func (s *Session) userName() string {
	if s.user == nil {
		return "(superuser)"
	}
	return s.user.Name
}

// queuedBytes is the size of the arguments that a transaction keeps.
func (s *Session) queuedBytes() (total int) {
	if s.transaction == nil {
		return 0
	}
	for _, call := range s.transaction.calls {
		for _, arg := range call.args {
			total += len(arg)
		}
	}
	return total
}

// flags are the letters that CLIENT LIST describes a session with, N for none.
func (s *Session) flags() string {
	var flags strings.Builder
	for _, f := range []struct {
		set    bool
		letter byte
	}{
		{s.monitoring, 'O'},
		{s.Subscriber(), 'P'},
		{s.transaction != nil, 'x'},
		{s.blocked != nil, 'b'},
		{s.tracking != nil, 't'},
		{s.tracking != nil && s.tracking.broken, 'R'},
		{s.tracking != nil && s.tracking.broadcast, 'B'},
		{s.watch.Marked(), 'd'},
		{s.closing, 'c'},
		{s.isUnix(), 'U'},
		{s.noEvict, 'e'},
		{s.noTouch, 'T'},
	} {
		if f.set {
			flags.WriteByte(f.letter)
		}
	}
	if flags.Len() == 0 {
		return "N"
	}
	return flags.String()
}
