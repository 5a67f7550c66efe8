package exec

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// A full synchronisation: the primary's snapshot is read beside the data that there is, without the
// machine's lock and without anybody's knowledge, and takes its place in one moment when it is
// whole:
//
//	r := m.BeginReplacement(from)     with the lock
//	for err == nil { err = r.Read(now) }   without it; io.EOF at the end
//	err = link.Adopt(now, r, ...)     with the lock
//
// So clients are served the old data, if they may have it, until the new is there, and lose nothing
// if the snapshot breaks off or cannot be read. It takes the memory of both.

// Replacement is the data of a snapshot that is being read.
type Replacement struct {
	machine   *Machine
	data      *keyspace.Replacement
	reader    *rdb.Reader
	limits    ds.Limits // the reader's own
	key       rdb.Key
	functions [][]byte
	place     place // of the stream that follows
}

// BeginReplacement begins to read a snapshot.
func (m *Machine) BeginReplacement(from io.Reader) *Replacement {
	r := &Replacement{machine: m, data: m.space.NewReplacement(), limits: m.space.Limits}
	r.reader = rdb.NewReader(from, &r.limits)
	r.reader.SkipChecksum = m.space.SkipChecksums
	return r
}

// Read reads some records. The error is io.EOF when all is there, and else says why it never will be.
func (r *Replacement) Read(nowMs int64) error {
	const some = 1 << 10
	for range some {
		record, err := r.reader.NextInto(&r.key)
		if err != nil {
			return err
		}
		switch record := record.(type) {
		case *rdb.Key:
			err = r.insert(record, nowMs)
		case rdb.Size:
			const believed = 1 << 20 // of what nobody has seen yet
			r.data.Expect(record.DB, int(min(record.Keys, believed)), int(min(record.Expires, believed)))
		case rdb.Function:
			r.functions = append(r.functions, record.Code)
		case rdb.Aux:
			r.place.hear(record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Replacement) insert(key *rdb.Key, nowMs int64) error {
	name := unsafe.String(unsafe.SliceData(key.Name), len(key.Name)) // it is ours
	o := r.data.Insert(key.DB, name, key.Value, key.ExpireAtMs, nowMs)
	if o == nil {
		return fmt.Errorf("the key %q of database %d is in the snapshot twice", key.Name, key.DB)
	}
	if key.IdleSec > 0 {
		r.data.SetIdle(o, int64(min(key.IdleSec, uint64(nowMs/1000)))*1000, nowMs)
	}
	if key.HasFreq {
		r.data.SetFrequency(o, key.Freq, nowMs)
	}
	return nil
}

// Offset is how many bytes were read, Rest what comes after the snapshot.
func (r *Replacement) Offset() int64 { return r.reader.Offset() }

// Rest is the input behind the snapshot, once Read has returned io.EOF.
func (r *Replacement) Rest() io.Reader { return r.reader.Rest() }

// Keys is how many keys the snapshot has.
func (r *Replacement) Keys() int { return r.data.Keys() }

// ErrReplaced is for a snapshot of data that is not there any more.
var ErrReplaced = fmt.Errorf("%w: a full synchronisation has put other data in the place of what was being saved", ErrCancelled)

// Adopt puts a snapshot that is whole in the place of all data, and begins the stream that follows it.
// An error leaves everything as it was.
func (l *Link) Adopt(nowUs int64, r *Replacement, id string, offset int64, addr, localAddr string) error {
	m := l.machine
	m.nowUs = nowUs
	library := newLibraries(m.options.Log)
	for _, code := range r.functions {
		if err := m.loadInto(&library, code); err != nil {
			library.clear()
			return err
		}
	}
	m.library.clear()
	m.library = library
	if m.snapshot != nil && !m.snapshot.done {
		m.snapshot.err = ErrReplaced
		m.snapshot.Abort()
	}
	m.space.Replace(r.data)
	m.dropReplicas()
	m.repl.history.Adopt(id, offset)
	l.db = r.place.db
	l.begin(addr, localAddr)
	m.effects.Replaced = true
	m.persistence.scheduledLog = m.persistence.appending && m.Kept()
	m.beginScheduled()
	m.endGroup(false)
	m.serveReady()
	return nil
}

// loadInto runs the text of a library.
func (m *Machine) loadInto(into *libraries, code []byte) error {
	m.running = running{active: true, loading: true}
	library, err := into.load(m, code, false)
	m.endScript()
	if err == nil {
		err = into.add(library)
	}
	if err != nil {
		return errors.New("a library of functions cannot be loaded: " + err.Error())
	}
	return nil
}
