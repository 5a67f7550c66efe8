package exec

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
)

// libraries is the function libraries there are, and what runs them. A
// library's name is told apart by case, a function's is not.
type libraries struct {
	runner    *lua.Functions
	byName    map[string]*lua.Library
	functions map[string]*lua.Function // by name in lower case
}

func newLibraries(log func(level int, message string)) libraries {
	return libraries{
		runner: lua.NewFunctions(log),
		byName: map[string]*lua.Library{}, functions: map[string]*lua.Function{},
	}
}

// sorted is all libraries in the order of their names.
func (l *libraries) sorted() []*lua.Library {
	sorted := make([]*lua.Library, 0, len(l.byName))
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		sorted = append(sorted, l.byName[name])
	}
	return sorted
}

func (l *libraries) find(function []byte) *lua.Function {
	return l.functions[strings.ToLower(string(function))]
}

// load runs the text of a library, which is not added yet.
func (l *libraries) load(h lua.Host, code []byte, replace bool) (*lua.Library, error) {
	name, err := lua.LibraryName(string(code))
	if err != nil {
		return nil, command.Error(err.Error())
	}
	if l.byName[name] != nil && !replace {
		return nil, libraryExists(name)
	}
	library, err := l.runner.Load(h, string(code))
	if err != nil {
		return nil, command.Error(err.Error())
	}
	return library, nil
}

func libraryExists(name string) error {
	return command.Error("ERR Library '" + name + "' already exists")
}

// add puts new libraries in the place of those of the same names. All are
// added or, if the name of a function is taken, none: they are let go of then.
func (l *libraries) add(added ...*lua.Library) error {
	replaced := map[*lua.Library]bool{}
	for _, library := range added {
		replaced[l.byName[library.Name]] = true
	}
	for _, library := range added {
		for _, fn := range library.Functions {
			taken := l.find([]byte(fn.Name))
			if taken != nil && !replaced[taken.Library] {
				l.forget(added...)
				return command.Error("ERR Function " + fn.Name + " already exists")
			}
		}
	}
	for _, library := range added {
		if old := l.byName[library.Name]; old != nil {
			l.remove(old)
		}
	}
	for _, library := range added {
		l.byName[library.Name] = library
		for _, fn := range library.Functions {
			l.functions[strings.ToLower(fn.Name)] = fn
		}
	}
	return nil
}

func (l *libraries) remove(library *lua.Library) {
	delete(l.byName, library.Name)
	for _, fn := range library.Functions {
		delete(l.functions, strings.ToLower(fn.Name))
	}
	l.forget(library)
}

func (l *libraries) forget(dropped ...*lua.Library) {
	for _, library := range dropped {
		l.runner.Forget(library)
	}
}

func (l *libraries) clear() {
	clear(l.byName)
	clear(l.functions)
	l.runner.Close()
}
