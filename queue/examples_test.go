package queue_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// Every exported function, type and method has an example of its own that is run: where the documentation shows the name, it
// shows how it is used.
func TestEveryExportedNameHasExamples(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	must(t, err)
	var files []*ast.File
	positions := token.NewFileSet()
	for _, path := range paths {
		file, err := parser.ParseFile(positions, path, nil, parser.ParseComments)
		must(t, err)
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(positions, files, "github.com/signalbox-io/signalbox/queue")
	must(t, err)

	runs := func(name string, examples []*doc.Example) {
		for _, e := range examples {
			if e.Output != "" || e.EmptyOutput {
				return
			}
		}
		t.Errorf("%s has no example with an output", name)
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			runs(f.Name, f.Examples)
		}
	}
	functions(pkg.Funcs)
	for _, of := range pkg.Types {
		runs(of.Name, of.Examples)
		functions(of.Funcs)
		for _, m := range of.Methods {
			runs(of.Name+"."+m.Name, m.Examples)
		}
	}
}
