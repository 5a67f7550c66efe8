package server

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// A job writes a snapshot (or loads the log, for DEBUG LOADAOF: load.go): as dump.rdb, or as the new base of the append-only file. It
// takes the engine's lock for one step at a time, and writes without it. What commands
// hand over meanwhile waits in memory; when that becomes too much, whoever has just been
// served waits until the disk has taken it.

const (
	stepBytes = 64 << 10
	stepKeys  = 256
	// crowdedBytes is how much may wait for the disk before clients have to.
	crowdedBytes = 32 << 20
)

type job struct {
	keeper    *keeper
	kind      exec.Job
	snapshot  *exec.Snapshot
	rewrite   *aof.Rewrite // of JobRewrite
	sums      bool
	file      string // of JobSave
	began     time.Time
	peakBytes int64
	relief    chan struct{} // closed when less waits; nil when nobody has to wait. Under the engine's lock.
	served    int64         // Server.served at the last step
	hurry     bool          // whether somebody had to wait for that step
	stop      chan struct{}
	done      chan struct{} // closed when the machine knows
	err       error         // how it ended, then
	stopOnce  sync.Once
}

func (j *job) cancel() { j.stopOnce.Do(func() { close(j.stop) }) }

// heed begins and ends what the machine wants to begin and to end; later, if a script is in
// the middle of its work: the instant would be within it. The lock is held, and all that was
// changed has been appended.
func (k *keeper) heed(effects exec.Effects) {
	if effects.Begin != exec.NoJob {
		k.due.Begin = effects.Begin
	}
	k.due.EndLog = k.due.EndLog || effects.EndLog
	if k.server.machine.Busy() {
		return
	}
	if effects.Replaced {
		k.replaced()
	}
	if k.overfull {
		k.discard()
	}
	due := k.due
	k.due = exec.Effects{}
	if due.Begin != exec.NoJob {
		k.begin(due.Begin)
	}
	if due.EndLog && !k.wantsLog() {
		k.endLog()
	}
}

// begin begins a job at this instant. The lock is held, and all that was changed has been
// appended.
func (k *keeper) begin(kind exec.Job) {
	s := k.server
	j := &job{
		keeper: k, kind: kind, began: time.Now(), stop: make(chan struct{}), done: make(chan struct{}),
		sums: s.machine.Settings().Bool("rdbchecksum"), file: s.machine.Settings().Text("dbfilename"),
	}
	k.job = j
	if err := j.prepare(); err != nil {
		s.tasks.Go(func() { j.ended(err) }) // not within the step that asked for it
		return
	}
	s.tasks.Go(j.run)
}

func (j *job) String() string {
	switch j.kind {
	case exec.JobSave:
		return "writing a snapshot"
	case exec.JobLoad:
		return "loading the append-only file again"
	}
	return "writing the append-only file anew"
}

// prepare takes the instant. The lock is held.
func (j *job) prepare() (err error) {
	k := j.keeper
	if j.kind == exec.JobLoad {
		return k.server.machine.BeginLog(nowUs())
	}
	if j.kind == exec.JobRewrite {
		if k.log == nil {
			if k.openErr = k.openLog(); k.openErr != nil {
				return k.openErr
			}
		}
		if j.rewrite, err = k.log.Begin(); err != nil {
			return err
		}
		k.server.machine.PropagateAnew()
	}
	j.snapshot, err = k.server.machine.BeginSnapshot(nowUs(), exec.SnapshotOptions{Preamble: j.kind == exec.JobRewrite})
	if err != nil && j.rewrite != nil {
		err = errors.Join(err, j.rewrite.Abort())
	}
	return err
}

func (j *job) run() {
	if j.kind == exec.JobLoad {
		j.ended(j.load())
		return
	}
	err := j.write()
	if err != nil {
		j.forget()
	}
	j.ended(err)
}

// write writes the file and makes it count.
func (j *job) write() error {
	file, err := j.create()
	if err != nil {
		if j.rewrite != nil {
			err = errors.Join(err, j.rewrite.Abort())
		}
		return err
	}
	seal := rdb.NewSeal(file, j.sums)
	err = j.pour(seal)
	if err == nil {
		err = seal.Close()
	}
	if j.rewrite != nil {
		if err != nil {
			return errors.Join(err, j.rewrite.Abort())
		}
		return j.rewrite.Finish()
	}
	d := j.keeper.disk
	if err == nil {
		err = file.SyncAside()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = d.Rename(tempName, j.file)
	}
	if err != nil {
		return errors.Join(err, j.keeper.sweep())
	}
	return d.SyncFolder(".")
}

func (j *job) create() (disk.File, error) {
	if j.rewrite != nil {
		return j.rewrite.Create(aof.BaseRDB)
	}
	return j.keeper.disk.Create(tempName)
}

// tempName is what a snapshot is called until it is whole. The name is always the same, since
// nobody else writes here: so a crash leaves one file at most.
const tempName = "temp-signalbox.rdb"

// sweep removes what was left of a snapshot that was not finished.
func (k *keeper) sweep() error {
	if err := k.disk.Remove(tempName); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// pour writes the snapshot, step by step.
func (j *job) pour(seal *rdb.Seal) error {
	var parts [][]byte
	pace := pace{began: time.Now(), busy: true} // until it is known better
	for done := false; !done; {
		select {
		case <-j.stop:
			return exec.ErrCancelled
		case <-j.keeper.server.done:
			return exec.ErrCancelled
		default:
		}
		var err error
		if done, parts, err = j.step(parts); err != nil {
			return err
		}
		for _, part := range parts {
			if _, err := seal.Write(part); err != nil {
				return err
			}
		}
		pace.rest(j.served, j.hurry)
	}
	return nil
}

// step takes one step of the snapshot, and what there is to write.
func (j *job) step(written [][]byte) (done bool, parts [][]byte, err error) {
	s := j.keeper.server
	s.mu.Lock()
	defer s.mu.Unlock()
	j.served, j.hurry = s.served, j.relief != nil
	j.peakBytes = max(j.peakBytes, int64(j.snapshot.PendingBytes())+j.snapshot.HeldBytes())
	done, err = j.snapshot.Step(stepBytes, stepKeys)
	if j.relief != nil {
		close(j.relief)
		j.relief = nil
	}
	return done, j.snapshot.Take(written), err
}

// crowded returns what clients have to wait for while too much waits for the disk; nil
// if they need not. The lock is held.
func (k *keeper) crowded() chan struct{} {
	j := k.job
	if j == nil || j.snapshot == nil || j.snapshot.Aborted() || j.snapshot.PendingBytes() < crowdedBytes {
		return nil
	}
	if j.relief == nil {
		j.relief = make(chan struct{})
	}
	return j.relief
}

// forget ends a snapshot that came to nothing, so that another one can begin.
func (j *job) forget() {
	s := j.keeper.server
	for done := false; !done; {
		s.mu.Lock()
		j.snapshot.Abort()
		done, _ = j.snapshot.Step(stepBytes, 16*stepKeys) // an aborted one writes nothing
		if j.relief != nil {
			close(j.relief)
			j.relief = nil
		}
		s.mu.Unlock()
	}
}

// ended tells the machine.
func (j *job) ended(err error) {
	k := j.keeper
	s := k.server
	switch {
	case errors.Is(err, exec.ErrCancelled):
		s.note("%s: %v", j, err)
	case err != nil:
		s.warn("%s: %v", j, err)
	default:
		s.note("%s took %v", j, time.Since(j.began).Round(time.Millisecond))
	}
	s.lockAtRest()
	k.job, j.err = nil, err
	if j.kind == exec.JobSave {
		k.saveErr = err
	}
	if k.stale {
		k.dropLog()
	}
	if j.kind == exec.JobRewrite {
		if k.baseErr = err; err == nil {
			k.warming.Store(false)
		}
		if !k.wantsLog() {
			k.endLog()
		}
	}
	s.machine.JobEnded(nowUs(), j.peakBytes, err)
	after := s.carryOut() // perhaps the next job begins, which makes the log work
	if j.kind == exec.JobRewrite {
		k.tell()
	}
	s.mu.Unlock()
	close(j.done)
	after.settle()
}

// lockAtRest takes the lock when no script is in the middle of its work.
func (s *Server) lockAtRest() {
	const moment = time.Millisecond
	for {
		s.mu.Lock()
		if !s.machine.Busy() || s.closed {
			return
		}
		s.mu.Unlock()
		time.Sleep(moment)
	}
}
