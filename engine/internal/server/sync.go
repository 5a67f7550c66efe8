package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// A full synchronisation, as the primary sees it: the snapshot goes from memory to all replicas that wait, as fast as the
// slowest of them takes it. Clients never wait for that. What gathers meanwhile, the changes that the replicas are to
// have next and what the snapshot has to keep, is bounded by client-output-buffer-limit; above it the replicas
// are disconnected, and begin again.

// mostUnsent is how much of a snapshot may be on its way to a replica.
const mostUnsent = 1 << 20

// fullSync is one that is under way.
type fullSync struct {
	server *Server
	sync   *exec.Sync
	conns  []*conn
	began  time.Time
	served int64
	peak   int64
}

// beginSync begins a full synchronisation. The lock is held, and all that was changed is in the stream.
func (s *Server) beginSync() {
	sync, err := s.machine.BeginSync(nowUs())
	f := &fullSync{server: s, sync: sync, began: time.Now()}
	if sync == nil || err != nil {
		s.tasks.Go(func() { f.ended(err) }) // not within the step that asked for it
		return
	}
	s.tasks.Go(f.run)
}

func (f *fullSync) run() {
	s := f.server
	s.mu.Lock()
	after := s.carryOut() // the replicas are told that it begins
	s.mu.Unlock()
	after.settle()
	err := f.pour()
	if err != nil {
		f.forget()
	}
	f.ended(err)
}

// pour sends the snapshot, step by step.
func (f *fullSync) pour() error {
	seal := rdb.NewSeal(f, f.server.machineSums())
	pace := pace{began: time.Now(), busy: true}
	var parts [][]byte
	for done := false; !done; {
		var err error
		if done, parts, err = f.step(parts); err != nil {
			return err
		}
		for _, part := range parts {
			if _, err := seal.Write(part); err != nil {
				return err
			}
		}
		if err := f.await(); err != nil {
			return err
		}
		pace.rest(f.served, false)
	}
	if err := seal.Close(); err != nil {
		return err
	}
	_, err := f.Write([]byte(f.sync.Mark))
	return err
}

// machineSums reports whether files have checksums.
func (s *Server) machineSums() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Settings().Bool("rdbchecksum")
}

// step takes one step of the snapshot, and what there is to send, and to whom.
func (f *fullSync) step(sent [][]byte) (done bool, parts [][]byte, err error) {
	s := f.server
	s.mu.Lock()
	defer s.mu.Unlock()
	f.served = s.served
	f.conns = f.conns[:0]
	for _, session := range f.sync.Sessions() {
		if c, ok := s.bySession[session].(*conn); ok {
			f.conns = append(f.conns, c)
		}
	}
	waiting := f.sync.WaitingBytes()
	f.peak = max(f.peak, waiting)
	switch limit := s.machine.OutputLimit(exec.OutputReplica).HardBytes; {
	case s.closed:
		return false, nil, exec.ErrCancelled
	case len(f.conns) == 0:
		return false, nil, fmt.Errorf("%w: no replica is left", exec.ErrCancelled)
	case limit > 0 && waiting > limit:
		return false, nil, fmt.Errorf("what has changed meanwhile is more than client-output-buffer-limit allows replicas (%d bytes): "+
			"raise it, or the replicas will never catch up", limit)
	}
	done, err = f.sync.Snapshot.Step(stepBytes, stepKeys)
	return done, f.sync.Snapshot.Take(sent), err
}

// Write sends a piece to all replicas. It never waits.
func (f *fullSync) Write(piece []byte) (int, error) {
	for _, c := range f.conns {
		c.offer(piece)
	}
	return len(piece), nil
}

// await waits until all replicas have taken most of what they were sent. Who takes too long is disconnected.
func (f *fullSync) await() error {
	s := f.server
	for _, c := range f.conns {
		taken := c.behind(mostUnsent)
		if taken == nil {
			continue
		}
		timer := time.NewTimer(s.replicationTimeout())
		select {
		case <-taken:
		case <-timer.C:
			s.warn("the replica %s takes nothing of its snapshot (repl-timeout), and is disconnected", c.nc.RemoteAddr())
			c.lose()
			c.settle()
		case <-s.done:
		}
		timer.Stop()
	}
	select {
	case <-s.done:
		return exec.ErrCancelled
	default:
		return nil
	}
}

func (s *Server) replicationTimeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.machine.Settings().Int("repl-timeout")) * time.Second
}

// forget ends a snapshot that came to nothing, so that another one can begin.
func (f *fullSync) forget() {
	s := f.server
	for done := false; !done; {
		s.mu.Lock()
		f.sync.Snapshot.Abort()
		done, _ = f.sync.Snapshot.Step(stepBytes, 16*stepKeys) // an aborted one writes nothing
		s.mu.Unlock()
	}
}

// ended tells the machine.
func (f *fullSync) ended(err error) {
	s := f.server
	s.lockAtRest()
	replicas := 0
	if f.sync != nil {
		if replicas = len(f.sync.Sessions()); err == nil {
			f.sync.Sent()
		} else {
			f.sync.GiveUp()
		}
	}
	switch {
	case errors.Is(err, exec.ErrCancelled):
		s.note("a full synchronisation: %v", err)
	case err != nil:
		s.warn("a full synchronisation: %v", err)
	case f.sync != nil:
		s.note("a full synchronisation of %d replicas took %v", replicas, time.Since(f.began).Round(time.Millisecond))
	}
	s.machine.JobEnded(nowUs(), f.peak, err)
	after := s.carryOut()
	s.mu.Unlock()
	after.settle()
}

// offer sends a replica a piece of a snapshot.
func (c *conn) offer(piece []byte) {
	c.out.Lock()
	if !c.broken {
		c.pending = append(c.pending, piece...)
	}
	c.out.Unlock()
	c.flush()
}

// behind returns a channel to wait on if more than so much of what was sent is unread; it is closed when all was
// read.
func (c *conn) behind(most int) <-chan struct{} {
	c.out.Lock()
	defer c.out.Unlock()
	if c.unwrittenBytes() <= most || c.broken {
		return nil
	}
	return c.whenDrained()
}
