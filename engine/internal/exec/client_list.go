package exec

import (
	"fmt"
	"strings"
)

// describe is the line of a session in CLIENT LIST. The buffer of replies (rbs, rbp, obl) is the
// one that its commands write into; what waits for the peer to read it (oll, omem) is one more.
func (m *Machine) describe(s *Session) string {
	queued, last, library, unread, waiting, events := -1, "NULL", "", 0, 0, "r"
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
		unread = s.Unread()
		s.Buffers.UnreadBytes = unread
	}
	if unread > 0 {
		waiting, events = 1, "rw"
	}
	args, b := m.argumentBytes(s), &s.Buffers
	total := sessionBytes + max(int(s.holds()), b.QueryBytes+b.FreeBytes) + args
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=%d "+
		"qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=%d rbp=%d obl=%d oll=%d omem=%d tot-mem=%d events=%s cmd=%s user=%s redir=%d resp=%d%s",
		s.ID, s.Addr, s.LocalAddr, s.name, (m.nowUs-s.createdUs)/1e6, (m.nowUs-s.lastUs)/1e6, s.flags(), s.db.Index,
		s.channels.len(), s.patterns.len(), s.shards.len(), queued,
		b.QueryBytes, b.FreeBytes, args, s.QueuedBytes(), s.Out.Cap(), s.peak.bytes, s.Out.Len(), waiting, unread, total, events, last, s.userName(), s.redirect(), max(s.Out.Proto, 2), library)
}

func (s *Session) userName() string {
	if s.user == nil {
		return "(superuser)"
	}
	return s.user.Name
}

// flags are the letters that CLIENT LIST describes a session with, N for none.
func (s *Session) flags() string {
	var flags strings.Builder
	for _, f := range []struct {
		set    bool
		letter byte
	}{
		{s.monitoring, 'O'},
		{s.IsReplica(), 'S'},
		{s.link != nil, 'M'},
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
