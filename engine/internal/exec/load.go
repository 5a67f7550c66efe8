package exec

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// Loading a file into the machine. Reading and decoding need no lock and take most of the
// time; storing what was decoded needs the lock, and little time:
//
//	l := m.BeginLoad(...)                    with the lock
//	for {
//		batch, err := l.Read(batch)          without the lock; io.EOF at the end
//		err = l.Store(batch)                 with the lock
//	}
//	l.End()                                  with the lock
//
// The two may be done by two goroutines, with a few batches between them.
//
// From BeginLoad to End commands are answered that the data is being loaded, but for
// those that have nothing to do with data (command.Loading): nobody sees half of it.

const errLoading command.Error = "LOADING Redis is loading the dataset in memory"

// LoadOptions say what is loaded.
type LoadOptions struct {
	// FileBytes is how long the file is, as far as is known; 0 if not. It bounds
	// what the file is believed of how many keys there are.
	FileBytes int64
	// KeepExpired is whether keys stay whose time is over: to be expired by whoever
	// goes on, a primary or an append-only file.
	KeepExpired bool
	// GoOn is for the shell: whether the stream goes on from there; see GoOnFrom.
	GoOn bool
	// Replace is whether what the file has takes the place of what there was.
	Replace bool
}

// Loader loads one file.
type Loader struct {
	machine *Machine
	options LoadOptions
	reader  *rdb.Reader
	limits  ds.Limits // the reader's own: others may change the machine's
	expired int
	keys    int
	place   place
}

// BeginLoad begins to load a file, beside what there is. Only one can be loaded at a time.
func (m *Machine) BeginLoad(from io.Reader, options LoadOptions) *Loader {
	l := &Loader{machine: m, options: options, limits: m.space.Limits}
	l.reader = rdb.NewReader(from, &l.limits)
	l.reader.SkipChecksum = m.space.SkipChecksums
	m.loading = l
	return l
}

// HoldOff makes clients be answered that the data is being loaded, until it is all
// there: around several files, too. Whether there is an append-only file does not change
// in between.
func (m *Machine) HoldOff(on bool) {
	m.heldOff = on
	m.persistence.appending = m.settings.Bool("appendonly")
}

// isLoading reports whether only a part of the data may be there.
func (m *Machine) isLoading() bool { return m.heldOff || m.loading != nil || m.replay != nil }

// Batch is a few records of a file, ready to be stored.
type Batch struct {
	records []rdb.Record
	keys    [batchRecords]rdb.Key // what records point to
}

const (
	batchRecords = 512
	batchBytes   = 1 << 20
)

// Read decodes the next records. It may use the batch handed in, which may be nil. At
// the end of the file, which was found whole, the error is io.EOF, together with the
// last batch; another error is that of an rdb.Reader.
func (l *Loader) Read(reuse *Batch) (*Batch, error) {
	if reuse == nil {
		reuse = &Batch{}
	}
	clear(reuse.records)
	clear(reuse.keys[:len(reuse.records)])
	reuse.records = reuse.records[:0]
	for end := l.reader.Offset() + batchBytes; len(reuse.records) < batchRecords && l.reader.Offset() < end; {
		key := &reuse.keys[len(reuse.records)]
		record, err := l.reader.NextInto(key)
		if err != nil {
			return reuse, err
		}
		reuse.records = append(reuse.records, record)
	}
	return reuse, nil
}

// Offset is how many bytes of the file have been read. Only who calls Read may ask.
func (l *Loader) Offset() int64 { return l.reader.Offset() }

// Rest is the input behind the end of the file, after Read has returned io.EOF.
func (l *Loader) Rest() io.Reader { return l.reader.Rest() }

// Keys is how many keys were loaded, Expired how many were not since their time was over.
func (l *Loader) Keys() int { return l.keys }

// Expired is how many keys of the file were dropped since their time was over.
func (l *Loader) Expired() int { return l.expired }

// Store puts records into the databases. An error, that a key or a function is there
// twice or a function cannot be loaded, leaves a part loaded.
func (l *Loader) Store(nowUs int64, batch *Batch) error {
	l.machine.nowUs = max(l.machine.nowUs, nowUs)
	for _, record := range batch.records {
		var err error
		switch record := record.(type) {
		case *rdb.Key:
			err = l.key(record)
		case rdb.Size:
			l.expect(record)
		case rdb.Function:
			err = l.function(record.Code)
		case rdb.Aux:
			l.place.hear(record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expect makes room, as far as the file may be believed.
func (l *Loader) expect(size rdb.Size) {
	const (
		leastKeyBytes = 3       // type, name and value
		believed      = 1 << 20 // of a file whose length nobody knows
	)
	most := uint64(believed)
	if l.options.FileBytes > 0 {
		most = uint64(l.options.FileBytes) / leastKeyBytes
	}
	l.machine.space.DB(size.DB).Expect(int(min(size.Keys, most)), int(min(size.Expires, most)))
}

func (l *Loader) key(key *rdb.Key) error {
	m := l.machine
	nowMs := m.nowUs / 1000
	if key.ExpireAtMs != 0 && key.ExpireAtMs < nowMs && !l.options.KeepExpired {
		l.expired++
		return nil
	}
	if l.options.Replace {
		m.space.DB(key.DB).Delete(key.Name)
	}
	name := unsafe.String(unsafe.SliceData(key.Name), len(key.Name)) // it is ours
	o := m.space.DB(key.DB).Insert(name, key.Value, key.ExpireAtMs, nowMs)
	if o == nil {
		return fmt.Errorf("the key %q of database %d is in the file twice, or was there before", key.Name, key.DB)
	}
	l.keys++
	if key.IdleSec > 0 {
		m.space.SetIdle(o, int64(min(key.IdleSec, uint64(nowMs/1000)))*1000, nowMs)
	}
	if key.HasFreq {
		m.space.SetFrequency(o, key.Freq, nowMs)
	}
	return nil
}

// function loads a library. It runs, as with FUNCTION LOAD.
func (l *Loader) function(code []byte) error {
	m := l.machine
	m.running = running{active: true, loading: true}
	library, err := m.library.load(m, code, l.options.Replace)
	m.endScript()
	if err == nil {
		err = m.library.add(library)
	}
	if err != nil {
		return errors.New("a library of functions in the file cannot be loaded: " + err.Error())
	}
	return nil
}

// End ends the loading, whether it has succeeded or not.
func (l *Loader) End() {
	l.machine.loading = nil
	for i := range keyspace.Databases {
		l.machine.space.DB(i).Settle()
	}
}

// worksWhileLoading reports whether a request has nothing to do with data. What was
// queued before is looked at when it is to run.
func worksWhileLoading(s *Session, spec *command.Spec) bool {
	if spec.Name == "exec" && s.transaction != nil {
		for _, call := range s.transaction.calls {
			if call.spec.Flags&command.Loading == 0 {
				return false
			}
		}
	}
	return spec.Flags&command.Loading != 0
}
