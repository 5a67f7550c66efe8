package server

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// The keeper keeps the data in a folder. What the machine has changed in a batch is
// appended to the log under the engine's lock, and committed without it before anybody
// is told: a reply is not sent before what it tells of is as safe as appendfsync says,
// be it another client's change. The order is that of DESIGN: append, commit, reply.
//
//	keeper.go  the log at work, and what happens when the disk fails
//	load.go    from the folder to the machine, at the start
//	job.go     snapshots and rewrites, in the background; pace.go how they share a core
//
// Invariant P1: what a connection has sent was committed before (conn.until). The one exception:
// while the log cannot be written, and always is not the policy, those who have changed nothing
// are answered all the same, and are shown what is in memory. Who has made a change then gets no
// answer, whatever the policy (conn.own), nor does whoever was to hear of it. With always requests
// for data are refused meanwhile, so what is answered tells of none (reach).
// Invariant P2: a job begins at an instant of the log: all that was changed before has
// been appended, and nothing of what comes after.

// ErrNotSafe is for a call whose effect is in memory, and perhaps not on disk.
var ErrNotSafe = errors.New("engine: what was written may not be on disk")

type keeper struct {
	server *Server
	disk   disk.Disk
	lock   io.Closer // of the folder

	// Guarded by the engine's lock.
	log      *aof.Log // nil: there is no append-only file
	appended int64
	changed  bool // by the last batch
	stale    bool // the log is of other data than there is: nothing is appended until there is another one
	policy   aof.Policy
	openErr  error  // why there is no log, though there should be
	baseErr  error  // why the last rewrite has come to nothing
	told     string // the trouble that was last told; "" if there was none
	job      *job
	due      exec.Effects // what is to begin, or to end, when no script is in the middle of its work
	saveErr  error        // of the last snapshot
	mending  bool         // a goroutine tries to get the log to work again
	overfull bool         // the log holds back more than it should
	// discarded is how many bytes of changes were given up: see discard.
	discarded int64

	committer atomic.Pointer[committer] // nil: there is no append-only file
	safe      atomic.Int64              // what is committed, and may be told
	shown     atomic.Int64              // what may be shown to those who have not made it
	always    atomic.Bool               // the policy
	warming   atomic.Bool               // the log is not in force yet: its first base is being written
}

// committer is a log and at which of the keeper's numbers it began: the numbers go on when
// the append-only file is turned off and on again.
type committer struct {
	log   *aof.Log
	began int64
}

// aftermath is what is left to do of a batch when the engine's lock has been given back.
type aftermath struct {
	keeper *keeper
	seq    int64         // up to where the log is to be committed
	own    bool          // the batch itself has changed something
	relief chan struct{} // to be waited for first, if it is not nil
	sinks  []sink
}

// commit waits until the batch, and all before it, may be told. The error says that it
// may not.
func (a *aftermath) commit() error {
	if a.keeper == nil {
		return nil
	}
	if a.relief != nil {
		select {
		case <-a.relief:
		case <-a.keeper.server.done:
		}
	}
	return a.keeper.commit(a.seq, a.own)
}

// waitsForDisk reports whether to commit is to wait until something is on disk.
func (a *aftermath) waitsForDisk() bool {
	return a.keeper != nil && a.keeper.always.Load() && !a.keeper.mayTell(a.seq)
}

// settle does what must not be done under the lock.
func (a *aftermath) settle() {
	err := a.commit()
	for _, sink := range a.sinks {
		if err != nil {
			sink.lose()
		}
		sink.settle()
	}
}

// append adds what a batch has changed; wrote says whether somebody asked for that. The lock is held.
func (k *keeper) append(requests []byte, wrote bool) {
	k.changed = len(requests) > 0 && wrote
	if len(requests) > 0 && k.log != nil && !k.stale {
		var seq int64
		seq, k.overfull = k.log.Append(requests) // whoever has appended commits: that bounds it, but on a replica
		k.appended = k.committer.Load().began + seq
	}
}

// reach is up to where what the batch has answered tells of. The lock is held.
func (k *keeper) reach() int64 {
	if k.server.machine.HidesData() && !k.changed {
		return 0
	}
	return k.appended
}

// commit waits until the log is as safe as the policy promises up to seq. An error says that it
// is not, and that whoever has made (own), or has seen, what is there must not be told.
func (k *keeper) commit(seq int64, own bool) error {
	if k.mayTell(seq) || !own && k.mayShow(seq) {
		return nil
	}
	c := k.committer.Load()
	if c == nil {
		return nil // it was turned off just now
	}
	if err := c.log.Commit(seq - c.began); err != nil && !errors.Is(err, aof.ErrClosed) {
		k.trouble()
		if own || k.always.Load() {
			return fmt.Errorf("%w: %w", ErrNotSafe, err)
		}
		raise(&k.shown, seq)
		return nil
	}
	raise(&k.safe, seq)
	return nil
}

// raise makes n at least as large as to.
func raise(n *atomic.Int64, to int64) {
	for {
		if now := n.Load(); now >= to || n.CompareAndSwap(now, to) {
			return
		}
	}
}

// mayTell reports whether what happened up to seq may be told.
func (k *keeper) mayTell(seq int64) bool {
	return seq <= k.safe.Load() || k.warming.Load() || k.committer.Load() == nil
}

// mayShow reports whether what happened up to seq may be told to those who have not made it.
func (k *keeper) mayShow(seq int64) bool { return seq <= k.shown.Load() && !k.always.Load() }

// trouble is for somebody who has found that the log does not work.
func (k *keeper) trouble() {
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	k.look()
}

// look has writes refused when the log does not work, and somebody see to that. It is called
// now and then, for a disk can fail while nobody waits for it. The lock is held.
func (k *keeper) look() {
	if k.mending || k.server.closed || k.works() == nil {
		return
	}
	k.mending = true
	k.tell()
	k.server.tasks.Go(k.mend)
}

// wantsLog reports whether there should be an append-only file. The lock is held.
func (k *keeper) wantsLog() bool {
	m := k.server.machine
	return m.Kept() && m.Settings().Bool("appendonly")
}

// works says why the log is not what it should be. The lock is held.
func (k *keeper) works() error {
	switch {
	case !k.wantsLog():
		return nil
	case !k.mending && k.job != nil && (k.log == nil || k.warming.Load()):
		return nil // it is about to be
	case k.log == nil:
		return k.openErr
	}
	err := k.log.Status().Err
	var failed *aof.FailedError
	if errors.As(err, &failed) && failed.Err == nil && k.baseErr != nil {
		return fmt.Errorf("the append-only file could not be begun: %w", k.baseErr)
	}
	return err
}

// tell tells the machine, and whoever reads the log, how the disk is, if that is news. The lock
// is held.
func (k *keeper) tell() {
	err := k.works()
	k.server.machine.DiskState(err)
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch text {
	case k.told:
	case "":
		k.server.note("writes are taken again")
	default:
		k.server.warn("%s: writes are refused until the disk works again", text)
	}
	k.told = text
}

// mend tries once a second to get the log to work again.
func (k *keeper) mend() {
	const every = time.Second
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-k.server.done:
			return
		}
		if k.mended() {
			return
		}
	}
}

// mended makes an attempt, and says whether the log works.
func (k *keeper) mended() bool {
	s := k.server
	s.mu.Lock()
	log := k.log
	s.mu.Unlock()
	if log != nil {
		_ = log.Retry() // what it has come to is seen next
	}
	s.lockAtRest()
	k.discard()
	if k.works() == nil {
		k.mending = false
		k.tell()
		s.mu.Unlock()
		return true
	}
	if k.log == nil || k.log.Status().State == aof.NeedsBase {
		s.machine.WantRewrite(nowUs())
	}
	after := s.carryOut()
	s.mu.Unlock()
	after.settle()
	return false
}

// state is what INFO says of the log. The lock is held.
func (k *keeper) state() exec.LogState {
	if k.log == nil {
		return exec.LogState{DiscardedBytes: k.discarded}
	}
	status := k.log.Status()
	pending := 0
	if status.PendingSync {
		pending = 1
	}
	return exec.LogState{
		Bytes: status.CurrentBytes, BaseBytes: status.BaseBytes, BufferBytes: int(status.BufferBytes),
		PendingSyncs: pending, DelayedSyncs: status.DelayedSyncs, DiscardedBytes: k.discarded, Err: status.Err,
	}
}

// follow makes the log heed appendfsync. The lock is held.
func (k *keeper) follow() {
	k.policy = map[string]aof.Policy{
		"always": aof.Always, "everysec": aof.EverySecond, "no": aof.Never,
	}[k.server.machine.Settings().Text("appendfsync")]
	k.always.Store(k.policy == aof.Always)
	if k.log != nil {
		k.log.SetPolicy(k.policy)
	}
}

// openLog begins an append-only file anew: what is in the folder counts for nothing once the
// rewrite that begins with it has finished. The lock is held; it waits for the disk, once.
func (k *keeper) openLog() error {
	set, err := aof.Open(k.disk, k.names())
	if err != nil {
		return err
	}
	log, err := set.Start(aof.Options{Policy: k.policy, NeedsBase: true})
	if err != nil {
		return errors.Join(err, set.Close())
	}
	k.use(log, true)
	return nil
}

// use makes a log the one that is appended to. The lock is held.
func (k *keeper) use(log *aof.Log, warming bool) {
	k.log = log
	k.warming.Store(warming)
	k.committer.Store(&committer{log, k.appended})
	k.server.machine.Propagate(true)
}

// endLog ends the append-only file. The lock is held; it waits for the disk, once.
func (k *keeper) endLog() {
	if k.log == nil {
		return
	}
	if k.job != nil && k.job.rewrite != nil {
		k.job.cancel()
		return // its end ends the log
	}
	k.dropLog()
	k.tell()
}

// dropLog closes the log. The lock is held; it waits for the disk, once.
func (k *keeper) dropLog() {
	k.stale = false
	if k.log == nil {
		return
	}
	k.server.machine.Propagate(false)
	if err := k.log.Close(); err != nil {
		k.server.warn("closing the append-only file: %v", err)
	}
	k.log = nil
	k.committer.Store(nil) // not before: who waits for the log waits until it is closed
}

// replaced is for other data in the place of all that there was (a replica's full synchronisation). The files stay
// what they are, for a crash, until there is an append-only file of the new data, which the machine asks for. The lock is held.
func (k *keeper) replaced() {
	if k.job == nil {
		k.dropLog()
		return
	}
	k.stale = k.log != nil
	k.job.cancel() // its end drops the log
}

// discard gives up what a replica holds back for a log that cannot be written: its primary does not stop because of that,
// and all of it is in memory. The files stay what they are, until the log can be written anew. The lock is held.
func (k *keeper) discard() {
	k.overfull = false
	if k.log == nil || k.stale || k.server.machine.Link() == nil {
		return
	}
	status := k.log.Status()
	if !status.Full || status.WriteErr == nil { // or it is slow
		return
	}
	k.discarded += status.BufferBytes
	k.openErr = fmt.Errorf("the append-only file has to be written anew: %w", status.WriteErr)
	k.server.warn("%d bytes of the primary's changes wait for the append-only file, which cannot be written (%v): they are given up. "+
		"All is in memory; the file will be written anew when there is room, and a restart before that begins with older data",
		status.BufferBytes, status.WriteErr)
	k.replaced()
	k.look()
}

// close ends the keeper, after all else has ended. What is in memory and not on disk, it
// says.
func (k *keeper) close() error {
	var err error
	if k.log != nil {
		err = k.log.Close()
		k.log = nil
	}
	return errors.Join(err, k.lock.Close())
}

func (k *keeper) names() aof.Names {
	settings := k.server.machine.Settings()
	return aof.Names{Folder: settings.Text("appenddirname"), File: settings.Text("appendfilename")}
}
