package exec

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// SHUTDOWN ends the engine, which is not the process: whoever has opened the
// engine sees it closed. If a snapshot is wanted first, nobody else is served
// until it is on disk; if that fails, the engine goes on. What is in the
// append-only file by then is on disk either way: the shell sees to that.

func (m *Machine) shutdownSpecs() []command.Spec {
	return []command.Spec{{
		Name: "shutdown", Arity: -1, Group: "server", Since: "1.0.0",
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
		Summary: "Ends the server.", Complexity: "O(1), O(N) for N keys with a snapshot", Run: m.shutdown,
	}}
}

func (m *Machine) shutdown(c *command.Ctx) error {
	var noSave, save, now, force, abort bool
	for _, a := range c.Args[1:] {
		switch {
		case command.Is(a, "NOSAVE"):
			noSave = true
		case command.Is(a, "SAVE"):
			save = true
		case command.Is(a, "NOW"):
			now = true
		case command.Is(a, "FORCE"):
			force = true
		case command.Is(a, "ABORT"):
			abort = true
		default:
			return command.ErrSyntax
		}
	}
	switch {
	case abort && (noSave || save || now || force), noSave && save:
		return command.ErrSyntax
	case abort:
		return m.abortShutdown(c)
	case m.Busy() && !noSave:
		return m.errBusy()
	case !m.wantsLastSave(save, noSave):
		session(c).closing = true
		m.effects.Shutdown = true
		return nil
	}
	m.holdAll()
	return m.saveFor(c, waitingSave{session: session(c), number: m.blockings + 1, shutdown: true, force: force})
}

const errShutdown = command.Error("ERR Errors trying to SHUTDOWN. Check logs.")

// wantsLastSave reports whether the end is preceded by a snapshot: when asked for, or
// when snapshots are made at all.
func (m *Machine) wantsLastSave(save, noSave bool) bool {
	return m.Kept() && !noSave && (save || len(m.persistence.rules) > 0)
}

// Shutdown begins to end the machine, as SHUTDOWN does, for the shell. It reports
// whether there is a snapshot to wait for: then JobEnded asks for the end,
// whether the data is on disk or not.
func (m *Machine) Shutdown(nowUs int64) (waits bool) {
	m.nowUs = nowUs
	if !m.wantsLastSave(false, false) {
		return false
	}
	p := &m.persistence
	m.holdAll()
	p.next = append(p.next, waitingSave{shutdown: true, force: true})
	m.beginScheduled()
	return true
}

// holdAll lets nobody be served any more: what they write would not be in the
// snapshot.
func (m *Machine) holdAll() {
	m.pause.untilUs, m.pause.everything = math.MaxInt64, true
	m.space.Frozen = true
}

// endShutdown ends the engine, or lets it go on if the data is not on disk.
func (m *Machine) endShutdown(w waitingSave, err error) {
	if err == nil || w.force {
		m.effects.Shutdown = true
		m.answer(w, func(*resp.Writer) { w.session.closing = true })
		return
	}
	m.resume()
	m.answer(w, func(out *resp.Writer) { out.Error(string(errShutdown)) })
}

func (m *Machine) abortShutdown(c *command.Ctx) error {
	p := &m.persistence
	for _, queue := range []*[]waitingSave{&p.waiting, &p.next} {
		for i, w := range *queue {
			if w.shutdown && w.session != nil {
				*queue = append((*queue)[:i:i], (*queue)[i+1:]...)
				m.answer(w, func(out *resp.Writer) { out.Error(string(errShutdown)) })
				m.pause.ended = true
				c.Out.SimpleString("OK")
				return nil
			}
		}
	}
	return command.Error("ERR No shutdown in progress.")
}
