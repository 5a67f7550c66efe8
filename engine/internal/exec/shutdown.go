package exec

import (
	"fmt"
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// SHUTDOWN ends the engine, which is not the process: whoever has opened the
// engine sees it closed. If a snapshot is wanted first, nobody else is served
// until it is on disk; if that fails, the engine goes on. What is in the
// append-only file by then is on disk either way: the shell sees to that.
//
//	waiting for replicas ── all have it, or time is up ──▶ saving ──▶ the end
//	         └──────────────── ABORT ────────────────────────┘
//
// Replicas that lag get up to shutdown-timeout to hear what was written; writes wait
// meanwhile.

// ending is an end that waits for replicas.
type ending struct {
	waits   []waitingSave
	save    bool
	upTo    int64 // of the stream
	untilUs int64
}

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
	case save && !force && !m.Kept():
		return errShutdown // there is nowhere to save to
	}
	w := waitingSave{session: session(c), number: m.blockings + 1, shutdown: true, force: force}
	mostUs := m.settings.Int("shutdown-timeout") * 1e6
	if now {
		mostUs = 0
	}
	if !m.beginEnd(w, m.wantsLastSave(save, noSave), mostUs) {
		session(c).closing = true
		return nil
	}
	return c.Block(nil, 0, func(out *resp.Writer) { out.Error("ERR the shutdown goes on") }) // it has no end but its own
}

// beginEnd ends the machine, for one who waits for that if there is something to wait for: replicas, but no longer
// than mostUs, and a snapshot.
func (m *Machine) beginEnd(w waitingSave, save bool, mostUs int64) (waits bool) {
	const notice = 2
	upTo := m.streamEnd()
	switch {
	case m.ending != nil && mostUs > 0:
		m.ending.waits = append(m.ending.waits, w)
		return true
	case mostUs > 0 && m.lagging(upTo) > 0:
		m.options.Log(notice, fmt.Sprintf("the end waits for %d replicas, up to %d s (shutdown-timeout)", m.lagging(upTo), mostUs/1e6))
		m.ending = &ending{[]waitingSave{w}, save, upTo, m.nowUs + mostUs}
		m.pause.untilUs = math.MaxInt64
		m.freeze()
		m.repl.wantAcks = true
		return true
	}
	return m.saveAndEnd(save, w)
}

// saveAndEnd is the end when nobody is waited for any more.
func (m *Machine) saveAndEnd(save bool, waits ...waitingSave) (goesOn bool) {
	m.ending = nil
	if !save {
		m.effects.Shutdown = true
		for _, w := range waits {
			m.answer(w, func(*resp.Writer) { w.session.closing = true })
		}
		return false
	}
	m.holdAll()
	m.persistence.next = append(m.persistence.next, waits...)
	m.beginScheduled()
	return true
}

// lagging counts the replicas that have not the stream up to an offset. One that waits for a snapshot is none yet.
func (m *Machine) lagging(upTo int64) (n int) {
	for _, s := range m.repl.replicas {
		if s.replica.state == replicaOnline && s.replica.ackOffset < upTo {
			n++
		}
	}
	return n
}

// lookWhoLags goes on with the end when all replicas have what they are to have, or when the time is up.
func (m *Machine) lookWhoLags() {
	const warning = 3
	e := m.ending
	if e == nil {
		return
	}
	lagging := m.lagging(e.upTo)
	if lagging > 0 && m.nowUs < e.untilUs {
		return
	}
	if lagging > 0 {
		m.options.Log(warning, fmt.Sprintf("%d replicas lack the last writes at the end: they are lost if one of them is promoted", lagging))
	}
	m.saveAndEnd(e.save, e.waits...)
}

const errShutdown = command.Error("ERR Errors trying to SHUTDOWN. Check logs.")

// wantsLastSave reports whether the end is preceded by a snapshot: when asked for, or
// when snapshots are made at all.
func (m *Machine) wantsLastSave(save, noSave bool) bool {
	return m.Kept() && !noSave && (save || len(m.persistence.rules) > 0)
}

// Shutdown begins to end the machine, as SHUTDOWN does, for the shell, which may wait for replicas so long. It
// reports whether there is something to wait for: then Effects.Shutdown says when it is over, whether the data is on
// disk or not.
func (m *Machine) Shutdown(nowUs, mostUs int64) (waits bool) {
	m.nowUs = nowUs
	mostUs = min(mostUs, m.settings.Int("shutdown-timeout")*1e6)
	return m.beginEnd(waitingSave{shutdown: true, force: true}, m.wantsLastSave(false, false), mostUs)
}

// holdAll lets nobody be served any more: what they write would not be in the
// snapshot.
func (m *Machine) holdAll() {
	m.pause.untilUs, m.pause.everything = math.MaxInt64, true
	m.freeze()
}

// savesLast reports whether holdAll holds everything. The stream stands still then: a replica that has heard more than the
// last snapshot knows could not go on from it.
func (m *Machine) savesLast() bool { return m.pause.everything && m.pause.untilUs == math.MaxInt64 }

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
	if e := m.ending; e != nil {
		m.ending, m.pause.ended = nil, true
		for _, w := range e.waits {
			m.answer(w, func(out *resp.Writer) { out.Error(string(errShutdown)) })
		}
		c.Out.SimpleString("OK")
		return nil
	}
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
