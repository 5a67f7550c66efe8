package exec

import (
	"errors"
	"iter"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// FUNCTION DUMP and RESTORE move libraries between servers, Redis among them: see
// package rdb for what the bytes are.

func (m *Machine) functionDump(c *command.Ctx) error {
	c.Out.Bulk(rdb.AppendFunctions(nil, m.libraryCodes()))
	return nil
}

// libraryCodes walks over the texts of all libraries, in the order of their names.
func (m *Machine) libraryCodes() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, library := range m.library.sorted() {
			if !yield(library.Code) {
				return
			}
		}
	}
}

func (m *Machine) functionRestore(c *command.Ctx) error {
	flush, replace := false, false
	switch {
	case len(c.Args) > 4:
		return command.WrongSubcommand("FUNCTION", c.Args[1])
	case len(c.Args) == 3, command.Is(c.Args[3], "APPEND"):
	case command.Is(c.Args[3], "REPLACE"):
		replace = true
	case command.Is(c.Args[3], "FLUSH"):
		flush = true
	default:
		return command.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
	}
	restored, err := m.readDump(c, c.Args[2])
	if err != nil {
		return err
	}
	if err := m.join(restored, flush, replace); err != nil {
		return err
	}
	c.Space.Dirty++
	c.Out.SimpleString("OK")
	return nil
}

// join adds restored libraries to those there are, all or none.
func (m *Machine) join(restored []*lua.Library, flush, replace bool) error {
	if flush {
		for _, library := range m.library.sorted() {
			m.library.remove(library)
		}
	}
	for _, library := range restored {
		if m.library.byName[library.Name] != nil && !replace {
			m.library.forget(restored...)
			return command.Error("ERR Library " + library.Name + " already exists")
		}
	}
	return m.library.add(restored...)
}

// readDump loads the libraries of a payload, without adding them.
func (m *Machine) readDump(c *command.Ctx, payload []byte) ([]*lua.Library, error) {
	if !rdb.CheckPayload(payload) {
		return nil, command.Error("ERR DUMP payload version or checksum are wrong")
	}
	// They are gathered in a registry of their own, which checks their names.
	gathered := newLibraries(nil)
	gathered.runner = m.library.runner
	for code, err := range rdb.DecodeFunctions(payload) {
		if err = m.gather(c, &gathered, code, err); err != nil {
			gathered.forget(gathered.sorted()...)
			return nil, err
		}
	}
	return gathered.sorted(), nil
}

// gather adds the next library of a payload, unless an error came instead.
func (m *Machine) gather(c *command.Ctx, gathered *libraries, code []byte, err error) error {
	switch {
	case errors.Is(err, rdb.ErrOldFunction):
		return command.Error("ERR Pre-GA function format not supported")
	case errors.Is(err, rdb.ErrNotFunction):
		return command.Error("ERR given type is not a function")
	case err != nil:
		return command.Error("ERR Failed loading library payload")
	}
	library, err := m.loadLibrary(c, gathered, code, false)
	if err != nil {
		return err
	}
	return gathered.add(library)
}
