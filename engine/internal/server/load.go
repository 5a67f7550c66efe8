package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// At the start the keeper loads what the folder has: the append-only file if that is
// on, else the snapshot. If the append-only file is on and there is none yet, the
// snapshot is loaded and becomes its base: who turns it on loses nothing.
//
// Meanwhile clients are answered that data is being loaded.

const lockName = "signalbox.lock"

// Progress tells how far the loading is.
type Progress struct {
	LoadedBytes, TotalBytes int64
	Keys                    int64
	Elapsed                 time.Duration
}

// Keep makes the server keep its data on a disk. It takes the lock of the folder, and
// is called once, before Load.
func (s *Server) Keep(d disk.Disk) error {
	if err := d.MakeFolder("."); err != nil {
		return err
	}
	lock, err := d.Lock(lockName)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeper = &keeper{server: s, disk: d, lock: lock}
	s.keeper.follow()
	s.machine.HoldOff(true)
	return nil
}

// Load loads what is kept, and then lets clients in. progress is called now and then;
// it may be nil.
func (s *Server) Load(progress func(Progress)) error {
	if progress == nil {
		progress = func(Progress) {}
	}
	l := s.beginLoading(progress)
	if l == nil {
		return ErrClosed
	}
	defer s.tasks.Done()
	log, err := l.all()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if log != nil {
			err = log.Close()
		}
		return errors.Join(ErrClosed, err)
	}
	s.keeper.begins(log, l)
	if l.needsBase {
		if err := s.keeper.firstBase(); err != nil {
			return err
		}
	}
	s.machine.HoldOff(false)
	s.machine.Follow(nowUs())
	after := s.carryOut()
	s.tasks.Go(after.settle)
	s.armExpiry()
	return nil
}

// load loads the append-only file again: all that was appended, which is written to it first.
func (j *job) load() error {
	s := j.keeper.server
	s.mu.Lock()
	log, seq := j.keeper.log, j.keeper.appended
	l := &loading{keeper: j.keeper, machine: s.machine, began: j.began, tell: func(Progress) {}}
	s.mu.Unlock()
	if log == nil {
		return errors.New("there is no append-only file to load")
	}
	if err := j.keeper.commit(seq, true); err != nil {
		return err
	}
	s.mu.Lock()
	s.machine.DropAll()
	s.mu.Unlock()
	return l.set(log.Set())
}

// beginLoading begins the work of Load, which counts as a task then; nil if the server is
// closed.
func (s *Server) beginLoading(progress func(Progress)) *loading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.tasks.Add(1)
	settings := s.machine.Settings()
	return &loading{
		keeper: s.keeper, machine: s.machine, began: time.Now(), tell: progress,
		appendOnly: settings.Bool("appendonly"), names: s.keeper.names(), policy: s.keeper.policy,
		snapshotName: settings.Text("dbfilename"), isReplica: settings.Text("replicaof") != "", takeTorn: settings.Bool("aof-load-truncated"),
	}
}

// begins goes on from what was loaded. The lock is held.
func (k *keeper) begins(log *aof.Log, l *loading) {
	m := k.server.machine
	m.Loaded(l.keys, l.expired)
	m.Keep(nowUs(), k.state)
	m.Settings().OnChange("appendfsync", func() error {
		k.follow()
		return nil
	})
	if log != nil {
		k.use(log, l.needsBase)
	}
	k.follow() // what was set meanwhile
}

// firstBase writes what was loaded from elsewhere as the base of the append-only file, and
// waits for it. The lock is held, but for the waiting.
func (k *keeper) firstBase() error {
	s := k.server
	s.machine.WantRewrite(nowUs())
	after := s.carryOut()
	job := k.job
	s.mu.Unlock()
	after.settle()
	<-job.done
	s.mu.Lock()
	if s.closed {
		return ErrClosed
	}
	return job.err
}

// loading is the work of Load.
type loading struct {
	keeper    *keeper
	machine   *exec.Machine
	began     time.Time
	told      time.Time
	tell      func(Progress)
	total     int64
	before    int64 // bytes of the files that are done
	keys      int64
	expired   int64
	at        int64 // bytes of requests that were run
	needsBase bool

	// What the parameters were at the start: clients may change them meanwhile.
	appendOnly   bool
	names        aof.Names
	policy       aof.Policy
	isReplica    bool // of somebody who will tell what has expired
	snapshotName string
	takeTorn     bool // aof-load-truncated
}

// all loads what there is, and returns the log to go on with; nil if it is off.
func (l *loading) all() (*aof.Log, error) {
	if err := l.keeper.sweep(); err != nil {
		return nil, err
	}
	if !l.appendOnly {
		return nil, l.snapshot(l.snapshotName)
	}
	set, err := aof.Open(l.keeper.disk, l.names)
	if err != nil {
		return nil, err
	}
	for _, name := range set.Removed {
		l.keeper.server.note("removed %s, which a crash had left over", name)
	}
	if set.Empty() {
		if err = l.snapshot(l.snapshotName); err == nil {
			l.needsBase = l.before > 0
		}
	} else {
		err = l.set(set)
		if l.needsBase = set.Unsynced; l.needsBase {
			l.keeper.server.warn("a sync of the append-only file has failed before: it is written anew first")
		}
	}
	var log *aof.Log
	if err == nil {
		log, err = set.Start(aof.Options{Policy: l.policy, NeedsBase: l.needsBase})
	}
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return log, nil
}

// snapshot loads the file of a save, if there is one.
func (l *loading) snapshot(name string) error {
	size, err := l.keeper.disk.Size(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	l.total = size
	file, err := l.keeper.disk.Open(name)
	if err != nil {
		return err
	}
	_, _, err = l.records(file, exec.LoadOptions{FileBytes: size, KeepExpired: l.isReplica, GoOn: !l.appendOnly})
	l.before = size
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w; signalbox check-rdb shows where", name, err)
	}
	return nil
}

// records loads an RDB file, and returns what is behind it, and how long it was.
func (l *loading) records(from io.Reader, options exec.LoadOptions) (rest io.Reader, sizeBytes int64, err error) {
	s := l.keeper.server
	s.mu.Lock()
	loader := s.machine.BeginLoad(from, options)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		if loader.End(); err == nil && options.GoOn {
			s.machine.GoOnFrom(loader)
		}
		s.mu.Unlock()
		l.keys += int64(loader.Keys())
		l.expired += int64(loader.Expired())
	}()
	decoded, spare := make(chan *exec.Batch, 2), make(chan *exec.Batch, 3)
	stored := make(chan error, 1)
	go func() {
		var err error
		for batch := range decoded {
			if err == nil {
				err = l.store(loader, batch)
			}
			select {
			case spare <- batch:
			default: // the reader was faster, and has enough
			}
		}
		stored <- err
	}()
	for err == nil {
		var batch *exec.Batch
		select {
		case batch = <-spare:
		default:
		}
		if batch, err = loader.Read(batch); err == nil || errors.Is(err, io.EOF) {
			decoded <- batch
		}
		l.report(l.before + loader.Offset())
	}
	close(decoded)
	storeErr := <-stored
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return loader.Rest(), loader.Offset(), errors.Join(err, storeErr)
}

func (l *loading) store(loader *exec.Loader, batch *exec.Batch) error {
	s := l.keeper.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return loader.Store(nowUs(), batch)
}

// set loads an append-only file.
func (l *loading) set(set *aof.Set) error {
	files, err := set.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		l.total += file.SizeBytes
	}
	for _, file := range files {
		if err := l.file(set, file); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
		l.before += file.SizeBytes
	}
	return nil
}

// file loads one file of an append-only file. Its last one may end too early.
func (l *loading) file(set *aof.Set, file aof.Source) (err error) {
	from, err := set.Open(file)
	if err != nil {
		return err
	}
	reader := aof.NewReader(from)
	reader.Preamble = func(from io.Reader) (io.Reader, int64, error) {
		return l.records(from, exec.LoadOptions{FileBytes: file.SizeBytes, KeepExpired: true})
	}
	for err == nil {
		err = l.requests(reader)
		l.report(l.at)
	}
	err = errors.Join(l.ended(err), from.Close())
	var torn *aof.TornError
	if !errors.As(err, &torn) {
		return err
	}
	if !file.Last || !l.takeTorn {
		return fmt.Errorf("%w; signalbox check-aof --fix cuts it off there", err)
	}
	l.keeper.server.warn("%s: %v; cut off, since aof-load-truncated is on", file.Name, torn)
	return set.Trim(torn.Offset)
}

// requests runs some requests under one lock. The error is io.EOF at the end. The first is
// read without the lock: before it a whole snapshot may be read.
func (l *loading) requests(reader *aof.Reader) error {
	const some = 256
	request, err := reader.Next()
	if err != nil {
		return err
	}
	s := l.keeper.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	now := nowUs()
	for range some {
		if err := l.replay(now, request); err != nil {
			return err
		}
		if request, err = reader.Next(); err != nil {
			return err
		}
	}
	return l.replay(now, request)
}

// replay runs one request. The lock is held.
func (l *loading) replay(nowUs int64, request aof.Request) error {
	if err := l.machine.Replay(nowUs, request.Args); err != nil {
		return fmt.Errorf("byte %d: %w", request.Offset, err)
	}
	l.at = l.before + request.End
	return nil
}

// ended makes nothing of the end of a file. What a transaction had begun is forgotten.
func (l *loading) ended(err error) error {
	s := l.keeper.server
	s.mu.Lock()
	s.machine.Replayed()
	s.mu.Unlock()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// report tells how far the loading is, now and then.
func (l *loading) report(loaded int64) {
	const every = 100 * time.Millisecond
	now := time.Now()
	if now.Sub(l.told) < every {
		return
	}
	l.told = now
	s := l.keeper.server
	s.mu.Lock()
	s.machine.LoadProgress(l.began.UnixMicro(), loaded, l.total)
	keys := int64(s.machine.Keys())
	s.mu.Unlock()
	l.tell(Progress{LoadedBytes: loaded, TotalBytes: l.total, Keys: keys, Elapsed: now.Sub(l.began)})
}
