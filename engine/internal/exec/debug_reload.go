package exec

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// DEBUG RELOAD writes all data as a file and loads it again, so that a test sees whether
// anything is lost on the way. It does so within its command, as in Redis; nobody else
// has a turn until it is done, and the file is in memory as a whole meanwhile. An engine
// with a folder has the file there as well, under the name of its snapshots.

// DEBUG LOADAOF goes back to what the append-only file holds. Reading it is the shell's
// business, as at the start, so it is a job: the caller waits for its end, and the others are
// answered meanwhile that data is being loaded. It begins when no other job runs.

const errReload = command.Error("ERR Error trying to load the RDB dump, check server logs.")

type reloadOptions struct{ merge, keep, load bool }

func parseReload(args [][]byte) (o reloadOptions, err error) {
	for _, arg := range args {
		switch {
		case command.Is(arg, "MERGE"):
			o.merge = true
		case command.Is(arg, "NOFLUSH"):
			o.keep = true
		case command.Is(arg, "NOSAVE"):
			o.load = true
		default:
			return o, command.Error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
		}
	}
	return o, nil
}

func (m *Machine) debugReload(c *command.Ctx) error {
	options, err := parseReload(c.Args[2:])
	if err != nil {
		return err
	}
	var file []byte
	if options.load {
		file, err = m.readSnapshot()
	} else {
		file, err = m.writeSnapshot()
	}
	if err != nil {
		return err
	}
	if !options.keep {
		m.DropAll()
	}
	err = m.loadSnapshot(file, options.merge)
	m.persistence.savedDirty = m.space.Dirty // the file has it all
	if err != nil {
		const warning = 3
		m.options.Log(warning, "DEBUG RELOAD: "+oneLine(err.Error()))
		return errReload
	}
	c.Out.SimpleString("OK")
	return nil
}

// snapshotPath is where snapshots are kept; "" if nothing is.
func (m *Machine) snapshotPath() string {
	if !m.Kept() || m.options.Files == nil {
		return ""
	}
	return strings.TrimSuffix(m.settings.Text("dir"), "/") + "/" + m.settings.Text("dbfilename")
}

func (m *Machine) readSnapshot() ([]byte, error) {
	path := m.snapshotPath()
	if path == "" {
		return nil, errReload
	}
	text, err := m.options.Files.Read(path)
	if err != nil {
		return nil, errReload
	}
	return []byte(text), nil
}

// writeSnapshot returns all data as a file, and puts it on disk if snapshots are kept.
func (m *Machine) writeSnapshot() ([]byte, error) {
	sn, err := m.BeginSnapshot(m.nowUs, SnapshotOptions{})
	if err != nil {
		return nil, err
	}
	const stepBytes = 1 << 30
	for done := false; !done; {
		if done, err = sn.Step(stepBytes, math.MaxInt); err != nil {
			return nil, command.Error("ERR " + oneLine(err.Error()))
		}
	}
	var file bytes.Buffer
	seal := rdb.NewSeal(&file, true)
	for _, part := range sn.Take(nil) {
		if _, err := seal.Write(part); err != nil {
			return nil, err
		}
	}
	if err := seal.Close(); err != nil {
		return nil, err
	}
	if path := m.snapshotPath(); path != "" {
		if err := m.options.Files.Write(path, file.String()); err != nil {
			return nil, command.Error("ERR " + oneLine(err.Error()))
		}
	}
	return file.Bytes(), nil
}

// loadSnapshot loads a file beside what there is. With merge it is the file's keys that
// stay where both have one; without, that is an error, in the middle of the work.
func (m *Machine) loadSnapshot(file []byte, merge bool) error {
	loader := m.BeginLoad(bytes.NewReader(file), LoadOptions{FileBytes: int64(len(file)), Replace: merge})
	defer loader.End()
	for {
		batch, err := loader.Read(nil)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if storeErr := loader.Store(m.nowUs, batch); storeErr != nil || err != nil {
			return storeErr
		}
	}
}

func (m *Machine) debugLoadLog(c *command.Ctx) error {
	switch {
	case !m.Kept() || !m.persistence.appending:
		return errNoLogToLoad
	case !c.CanBlock:
		return errLoadsAlone
	}
	m.persistence.loads = append(m.persistence.loads, waitingSave{session: session(c), number: m.blockings + 1})
	m.beginScheduled()
	return c.Block(nil, 0, func(out *resp.Writer) { out.Error("ERR the loading goes on") }) // it has no end but its own
}

const (
	errLoadLog     = command.Error("ERR Error trying to load the AOF files, check server logs.")
	errNoLogToLoad = command.Error("ERR DEBUG LOADAOF: the append-only file is off: CONFIG SET appendonly yes turns it on")
	errLoadsAlone  = command.Error("ERR DEBUG LOADAOF is not for transactions and scripts: send it by itself")
)

// BeginLog lets nobody have the data any more, which JobLoad drops and loads from the append-only file.
func (m *Machine) BeginLog(nowUs int64) error {
	if m.repl.link != nil {
		return errors.New("a replica has its data from the primary: REPLICAOF NO ONE first")
	}
	m.nowUs = nowUs
	m.HoldOff(true)
	return nil
}

// DropAll drops the data and the functions. Neither the log nor replicas hear of it.
func (m *Machine) DropAll() {
	m.space.Flush(0, keyspace.Databases-1)
	for _, library := range m.library.sorted() {
		m.library.remove(library)
	}
}

// answerLoads lets the data be used again that JobLoad has loaded.
func (m *Machine) answerLoads(err error) {
	p := &m.persistence
	waiting := p.loads
	p.loads = nil
	m.HoldOff(false)
	if err == nil {
		p.savedDirty = m.space.Dirty
	}
	for _, w := range waiting {
		m.answer(w, func(out *resp.Writer) {
			if err != nil {
				out.Error(string(errLoadLog))
				return
			}
			out.SimpleString("OK")
		})
	}
	m.serveReady()
}
