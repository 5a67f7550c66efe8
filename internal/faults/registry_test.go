package faults_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/faults"
)

// Every line of the registry has its test. That every test has its line is seen to by faults.Begin.
func TestRegistryNamesTests(t *testing.T) {
	tests := make(map[string]bool)
	paths, err := filepath.Glob("*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && strings.HasPrefix(function.Name.Name, "Test") {
				tests[filepath.Dir(path)+" "+function.Name.Name] = true
			}
		}
	}
	seen := make(map[string]bool)
	for _, fault := range faults.Registry {
		if seen[fault.Name] {
			t.Errorf("%s is listed twice", fault.Name)
		}
		seen[fault.Name] = true
		if !tests[fault.Package+" Test"+fault.Name] {
			t.Errorf("package %s has no test for %s", fault.Package, fault.Name)
		}
	}
}
