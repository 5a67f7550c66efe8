package server

import (
	"context"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// local is a session for calls in process: no connection, no parsing.
type local struct {
	server  *Server
	session *exec.Session
	replied chan struct{} // a blocked call has its reply
	own     bool          // which has come of a change
	timer   *time.Timer
}

func (l *local) deliver() {
	if _, _, blocked := l.session.Blocked(); blocked {
		return
	}
	l.own = l.server.keeper != nil && l.server.keeper.changed
	select {
	case l.replied <- struct{}{}:
	default:
	}
}

func (l *local) hangUp() {}

func (l *local) settle() {}

func (l *local) lose() {} // whoever waits commits

// Do runs one command in process and returns its decoded reply. Each call has
// a session to itself: nothing carries over from one call to the next.
func (s *Server) Do(ctx context.Context, args [][]byte) (resp.Value, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return resp.Value{}, ErrClosed
	}
	l := s.borrow()
	own := s.spares.lend(&l.session.Out)
	s.machine.Step(nowUs(), l.session, args)
	after := s.carryOut()
	reply := l.session.Out.Swap(own)
	defer func() { s.spares.returnOutput(reply) }()
	number, untilUs, blocked := l.session.Blocked()
	if s.closed { // by SHUTDOWN, or while a script ran
		s.drop(l)
		s.mu.Unlock()
		after.settle()
		return resp.Value{}, ErrClosed
	}
	if !blocked {
		s.giveBack(l)
		s.mu.Unlock()
		value, _, err := resp.Parse(reply)
		if unsafe := after.commit(); unsafe != nil {
			value, err = resp.Value{}, unsafe
		}
		after.settle()
		return value, err
	}
	if untilUs != 0 {
		l.timer = time.AfterFunc(time.Until(time.UnixMicro(untilUs)), func() { s.timeout(l.session, number) })
	}
	s.mu.Unlock()
	after.settle()
	return s.await(ctx, l)
}

// await waits for the reply of a blocked call.
func (s *Server) await(ctx context.Context, l *local) (resp.Value, error) {
	var err error
	select {
	case <-l.replied:
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.done:
		err = ErrClosed
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	s.mu.Lock()
	if _, _, blocked := l.session.Blocked(); blocked {
		s.drop(l)
		s.mu.Unlock()
		return resp.Value{}, err
	}
	select {
	case <-l.replied: // it came together with the end of the wait, and counts
	default:
	}
	value, _, err := resp.Parse(l.session.Out.Bytes())
	s.spares.empty(&l.session.Out)
	s.giveBack(l)
	after := aftermath{keeper: s.keeper, own: l.own}
	if after.keeper != nil {
		after.seq = after.keeper.reach()
	}
	s.mu.Unlock()
	if unsafe := after.commit(); unsafe != nil {
		return resp.Value{}, unsafe
	}
	return value, err
}

func (s *Server) borrow() *local {
	if n := len(s.idle); n > 0 {
		l := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return l
	}
	l := &local{server: s, session: s.machine.ConnectLocal(nowUs()), replied: make(chan struct{}, 1)}
	s.bySession[l.session] = l
	return l
}

// giveBack keeps the session, whose reply has been taken, for the next call, unless
// the call has left something on it (SELECT, MULTI, SUBSCRIBE).
func (s *Server) giveBack(l *local) {
	if l.session.Pristine() {
		s.idle = append(s.idle, l)
		return
	}
	s.drop(l)
}

func (s *Server) drop(l *local) {
	s.machine.Disconnect(l.session)
	delete(s.bySession, l.session)
}
