package exec

import (
	"fmt"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// A log of what was propagated is replayed one request after the other, on a session that
// nobody else has. What was decided when the log was written is not decided again: nothing
// expires, is evicted, refused for want of rights or memory, blocks, or is told to anybody.

// Replay runs one request of a log. Requests between MULTI and EXEC are kept until EXEC
// comes. The error names a command that is unknown, has a wrong number of arguments, or
// can be in no log, which then is not one of ours; or it is what the command answered.
// Until Replayed nothing else may be run.
func (m *Machine) Replay(nowUs int64, args [][]byte) error {
	if m.replay == nil {
		m.startReplay(nowUs)
	}
	return m.runPropagated(m.replay, nowUs, args)
}

// runPropagated runs a request that stands for a change on another run, or server.
func (m *Machine) runPropagated(s *Session, nowUs int64, args [][]byte) error {
	m.nowUs = nowUs
	spec, err := m.findInLog(args)
	if err != nil {
		return err
	}
	s.lastCommand = spec
	if s.transaction != nil && !runsInsideMulti(spec) {
		s.transaction.queue(spec, args)
		return nil
	}
	s.Out.Reset()
	if _, blocks := m.call(s, spec, args, &s.Out, false); blocks {
		return fmt.Errorf("%s would block", spec.FullName())
	}
	return replayError(spec, s.Out.Bytes())
}

// Replayed ends the replay, and normal life begins. It reports whether the log ended in a
// transaction without its EXEC, of which nothing was run.
func (m *Machine) Replayed() (unfinished bool) {
	if m.replay == nil {
		return false
	}
	unfinished = m.replay.transaction != nil
	m.replay = nil
	m.space.Loading = false
	m.listen(m.settings.Text("notify-keyspace-events"))
	if m.tracker.sessions > 0 {
		m.space.OnChange(m.keyChanged, m.allGone)
	}
	if !m.heldOff { // else there may be more files, which have seen what was served
		m.serveReady()
	}
	return unfinished
}

func (m *Machine) startReplay(nowUs int64) {
	m.nowUs = nowUs
	m.replay = &Session{
		machine: m, db: m.space.DB(0), authenticated: true, Addr: localAddr, LocalAddr: localAddr,
		createdUs: nowUs, lastUs: nowUs,
	}
	m.memory.short = false
	m.space.Loading = true
	m.space.Listen(0, nil)
	m.space.OnChange(nil, nil)
}

// findInLog returns the record of a request that may be in a log: of a command that works
// on data, or one of the few that say where and how it does.
func (m *Machine) findInLog(args [][]byte) (*command.Spec, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a request without words")
	}
	spec, err := m.find(args)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: %w", clip(args[0]), err)
	case spec.Run == nil || !belongsInLog(spec):
		return nil, fmt.Errorf("%q does not belong into a log", clip(args[0]))
	}
	return spec, nil
}

func belongsInLog(spec *command.Spec) bool {
	if spec.Flags&(command.Write|command.ReadOnly) != 0 {
		return true
	}
	switch spec.FullName() {
	case "select", "multi", "exec", "discard", "ping", "publish", "spublish",
		"eval", "evalsha", "fcall", "script|load": // as Redis wrote them before 7.0
		return true
	}
	return false
}

// replayError is the error that a reply is, or that an element of the reply to EXEC is.
func replayError(spec *command.Spec, reply []byte) error {
	if spec.Name != "exec" && len(reply) > 0 && reply[0] != '-' {
		return nil // as nearly all are
	}
	value, _, err := resp.Parse(reply)
	if err != nil {
		return fmt.Errorf("%s: %w", spec.FullName(), err)
	}
	if err = value.Err(); err == nil && spec.Name == "exec" {
		for _, one := range value.Elems {
			if err = one.Err(); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", spec.FullName(), err)
	}
	return nil
}
